//! The cleaning step of CLIP's own tokenizer: what a prompt goes through before it is cut into words.
//!
//! CLIP calls ftfy and then `html.unescape` twice. This does the same to what people type and paste: entities, typographic
//! quotes, ligatures, full-width forms, control characters, NFC, lower case. It does not guess at text that was decoded in
//! the wrong encoding. White space needs no step of its own, since the word splitter takes any run of it as one gap.

use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;

/// The cleaned, lower-case text.
pub(super) fn clean(text: &str) -> String {
    let mut text = Cow::Borrowed(text);
    // Three levels deep: once by ftfy, twice by CLIP itself.
    for _ in 0..3 {
        match unescape(&text) {
            Some(plainer) => text = Cow::Owned(plainer),
            None => break,
        }
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        push_fixed(c, &mut out);
    }
    out.nfc().collect::<String>().to_lowercase()
}

/// Writes what ftfy makes of one character.
fn push_fixed(c: char, out: &mut String) {
    match c {
        '\u{2bc}' | '\u{2018}'..='\u{201b}' => out.push('\''),
        '\u{201c}'..='\u{201f}' => out.push('"'),
        // Left as one letter by ftfy's table, where NFKC would go on to a plain s.
        '\u{fb05}' => out.push_str("\u{17f}t"),
        '\u{149}' => out.push_str("'n"),
        // Latin ligatures and digraphs, full-width and half-width forms, the ideographic space.
        '\u{132}' | '\u{133}' | '\u{1c4}'..='\u{1cc}' | '\u{1f1}'..='\u{1f3}' => out.extend([c].into_iter().nfkc()),
        '\u{fb00}'..='\u{fb06}' | '\u{3000}' | '\u{ff01}'..='\u{ffef}' => out.extend([c].into_iter().nfkc()),
        '\u{80}'..='\u{9f}' => out.push(windows_1252(c)),
        '\0'..='\u{8}' | '\u{b}' | '\u{e}'..='\u{1f}' | '\u{7f}' => {}
        '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffc}' => {}
        _ => out.push(c),
    }
}

/// The character that Windows-1252 has in place of a C1 control; the five it leaves free stay as they are.
fn windows_1252(c: char) -> char {
    const FROM_80: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    let index = (c as usize).wrapping_sub(0x80);
    FROM_80.get(index).copied().unwrap_or(c)
}

/// Resolves HTML character references once, as HTML5 reads them; `None` when there are none.
fn unescape(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut changed = false;
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, reference) = rest.split_at(at);
        out.push_str(before);
        rest = match resolve(reference) {
            Some((value, length)) => {
                out.extend(value);
                changed = true;
                &reference[length..]
            }
            None => {
                out.push('&');
                &reference[1..]
            }
        };
    }
    out.push_str(rest);
    changed.then_some(out)
}

/// Reads the reference that `text` starts with: its character, if it stands for one, and its length in bytes.
fn resolve(text: &str) -> Option<(Option<char>, usize)> {
    let body = text.strip_prefix('&')?;
    if let Some(number) = body.strip_prefix('#') {
        let (radix, skipped, digits) = match number.strip_prefix(['x', 'X']) {
            Some(digits) => (16, 3, digits),
            None => (10, 2, number),
        };
        let length = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
        let (digits, after) = digits.split_at(length);
        if digits.is_empty() {
            return None;
        }
        let value = character(u32::from_str_radix(digits, radix).unwrap_or(u32::MAX));
        return Some((value, skipped + length + usize::from(after.starts_with(';'))));
    }
    let end = body.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(body.len()).min(32);
    let (name, after) = body.split_at(end);
    if after.starts_with(';')
        && let Some(c) = legacy(name).or_else(|| named(name))
    {
        return Some((Some(c), 1 + end + 1));
    }
    // HTML's oldest names also count without their semicolon, the longest first.
    (2..=end).rev().find_map(|length| legacy(&name[..length]).map(|c| (Some(c), 1 + length)))
}

