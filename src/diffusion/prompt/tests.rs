//! The published meaning of A1111's prompt syntax, chunk by chunk.

use super::*;
use crate::diffusion::tokenizer::Tokenizer;

const CAPACITY: usize = 75;
const POSITIONS: usize = CAPACITY + 2;

fn parsed(prompt: &str) -> Vec<(String, f32)> {
    let plain = |piece| match piece {
        Piece::Text { text, weight } => (text, weight),
        Piece::Break => ("BREAK".to_owned(), -1.0),
    };
    parse(prompt).into_iter().map(plain).collect()
}

fn assert_parsed(prompt: &str, expected: &[(&str, f32)]) {
    let found = parsed(prompt);
    assert_eq!(found.len(), expected.len(), "{prompt:?} {found:?}");
    for ((text, weight), (expected_text, expected_weight)) in found.iter().zip(expected) {
        assert_eq!(text, expected_text, "{prompt:?}");
        assert!((weight - expected_weight).abs() < 1e-5, "{prompt:?} {found:?}");
    }
}

#[test]
fn every_corner_of_the_syntax() {
    assert_parsed("(unbalanced", &[("unbalanced", 1.1)]);
    assert_parsed("((a)", &[("a", 1.21)]);
    assert_parsed("[b", &[("b", 1.0 / 1.1)]);
    assert_parsed("a))", &[("a))", 1.0)]);
    assert_parsed("(a:)", &[("a:", 1.1)]);
    assert_parsed("(a:0)", &[("a", 0.0)]);
    assert_parsed("(a:1.3", &[("a:1.3", 1.1)]);
    assert_parsed("(a: 1.3 )", &[("a", 1.3)]);
    assert_parsed("(a:b:1.2)", &[("a:b", 1.2)]);
    assert_parsed("\\(literal\\]", &[("(literal]", 1.0)]);
    assert_parsed("a:1.2", &[("a:1.2", 1.0)]);
    assert_parsed("a:1.2)", &[("a:1.2)", 1.0)]);
    for empty in ["", "()", "[]"] {
        assert_parsed(empty, &[("", 1.0)]);
    }
    assert_parsed("(a [b (c:1.5)] d:0.5)", &[("a ", 0.5), ("b ", 0.454545), ("c", 0.681818), (" d", 0.5)]);
    assert_parsed("a BREAK b", &[("a", 1.0), ("BREAK", -1.0), ("b", 1.0)]);
    assert_parsed("((a:1.2):1.3)", &[("a", 1.56)]);
    assert_parsed("(a:1.1.1)", &[("a:1.1.1", 1.1)]);
    assert_parsed("(a:.)", &[("a:.", 1.1)]);
    assert_parsed("(a:-1)(b:+.5)(c:2.)", &[("a", -1.0), ("b", 0.5), ("c", 2.0)]);
    assert_parsed("a\\\\b \\c \\", &[("a\\b c ", 1.0)]);
    assert_parsed("breakBREAK BREAKs _BREAK", &[("breakBREAK BREAKs _BREAK", 1.0)]);
    assert_parsed("(a BREAK b:1.2)", &[("a", 1.2), ("BREAK", -1.0), ("b", 1.2)]);
    assert_parsed("(a[b)c]", &[("a", 1.1), ("b", 1.0), ("c", 1.0 / 1.1)]);
}

#[test]
fn weights_beyond_f32_stay_finite() {
    let deep = format!("{}a{}", "(".repeat(9000), ")".repeat(9000));
    let huge = format!("(a:{})", "9".repeat(400));
    let lost = format!("({}a{}:0)", "(".repeat(9000), ")".repeat(9000));
    for prompt in [&deep, &huge, &lost] {
        assert!(parsed(prompt).iter().all(|(_, weight)| weight.is_finite()));
    }
}

