//! The emphasis syntax: `(a)`, `(a:1.2)`, `[a]`, backslash escapes and BREAK, with A1111's meaning in every corner.

/// A round bracket multiplies the weight of what it holds by this, a square one divides by it (A1111's documentation).
const EMPHASIS: f64 = 1.1;

/// A run of text with one weight, or the word BREAK.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Text {
        text: String,
        /// 1.0 is no emphasis. Finite; may be 0 or negative when a person writes so.
        weight: f32,
    },
    /// The chunk ends here and is padded out.
    Break,
}

/// A piece while brackets are still open around it.
enum Part {
    Text(String),
    Break,
}

/// Takes the brackets off a prompt. Gives at least one piece; an unclosed bracket reaches to the end.
pub fn parse(prompt: &str) -> Vec<Piece> {
    let mut parts = Vec::new();
    // Where the open brackets of each kind begin, as an index into `parts`. A1111 nests the kinds independently.
    let (mut round, mut square) = (Vec::new(), Vec::new());
    let mut emphases = Vec::new();
    let mut rest = prompt;
    while let Some(first) = rest.chars().next() {
        let mut length = first.len_utf8();
        match first {
            '\\' => {
                // The backslash itself is dropped, also before a character that needs none.
                if let Some(escaped @ ('(' | ')' | '[' | ']' | '\\')) = rest[1..].chars().next() {
                    parts.push(Part::Text(escaped.to_string()));
                    length = 2;
                }
            }
            '(' => round.push(parts.len()),
            '[' => square.push(parts.len()),
            ':' => match weight(rest) {
                Some((factor, whole)) if !round.is_empty() => {
                    length = whole;
                    emphases.extend(round.pop().map(|from| Emphasis { from, to: parts.len(), factor }));
                }
                _ => parts.push(Part::Text(":".to_owned())),
            },
            ')' if !round.is_empty() => {
                emphases.extend(round.pop().map(|from| Emphasis { from, to: parts.len(), factor: EMPHASIS }));
            }
            ']' if !square.is_empty() => {
                emphases.extend(square.pop().map(|from| Emphasis { from, to: parts.len(), factor: 1.0 / EMPHASIS }));
            }
            ')' | ']' => parts.push(Part::Text(first.to_string())),
            _ => {
                length = rest.find(['\\', '(', ')', '[', ']', ':']).unwrap_or(rest.len());
                push_plain(&rest[..length], &mut parts);
            }
        }
        rest = &rest[length..];
    }
    let to = parts.len();
    emphases.extend(round.into_iter().map(|from| Emphasis { from, to, factor: EMPHASIS }));
    emphases.extend(square.into_iter().map(|from| Emphasis { from, to, factor: 1.0 / EMPHASIS }));
    let weights = products(parts.len(), &emphases);
    joined(parts, &weights)
}

/// Reads `:1.2)` at the start of `text`: the number and the length of the whole. White space may stand around the number.
///
/// What looks like a number and is none ("1.1.1", "."), or is beyond f32, is text.
fn weight(text: &str) -> Option<(f64, usize)> {
    let body = text.strip_prefix(':')?.trim_start();
    let end = body.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-')).unwrap_or(body.len());
    let (number, after) = body.split_at(end);
    let after = after.trim_start().strip_prefix(')')?;
    let value: f64 = number.parse().ok()?;
    (value as f32).is_finite().then_some((value, text.len() - after.len()))
}

/// Appends text without brackets, cut at each BREAK that stands as a word of its own.
fn push_plain(text: &str, parts: &mut Vec<Part>) {
    let mut from = 0;
    for at in word_positions(text, "BREAK") {
        parts.push(Part::Text(text[from..at].trim_end().to_owned()));
        parts.push(Part::Break);
        let after = at + "BREAK".len();
        from = after + text[after..].len() - text[after..].trim_start().len();
    }
    parts.push(Part::Text(text[from..].to_owned()));
}

/// Where `word` stands in `text` with no letter, digit or underscore on either side.
pub(super) fn word_positions<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(in_word) && !after.is_some_and(in_word)
    })
}

/// A factor on the weights of `parts[from..to]`.
struct Emphasis {
    from: usize,
    to: usize,
    factor: f64,
}

/// The product of all factors on each part, in n·log n steps however deep the brackets nest: each range is kept as the few
/// nodes of a binary tree that cover it, and a part's weight is the product from its leaf up to the root.
fn products(count: usize, emphases: &[Emphasis]) -> Vec<f64> {
    let mut tree = vec![1.0; 2 * count];
    for &Emphasis { from, to, factor } in emphases {
        let (mut left, mut right) = (from + count, to + count);
        while left < right {
            if left % 2 == 1 {
                tree[left] *= factor;
                left += 1;
            }
            if right % 2 == 1 {
                right -= 1;
                tree[right] *= factor;
            }
            left /= 2;
            right /= 2;
        }
    }
    let product = |leaf: usize| {
        let path = std::iter::successors(Some(leaf), |node| (*node > 1).then_some(node / 2));
        path.map(|node| tree[node]).product::<f64>()
    };
    (count..2 * count).map(product).collect()
}

/// Joins neighbours of equal weight, so that words cut by an escape stay words.
fn joined(parts: Vec<Part>, weights: &[f64]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    // The exact weight of the last piece, while that piece is text.
    let mut last = None;
    for (part, &exact) in parts.into_iter().zip(weights) {
        match part {
            Part::Break => {
                pieces.push(Piece::Break);
                last = None;
            }
            Part::Text(more) => match pieces.last_mut() {
                Some(Piece::Text { text, .. }) if last == Some(exact) => text.push_str(&more),
                _ => {
                    pieces.push(Piece::Text { text: more, weight: finite(exact) });
                    last = Some(exact);
                }
            },
        }
    }
    if pieces.is_empty() {
        pieces.push(Piece::Text { text: String::new(), weight: 1.0 });
    }
    pieces
}

/// As f32, with what nested brackets drive beyond its range kept within.
fn finite(weight: f64) -> f32 {
    if weight.is_nan() { 0.0 } else { weight.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32 }
}