/// What a numeric reference stands for: nothing for controls and noncharacters, U+FFFD for what is no character at all.
fn character(code: u32) -> Option<char> {
    match code {
        0 => Some('\u{fffd}'),
        0x80..=0x9f => char::from_u32(code).map(windows_1252),
        1..=8 | 0xb | 0xe..=0x1f | 0x7f | 0xfdd0..=0xfdef => None,
        _ if code & 0xfffe == 0xfffe && code <= 0x10_ffff => None,
        _ => Some(char::from_u32(code).unwrap_or('\u{fffd}')),
    }
}

/// The names that HTML5 also takes without a semicolon.
fn legacy(name: &str) -> Option<char> {
    match name {
        "amp" | "AMP" => Some('&'),
        "lt" | "LT" => Some('<'),
        "gt" | "GT" => Some('>'),
        "quot" | "QUOT" => Some('"'),
        "COPY" => Some('©'),
        "REG" => Some('®'),
        _ => {
            let index = LATIN_1.iter().position(|known| *known == name)?;
            u8::try_from(0xa0 + index).ok().map(char::from)
        }
    }
}

fn named(name: &str) -> Option<char> {
    let index = NAMED.binary_search_by_key(&name, |(known, _)| known).ok()?;
    NAMED.get(index).map(|(_, c)| *c)
}

/// The entities of U+00A0 to U+00FF, in order (HTML 4, section 24.2).
#[rustfmt::skip]
const LATIN_1: [&str; 96] = [
    "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf", "laquo", "not", "shy",
    "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro", "para", "middot", "cedil", "sup1", "ordm", "raquo",
    "frac14", "frac12", "frac34", "iquest", "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig", "Ccedil",
    "Egrave", "Eacute", "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve", "Oacute",
    "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute", "Ucirc", "Uuml", "Yacute", "THORN", "szlig",
    "agrave", "aacute", "acirc", "atilde", "auml", "aring", "aelig", "ccedil", "egrave", "eacute", "ecirc", "euml",
    "igrave", "iacute", "icirc", "iuml", "eth", "ntilde", "ograve", "oacute", "ocirc", "otilde", "ouml", "divide",
    "oslash", "ugrave", "uacute", "ucirc", "uuml", "yacute", "thorn", "yuml",
];