#[test]
fn deep_and_wide_prompts_take_linear_time() {
    let clip = Tokenizer::clip();
    for piece in
        ["(a", "[a", "(a:1.1)", "(", ")", "a BREAK ", "a, ", "\\(", "[a|b]", "<lora:x:1>", "<lora:", "[a:(", "AND "]
    {
        let prompt = piece.repeat(100_000 / piece.len());
        let started = std::time::Instant::now();
        let read = read(&prompt);
        let chunks = chunk(&clip, &read.pieces, POSITIONS);
        assert!(!chunks.ids.is_empty() && read.notices.len() < 8);
        let seconds = started.elapsed().as_secs_f64();
        // A quadratic step would take minutes; the bound leaves room for a slow, unoptimised build.
        assert!(seconds < 4.0, "{piece:?} took {seconds} s");
    }
}

fn chunks_of(prompt: &str) -> PromptChunks {
    let chunks = chunk(&Tokenizer::clip(), &parse(prompt), POSITIONS);
    for (ids, (weights, used)) in chunks.ids.iter().zip(chunks.weights.iter().zip(&chunks.used)) {
        assert_eq!((ids.len(), weights.len(), ids[0]), (POSITIONS, POSITIONS, 49406));
        assert!(ids[1 + used..].iter().all(|&id| id == 49407) && *used <= CAPACITY);
        assert!(weights[1 + used..].iter().all(|&w| w == 1.0) && weights[0] == 1.0);
        assert!(ids[1..1 + used].iter().all(|&id| id < 49406));
    }
    chunks
}

#[test]
fn an_empty_prompt_is_one_chunk() {
    for prompt in ["", "()", "  \n "] {
        assert_eq!(chunks_of(prompt).used, [0], "{prompt:?}");
    }
}

#[test]
fn full_chunks_are_cut_where_they_are_full() {
    assert_eq!(chunks_of(&"cat ".repeat(75)).used, [75]);
    assert_eq!(chunks_of(&"cat ".repeat(76)).used, [75, 1]);
    assert_eq!(chunks_of(&"cat ".repeat(151)).used, [75, 75, 1]);
}

#[test]
fn what_follows_a_late_comma_moves_on() {
    let with_comma_at = |at: usize| format!("{}, {}", "cat ".repeat(at), "dog ".repeat(90 - at));
    // The comma is the token at index `at`; 75 - at tokens back from the chunk's end.
    assert_eq!(chunks_of(&with_comma_at(54)).used, [75, 16]);
    assert_eq!(chunks_of(&with_comma_at(55)).used, [56, 35]);
    assert_eq!(chunks_of(&with_comma_at(74)).used, [75, 16]);
    assert_eq!(chunks_of(&with_comma_at(75)).used, [75, 16]);
    // Nothing moves when the chunk is exactly full, or when the next token is a comma itself.
    assert_eq!(chunks_of(&format!("{}, {}", "cat ".repeat(60), "dog ".repeat(14))).used, [75]);
    assert_eq!(chunks_of(&format!("{}, {}, b", "cat ".repeat(60), "dog ".repeat(14))).used, [75, 2]);
    // The weights move with their tokens.
    let moved = chunks_of(&format!("{}, (dog:1.5) {}", "cat ".repeat(60), "cow ".repeat(20)));
    assert_eq!((moved.used.as_slice(), moved.weights[1][1], moved.weights[1][2]), ([61, 21].as_slice(), 1.5, 1.0));
}

#[test]
fn break_pads_the_chunk_out() {
    let chunks = chunks_of("(a:1.2) BREAK b, c");
    assert_eq!(chunks.used, [1, 3]);
    assert_eq!((chunks.ids[0][1], chunks.ids[0][2], chunks.weights[0][1]), (320, 49407, 1.2));
    assert_eq!(chunks_of("a BREAK").used, [1]);
    assert_eq!(chunks_of(&format!("{} BREAK b", "cat ".repeat(75))).used, [75, 1]);
}

#[test]
fn the_counter_counts_like_the_chunks() {
    let clip = Tokenizer::clip();
    let short = count(&clip, "a photo of a cat <lora:x:1>", POSITIONS);
    assert_eq!((short.tokens(), short.room()), (5, 75));
    let long = count(&clip, "a BREAK b c", POSITIONS);
    assert_eq!((long.tokens(), long.room(), long.used.as_slice()), (77, 150, [1, 2].as_slice()));
    assert_eq!(count(&clip, "", POSITIONS).room(), 75);
}

