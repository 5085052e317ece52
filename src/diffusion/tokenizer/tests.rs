//! Token ids against the published ones, and folders of every form.

use super::*;
use serde_json::json;
use std::path::PathBuf;

#[test]
fn ids_equal_those_of_clips_own_tokenizer() {
    let clip = Tokenizer::clip();
    let cases: [(&str, &[u32]); 17] = [
        ("a photo of a cat", &[320, 1125, 539, 320, 2368]),
        ("  a   photo\tof\na cat ", &[320, 1125, 539, 320, 2368]),
        ("A PHOTO", &[320, 1125]),
        ("", &[]),
        (",", &[267]),
        ("...", &[678]),
        ("caf\u{e9}", &[15304]),
        ("cafe\u{301}", &[15304]),
        ("don't", &[847, 713]),
        ("2024", &[273, 271, 273, 275]),
        ("1girl", &[272, 1611]),
        ("½", &[33613]),
        ("🙂", &[14860]),
        ("中文", &[19759, 255, 29032, 485]),
        ("(masterpiece:1.2)", &[263, 12066, 281, 272, 269, 273, 264]),
        ("can’t", &[753, 713]),
        ("can&rsquo;t &amp; can&#39;t", &[753, 713, 261, 753, 713]),
    ];
    for (text, ids) in cases {
        assert_eq!(clip.encode(text), ids, "{text:?}");
    }
    assert_eq!(clip.special(), SpecialTokens { start: 49406, end: 49407, pad: 49407, unknown: 49407 });
    assert_eq!((clip.vocabulary_size(), clip.comma()), (49408, Some(267)));
}

#[test]
fn special_tokens_cannot_be_typed() {
    let clip = Tokenizer::clip();
    for text in ["<|endoftext|>", "a <|startoftext|> b", "&lt;|endoftext|&gt;", "＜|endoftext|＞"] {
        let ids = clip.encode(text);
        assert!(!ids.is_empty() && ids.iter().all(|&id| id < 49406), "{text:?} {ids:?}");
    }
}

#[test]
fn long_prompts_take_linear_time() {
    let clip = Tokenizer::clip();
    let cases = ["a portrait of a woman, ", "aaaaaaaaaa", "&", "&amp", "!?", "é", "<|endoftext|>"];
    for piece in cases {
        let short = piece.repeat(100_000 / piece.len());
        let started = std::time::Instant::now();
        let ids = clip.encode(&short);
        let seconds = started.elapsed().as_secs_f64();
        assert!(!ids.is_empty());
        // A quadratic step would take minutes; the bound leaves room for a slow, unoptimised build.
        assert!(seconds < 3.0, "{piece:?} took {seconds} s");
    }
}

/// A folder of its own under the system's temporary folder, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, String)]) -> Self {
        let path = std::env::temp_dir().join(format!("softbox-tokenizer-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        for (file, text) in files {
            std::fs::write(path.join(file), text).unwrap();
        }
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A vocabulary that spells only a, b, c and their merges ab, abc</w>.
fn small_vocabulary() -> String {
    let spellings = ["<s>", "</s>", "a", "b", "c", "a</w>", "b</w>", "c</w>", "ab", "abc</w>", "!", ",</w>"];
    json!(spellings.iter().zip(0..).map(|(s, id)| (s.to_string(), json!(id))).collect::<serde_json::Map<_, _>>())
        .to_string()
}

#[test]
fn a_folder_decides_everything() {
    let merges = "#version: 0.2\na b\nab c</w>\n".to_owned();
    let config =
        json!({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "unk_token": "</s>", "pad_token": "</s>"});
    let map = json!({"pad_token": "!"});
    let added = json!({"<style-x>": 20, "<style>": 21});
    let folder = Folder::new(
        "old",
        &[
            ("vocab.json", small_vocabulary()),
            ("merges.txt", merges),
            ("tokenizer_config.json", config.to_string()),
            ("special_tokens_map.json", map.to_string()),
            ("added_tokens.json", added.to_string()),
        ],
    );
    let small = Tokenizer::from_folder(&folder.0).unwrap();
    assert_eq!(small.special(), SpecialTokens { start: 0, end: 1, pad: 10, unknown: 1 });
    assert_eq!(small.encode("abc ab, b"), [9, 2, 6, 11, 6]);
    assert_eq!(small.encode("abc<style-x>a<style>"), [9, 20, 5, 21]);
    assert_eq!(small.encode("xa"), [1, 5], "what cannot be spelled is unknown");
    assert_eq!((small.vocabulary_size(), small.comma()), (22, Some(11)));
}

#[test]
fn a_lone_tokenizer_json_is_enough() {
    let tokens = json!([{"id": 0, "content": "<s>", "special": true}, {"id": 1, "content": "</s>", "special": true}]);
    let config = json!({"bos_token": "<s>", "eos_token": "</s>", "unk_token": "</s>", "pad_token": "</s>"});
    for merges in [json!(["a b", "ab c</w>"]), json!([["a", "b"], ["ab", "c</w>"]])] {
        let vocabulary: serde_json::Value = serde_json::from_str(&small_vocabulary()).unwrap();
        let whole = json!({"added_tokens": tokens, "model": {"vocab": vocabulary, "merges": merges}});
        let files = [("tokenizer.json", whole.to_string()), ("tokenizer_config.json", config.to_string())];
        let folder = Folder::new("new", &files);
        let small = Tokenizer::from_folder(&folder.0).unwrap();
        assert_eq!(small.encode("ABC ab"), [9, 2, 6]);
        assert_eq!(small.encode("</s>").iter().filter(|&&id| id == 9).count(), 0);
    }
}

#[test]
fn damaged_folders_are_errors_that_name_the_file() {
    let good = ("merges.txt", "a b\n".to_owned());
    let cases = [
        ("none", vec![], "vocab.json"),
        ("half", vec![("vocab.json", small_vocabulary())], "merges.txt"),
        ("text", vec![("vocab.json", "<html>".to_owned()), good.clone()], "not valid JSON"),
        ("ids", vec![("vocab.json", "{\"a\": -1}".to_owned()), good.clone()], "the id of \"a\""),
        ("special", vec![("vocab.json", small_vocabulary()), good], "<|startoftext|>"),
    ];
    for (name, files, expected) in cases {
        let folder = Folder::new(name, &files);
        let error = Tokenizer::from_folder(&folder.0).unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[test]
fn no_text_fails() {
    let clip = Tokenizer::clip();
    let alphabet: Vec<char> = "aB 1é中🙂'’&#x;<|>\u{301}\u{0}\u{feff}\u{fb03}ǅİςΣ½Ⓐ\u{10ffff}\n,".chars().collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..3000 {
        let mut text = String::new();
        for _ in 0..state % 40 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            text.push(alphabet[(state >> 33) as usize % alphabet.len()]);
        }
        state = state.wrapping_add(0x9e37_79b9).wrapping_mul(6364136223846793005) ^ (state >> 29);
        assert!(clip.encode(&text).iter().all(|&id| id < 49406), "{text:?}");
    }
}