/// The other entities that HTML 4 names (sections 24.3 and 24.4), and `apos`, sorted; they need their semicolon.
#[rustfmt::skip]
const NAMED: &[(&str, char)] = &[
    ("Alpha", 'Α'), ("Beta", 'Β'), ("Chi", 'Χ'), ("Dagger", '‡'), ("Delta", 'Δ'), ("Epsilon", 'Ε'), ("Eta", 'Η'),
    ("Gamma", 'Γ'), ("Iota", 'Ι'), ("Kappa", 'Κ'), ("Lambda", 'Λ'), ("Mu", 'Μ'), ("Nu", 'Ν'), ("OElig", 'Œ'),
    ("Omega", 'Ω'), ("Omicron", 'Ο'), ("Phi", 'Φ'), ("Pi", 'Π'), ("Prime", '″'), ("Psi", 'Ψ'), ("Rho", 'Ρ'),
    ("Scaron", 'Š'), ("Sigma", 'Σ'), ("Tau", 'Τ'), ("Theta", 'Θ'), ("Upsilon", 'Υ'), ("Xi", 'Ξ'), ("Yuml", 'Ÿ'),
    ("Zeta", 'Ζ'), ("alefsym", 'ℵ'), ("alpha", 'α'), ("and", '∧'), ("ang", '∠'), ("apos", '\''), ("asymp", '≈'),
    ("bdquo", '„'), ("beta", 'β'), ("bull", '•'), ("cap", '∩'), ("chi", 'χ'), ("circ", 'ˆ'), ("clubs", '♣'),
    ("cong", '≅'), ("crarr", '↵'), ("cup", '∪'), ("dArr", '⇓'), ("dagger", '†'), ("darr", '↓'), ("delta", 'δ'),
    ("diams", '♦'), ("empty", '∅'), ("emsp", '\u{2003}'), ("ensp", '\u{2002}'), ("epsilon", 'ε'), ("equiv", '≡'),
    ("eta", 'η'), ("euro", '€'), ("exist", '∃'), ("fnof", 'ƒ'), ("forall", '∀'), ("frasl", '⁄'), ("gamma", 'γ'),
    ("ge", '≥'), ("hArr", '⇔'), ("harr", '↔'), ("hearts", '♥'), ("hellip", '…'), ("image", 'ℑ'), ("infin", '∞'),
    ("int", '∫'), ("iota", 'ι'), ("isin", '∈'), ("kappa", 'κ'), ("lArr", '⇐'), ("lambda", 'λ'), ("lang", '⟨'),
    ("larr", '←'), ("lceil", '⌈'), ("ldquo", '“'), ("le", '≤'), ("lfloor", '⌊'), ("lowast", '∗'), ("loz", '◊'),
    ("lrm", '\u{200e}'), ("lsaquo", '‹'), ("lsquo", '\u{2018}'), ("mdash", '—'), ("minus", '−'), ("mu", 'μ'),
    ("nabla", '∇'), ("ndash", '–'), ("ne", '≠'), ("ni", '∋'), ("notin", '∉'), ("nsub", '⊄'), ("nu", 'ν'),
    ("oelig", 'œ'), ("oline", '‾'), ("omega", 'ω'), ("omicron", 'ο'), ("oplus", '⊕'), ("or", '∨'), ("otimes", '⊗'),
    ("part", '∂'), ("permil", '‰'), ("perp", '⊥'), ("phi", 'φ'), ("pi", 'π'), ("piv", 'ϖ'), ("prime", '\u{2032}'),
    ("prod", '∏'), ("prop", '∝'), ("psi", 'ψ'), ("rArr", '⇒'), ("radic", '√'), ("rang", '⟩'), ("rarr", '→'),
    ("rceil", '⌉'), ("rdquo", '”'), ("real", 'ℜ'), ("rfloor", '⌋'), ("rho", 'ρ'), ("rlm", '\u{200f}'),
    ("rsaquo", '›'), ("rsquo", '\u{2019}'), ("sbquo", '\u{201a}'), ("scaron", 'š'), ("sdot", '⋅'), ("sigma", 'σ'),
    ("sigmaf", 'ς'), ("sim", '∼'), ("spades", '♠'), ("sub", '⊂'), ("sube", '⊆'), ("sum", '∑'), ("sup", '⊃'),
    ("supe", '⊇'), ("tau", 'τ'), ("there4", '∴'), ("theta", 'θ'), ("thetasym", 'ϑ'), ("thinsp", '\u{2009}'),
    ("tilde", '˜'), ("trade", '™'), ("uArr", '⇑'), ("uarr", '↑'), ("upsih", 'ϒ'), ("upsilon", 'υ'), ("weierp", '℘'),
    ("xi", 'ξ'), ("zeta", 'ζ'), ("zwj", '\u{200d}'), ("zwnj", '\u{200c}'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_forms_and_controls_become_plain() {
        assert_eq!(clean("Can’t “SAY” ﬁne"), "can't \"say\" fine");
        assert_eq!(clean("ＡＢＣ！\u{3000}ｶﾞ"), "abc! ガ");
        assert_eq!(clean("a\u{0}b\u{feff}c\u{7f}"), "abc");
        assert_eq!(clean("cafe\u{301}"), "caf\u{e9}");
    }

    #[test]
    fn entities_are_read_as_html_reads_them() {
        assert_eq!(clean("a &amp; b &lt;c&gt; &quot;d&quot; &#39;e&#x27;"), "a & b <c> \"d\" 'e'");
        assert_eq!(clean("&amp;amp;lt;"), "<");
        assert_eq!(clean("caf&eacute; &hellip; &rsquo;s &apos;"), "café … 's '");
        assert_eq!(clean("R&D, AT&T; &nosuch; & && &# &#x; &#xzz &"), "r&d, at&t; &nosuch; & && &# &#x; &#xzz &");
        assert_eq!(clean("&copyright &ampere"), "©right &ere");
        assert_eq!(clean("&#0;&#55296;&#99999999999;&#1;&#146;"), "\u{fffd}\u{fffd}\u{fffd}'");
    }

    #[test]
    fn the_entity_table_is_sorted() {
        assert!(NAMED.is_sorted_by(|a, b| a.0 < b.0));
    }
}