#[test]
fn small_encoders_have_small_chunks() {
    let clip = Tokenizer::clip();
    for positions in 0..30 {
        let chunks = chunk(&clip, &parse("one, two, three, four five six seven, eight"), positions);
        let expected = positions.max(3);
        assert!(chunks.ids.iter().all(|ids| ids.len() == expected), "{positions}");
        assert_eq!(chunks.used.iter().sum::<usize>(), 12, "no token is lost with {positions} positions");
    }
}

#[test]
fn chunks_meet_by_repetition_or_apart() {
    assert_eq!(pair_chunks(1, 1, 8), Pairing::Together { prompt: 1, negative: 1 });
    assert_eq!(pair_chunks(1, 3, 8), Pairing::Together { prompt: 3, negative: 1 });
    assert_eq!(pair_chunks(2, 3, 8), Pairing::Together { prompt: 3, negative: 2 });
    assert_eq!(pair_chunks(4, 6, 12), Pairing::Together { prompt: 3, negative: 2 });
    assert_eq!(pair_chunks(7, 5, 8), Pairing::Apart);
    assert_eq!(pair_chunks(40, 40, 8), Pairing::Together { prompt: 1, negative: 1 });
    assert_eq!(pair_chunks(0, 3, 8), Pairing::Apart);
    assert_eq!(pair_chunks(usize::MAX, usize::MAX - 1, 8), Pairing::Apart);
}

#[test]
fn what_is_not_honoured_is_said() {
    let cases: [(&str, &[Notice]); 16] = [
        ("a (b:1.2) [c] {d|e}", &[]),
        ("[cat:dog:0.5]", &[Notice::PromptScheduling("[cat:dog:0.5]".into())]),
        ("[a (b:1.3):10]", &[Notice::PromptScheduling("[a (b:1.3):10]".into())]),
        ("[cat::.5] x [cat::.5]", &[Notice::PromptScheduling("[cat::.5]".into())]),
        ("[a: b]", &[]),
        ("[(a:1.2)]", &[]),
        ("\\[a:0.5\\]", &[]),
        ("[cow|horse]", &[Notice::PromptAlternation("[cow|horse]".into())]),
        ("a | b", &[]),
        ("cat AND dog", &[Notice::PromptComposition]),
        ("BRAND SAND ANDY", &[]),
        ("<lora:film:0.8> a", &[Notice::PromptExtraNetwork("<lora:film:0.8>".into())]),
        ("<lora:film <b> 1<2", &[]),
        ("微笑的女孩, 1girl", &[Notice::PromptNotEnglish]),
        ("портрет женщины", &[Notice::PromptNotEnglish]),
        ("a café in 東京, naïve", &[]),
    ];
    for (prompt, expected) in cases {
        assert_eq!(read(prompt).notices, expected, "{prompt:?}");
    }
    let kept = read("[cat:dog:0.5] <lora:x:1>a").pieces;
    let text = |piece: &Piece| match piece {
        Piece::Text { text, .. } => text.clone(),
        Piece::Break => String::new(),
    };
    assert_eq!(kept.iter().map(text).collect::<String>(), "cat:dog:0.5 a");
    assert!(read(&"[a|b] [c|d] [e|f] [g|h]".repeat(50)).notices.len() <= 3);
}

#[test]
fn no_prompt_fails() {
    let clip = Tokenizer::clip();
    let words = [
        "(", ")", "[", "]", ":", "1.2", "|", "\\", "BREAK", "AND", "<lora:", ">", "中", "é", "🙂", " ", ",", "a", "-",
        "\u{301}",
    ];
    let mut state = 7u64;
    for _ in 0..3000 {
        let mut prompt = String::new();
        for _ in 0..(state >> 40) % 30 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            prompt.push_str(words[(state >> 33) as usize % words.len()]);
        }
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let chunks = chunk(&clip, &read(&prompt).pieces, POSITIONS);
        assert!(chunks.weights.iter().flatten().all(|w| w.is_finite()), "{prompt:?}");
    }
}
