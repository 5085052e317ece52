//! The shape of the sources: which folder may name what, what may panic, and how long a file is.
//!
//! In one package the compiler lets every folder use every other. ARCHITECTURE.md says which may; [`FOLDERS`] is that table,
//! and a line that breaks it fails here with file, line and reason.

mod source;

use source::{Kind, Source};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// A longer file has become two things.
const MOST_LINES: usize = 800;

/// One row of the table in ARCHITECTURE.md.
struct Folder {
    name: &'static str,
    /// Folders of ours, or paths in them.
    ours: &'static [&'static str],
    crates: Crates,
    /// What it never names, of `std` or of ours.
    never: &'static [&'static str],
    why: &'static str,
}

enum Crates {
    Only(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

const TENSORS: &[&str] = &["burn", "burn_cubecl", "cubecl", "cudarc"];

const FOLDERS: &[Folder] = &[
    Folder {
        name: "base",
        ours: &[],
        crates: Crates::Only(&["serde", "serde_json", "thiserror"]),
        never: &["std::fs", "std::thread", "std::net", "std::process::Command", "std::env", "std::time::Instant"],
        why: "base is plain data and knows nobody",
    },
    Folder {
        name: "text",
        ours: &["base"],
        crates: Crates::Only(&["serde"]),
        never: &["std::fs", "std::thread", "std::net", "std::process", "std::env", "std::time::Instant", "std::sync"],
        why: "text puts plain data into words, and does nothing else",
    },
    Folder {
        name: "kernels",
        ours: &[],
        crates: Crates::Only(&["burn", "burn_cubecl", "burn_flex", "cubecl", "half", "rayon", "thiserror"]),
        never: &["std::fs", "std::thread", "std::net", "std::process", "std::env", "std::time::Instant"],
        why: "kernels are arithmetic on the device: no files, no state",
    },
    Folder {
        name: "diffusion",
        ours: &["base", "kernels"],
        crates: Crates::Only(&[
            "burn",
            "safetensors",
            "serde",
            "serde_json",
            "half",
            "thiserror",
            "tracing",
            "unicode_normalization",
        ]),
        never: &[
            "std::thread",
            "std::net",
            "std::process",
            "std::env",
            "std::time::Instant",
            // A file's time may be looked at, the clock may not.
            "std::time::SystemTime::now",
            "SystemTime::now",
            "std::sync::Mutex",
            "std::sync::RwLock",
            "std::sync::Condvar",
            "std::sync::mpsc",
            "std::sync::atomic",
            "crate::base::MemoryReading",
            "crate::base::memory",
            "crate::base::choice::MemoryLimits",
        ],
        why: "the model knows no threads, locks, clocks or byte budgets: whoever calls decides",
    },
    Folder {
        name: "memory",
        ours: &["base", "diffusion"],
        crates: Crates::Only(&[
            "burn",
            "cubecl",
            "nvml_wrapper",
            "sysinfo",
            "serde",
            "serde_json",
            "thiserror",
            "tracing",
        ]),
        never: &["std::net"],
        why: "memory decides about bytes; it draws nothing and does no arithmetic of the model",
    },
    Folder {
        name: "engine",
        ours: &["base", "memory", "diffusion"],
        crates: Crates::AllBut(&["egui", "eframe", "rfd", "clap", "arboard", "lucide_icons", "indicatif"]),
        never: &["std::net"],
        why: "the engine serves the window and the command line alike and knows neither",
    },
    Folder {
        name: "library",
        ours: &["base"],
        crates: Crates::Only(&["serde", "serde_json", "directories", "thiserror", "tracing", "crossbeam_channel"]),
        never: &[],
        why: "the library is what lies on disk besides a run",
    },
    Folder {
        name: "studio",
        ours: &["base", "engine::protocol", "library::protocol"],
        crates: Crates::Only(&["serde", "serde_json", "thiserror", "tracing", "crossbeam_channel"]),
        never: &[
            "std::fs",
            "std::thread",
            "std::net",
            "std::process",
            "std::env",
            "std::sync::Mutex",
            "std::sync::RwLock",
            "std::sync::Condvar",
            "std::sync::mpsc",
        ],
        why: "the studio runs on the window's thread: it never waits, and what touches a file is an Effect",
    },
    Folder {
        name: "ui",
        ours: &["base", "text", "studio", "engine::protocol"],
        crates: Crates::Only(&["egui", "lucide_icons"]),
        never: &[
            "std::fs",
            "std::thread",
            "std::net",
            "std::process",
            "std::env",
            "std::time::Instant",
            "std::time::SystemTime",
            "std::sync::Mutex",
            "std::sync::RwLock",
            "std::sync::Condvar",
            "std::sync::mpsc",
            "crate::engine::protocol::Command",
            "crate::engine::protocol::EngineHandle",
            "crate::engine::protocol::JobControl",
        ],
        why: "drawing reads the studio and returns actions; it changes and starts nothing",
    },
    Folder {
        name: "app",
        ours: &["base", "text", "ui", "studio", "engine", "memory", "diffusion", "library", "cli"],
        crates: Crates::AllBut(&["burn", "burn_cubecl", "cubecl", "cudarc", "clap", "indicatif"]),
        never: &["std::net"],
        why: "the app ties window, studio and engine together; tensors and arguments are others' business",
    },
    Folder {
        name: "cli",
        ours: &["base", "text", "engine", "memory", "diffusion", "library"],
        crates: Crates::AllBut(&[
            "egui",
            "eframe",
            "rfd",
            "arboard",
            "lucide_icons",
            "burn",
            "burn_cubecl",
            "cubecl",
            "cudarc",
        ]),
        never: &["std::net", "crate::ui", "crate::studio", "crate::app"],
        why: "the command line is the engine without a window",
    },
    Folder {
        name: "main",
        ours: &["base", "text", "engine", "cli", "app"],
        crates: Crates::AllBut(TENSORS),
        never: &["std::net", "std::fs"],
        why: "main looks at the arguments and calls one of the entry points",
    },
    Folder { name: "lib", ours: &[], crates: Crates::Only(&[]), never: &[], why: "lib.rs only lists modules" },
];

/// Asking the disk needs no `use`; these folders may not ask it.
const ASKING_THE_DISK: &[&str] = &["is_dir", "is_file", "exists", "try_exists", "canonicalize", "read_dir", "metadata"];
const WITHOUT_DISK: &[&str] = &["base", "text", "kernels", "studio", "ui"];

/// Han characters elsewhere than in `src/text`: a language's own name for itself, the same in every language.
const HAN_ELSEWHERE: &[&str] = &["base/lang.rs"];

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every source file of the program; files that only tests compile come second.
fn sources() -> (Vec<Source>, Vec<Source>) {
    let root = package().join("src");
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.expect("a folder entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    let all: Vec<Source> = files
        .iter()
        .map(|file| {
            let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            Source::new(file.strip_prefix(&root).expect("a file below src"), &text)
        })
        .collect();
    let for_tests: BTreeSet<PathBuf> = all.iter().flat_map(|source| source.test_files.iter().cloned()).collect();
    all.into_iter().partition(|source| !for_tests.contains(&source.file))
}

/// The names by which code calls the packages of `[dependencies]`.
fn dependencies() -> BTreeSet<String> {
    let manifest = fs::read_to_string(package().join("Cargo.toml")).expect("Cargo.toml");
    let section = manifest.split("\n[").find_map(|part| part.strip_prefix("dependencies]")).expect("dependencies");
    let names = section.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name.trim().replace('-', "_"));
    let names: BTreeSet<String> = names.filter(|name| !name.starts_with('#')).collect();
    assert!(names.contains("burn") && names.contains("crossbeam_channel"), "{names:?}");
    names
}

fn fail_with(found: &[String]) {
    let mut report = String::new();
    for line in found {
        let _ = writeln!(report, "  {line}");
    }
    assert!(found.is_empty(), "{} found:\n{report}", found.len());
}

/// Whether `path` is `prefix` or lies below it; both with `::`.
fn lies_in(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// What a file names that its folder may not.
fn trespasses(source: &Source, dependencies: &BTreeSet<String>) -> Vec<String> {
    let place = |line: usize| format!("src/{}:{line}", source.file.display());
    let own = source.folder();
    let Some(folder) = FOLDERS.iter().find(|folder| folder.name == own) else {
        return vec![format!("{}: {own} has no row in the table of folders", place(1))];
    };
    let mut found = Vec::new();
    for named in source.named() {
        let mut path = named.path.join("::");
        // The binary calls the library by the package's name.
        if lies_in(&path, "softbox") {
            path = path.replacen("softbox", "crate", 1);
        }
        let first = path.split("::").next().unwrap_or_default();
        let allowed = if first == "crate" {
            let inside = path.trim_start_matches("crate").trim_start_matches("::");
            let at_home = inside.is_empty() || lies_in(inside, &own) || own == "lib";
            at_home || folder.ours.iter().any(|ours| lies_in(inside, ours) || lies_in(ours, inside))
        } else if dependencies.contains(first) {
            match folder.crates {
                Crates::Only(some) => some.contains(&first),
                Crates::AllBut(some) => !some.contains(&first),
            }
        } else {
            true
        };
        if !allowed || folder.never.iter().any(|never| lies_in(&path, never)) {
            found.push(format!("{}: {own} may not name {path}: {}", place(named.line), folder.why));
        }
    }
    if WITHOUT_DISK.contains(&own.as_str()) {
        for window in source.tokens.windows(3) {
            if let [dot, word, open] = window
                && dot.kind.is('.')
                && open.kind.is('(')
                && let Kind::Word(method) = &word.kind
                && ASKING_THE_DISK.contains(&method.as_str())
            {
                found.push(format!("{}: {own} may not ask the disk ({method}): {}", place(word.line), folder.why));
            }
        }
    }
    found
}

/// Where a file gives up instead of answering.
fn panics(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for window in source.tokens.windows(3) {
        let [before, word, after] = window else { continue };
        let Kind::Word(name) = &word.kind else { continue };
        let method = before.kind.is('.') && after.kind.is('(');
        let macro_call = after.kind.is('!');
        let gives_up = match name.as_str() {
            "unwrap" | "expect" | "unwrap_err" | "expect_err" | "unwrap_unchecked" => method,
            "panic" | "todo" | "unimplemented" | "unreachable" | "dbg" => macro_call,
            // They panic where nobody reads any more; cli/write.rs does not.
            "print" | "println" | "eprint" | "eprintln" => macro_call,
            _ => false,
        };
        if gives_up {
            found.push(format!("src/{}:{}: {name} outside tests", source.file.display(), word.line));
        }
    }
    found
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{303F}' | '\u{3400}'..='\u{9FFF}' | '\u{FF00}'..='\u{FFEF}')
}

#[test]
fn folders_name_only_what_they_may() {
    let (sources, _) = sources();
    assert!(sources.len() > 50, "only {} files were found", sources.len());
    let dependencies = dependencies();
    fail_with(&sources.iter().flat_map(|source| trespasses(source, &dependencies)).collect::<Vec<_>>());
}

#[test]
fn nothing_gives_up_outside_tests() {
    let (sources, _) = sources();
    fail_with(&sources.iter().flat_map(panics).collect::<Vec<_>>());
}

#[test]
fn the_window_only_reads_the_studio() {
    let (sources, _) = sources();
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| source.folder() == "ui") {
        for window in source.tokens.windows(3) {
            if let [and, mutable, name] = window
                && and.kind.is('&')
                && mutable.kind.is_word("mut")
                && name.kind.is_word("Studio")
            {
                found.push(format!("src/{}:{}: ui takes &mut Studio", source.file.display(), name.line));
            }
        }
    }
    fail_with(&found);
}

#[test]
fn every_file_says_what_it_is_and_is_one_thing() {
    let (sources, for_tests) = sources();
    let mut found = Vec::new();
    for source in sources.iter().chain(&for_tests) {
        let file = source.file.display();
        if !source.text.starts_with("//! ") {
            found.push(format!("src/{file}:1: no //! header"));
        }
        let lines = source.text.lines().count();
        if lines > MOST_LINES {
            found.push(format!("src/{file}:{lines}: longer than {MOST_LINES} lines"));
        }
    }
    fail_with(&found);
}

#[test]
fn sentences_live_in_text() {
    let (sources, _) = sources();
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| source.folder() != "text") {
        if HAN_ELSEWHERE.iter().any(|file| source.file == Path::new(file)) {
            continue;
        }
        for token in &source.tokens {
            if let Kind::Text(text) = &token.kind
                && text.chars().filter(|c| is_han(*c)).count() > 1
            {
                found.push(format!("src/{}:{}: \"{text}\" belongs into src/text", source.file.display(), token.line));
            }
        }
    }
    fail_with(&found);
}

/// What these tests would say of a file.
fn said_of(file: &str, text: &str) -> Vec<String> {
    let source = Source::new(Path::new(file), text);
    let mut found = trespasses(&source, &dependencies());
    found.extend(panics(&source));
    found
}

#[test]
fn the_table_is_enforced() {
    let broken = [
        ("base/x.rs", "use crate::text::window;"),
        ("base/x.rs", "fn f() { std::thread::yield_now(); }"),
        ("base/x.rs", "fn f(p: &Path) -> bool { p.is_dir() }"),
        ("diffusion/x.rs", "use std::{fs, time::{Duration, Instant}};"),
        ("diffusion/x.rs", "use std::time::SystemTime; fn f() { SystemTime::now(); }"),
        ("diffusion/unet/x.rs", "use std::sync::{Arc, Mutex};"),
        ("diffusion/x.rs", "use super::super::memory::Keeper;"),
        ("memory/x.rs", "use crate::engine::protocol::Event;"),
        ("engine/device/mod.rs", "use egui::Context;"),
        ("studio/x.rs", "use crate::engine::{protocol::Event, worker::Worker};"),
        ("studio/mod.rs", "use super::engine::Worker;"),
        ("studio/x.rs", "fn f() { let _ = std::fs::read(\"x\"); }"),
        ("ui/x.rs", "use burn::tensor::Tensor;"),
        ("ui/widgets/x.rs", "fn f(c: &crossbeam_channel::Sender<u8>) {}"),
        ("ui/x.rs", "use crate::engine::protocol::Command as Order;"),
        ("cli/x.rs", "use crate::studio::Studio;"),
        ("main.rs", "fn main() { burn::tensor::Device::flex(); }"),
        ("strange/x.rs", "//! A folder that nobody has thought about."),
        ("engine/x.rs", "fn f(x: Option<u8>) -> u8 { x.unwrap() }"),
        ("cli/x.rs", "fn f() { eprintln!(\"x\"); }"),
        ("engine/x.rs", "#[cfg(test)]\nmod tests { fn f() { panic!() } }\nfn g() { todo!() }"),
        ("engine/x.rs", "#[cfg(test)] use a::{b, c};\nfn g() { unreachable!() }"),
    ];
    for (file, text) in broken {
        assert_eq!(said_of(file, text).len(), 1, "{file}: {text}: {:?}", said_of(file, text));
    }
}

#[test]
fn what_is_allowed_passes() {
    let sound = [
        (
            "base/x.rs",
            "//! Not std::fs::read, nor x.unwrap().\nuse super::Bytes; /* crate::ui /* burn::x */ panic!() */",
        ),
        (
            "base/x.rs",
            "const A: &str = \"use burn::x; y.unwrap()\"; const B: &str = r#\"\"panic!()\"#; const C: char = '\"';",
        ),
        ("base/x.rs", "fn f<'a>(x: &'a str) -> &'a str { x }"),
        ("diffusion/x.rs", "use crate::base::{Bytes, Size}; use std::{fs, sync::Arc};"),
        ("studio/x.rs", "use crate::engine::protocol::{self, Event}; use std::time::Duration;"),
        ("ui/x.rs", "use egui::{Ui, Vec2}; use crate::{base::Bytes, studio::Studio, text::window as w};"),
        ("engine/x.rs", "#[cfg(test)]\nmod tests { use egui::Ui; fn f() { None::<u8>.unwrap(); } }"),
        ("engine/x.rs", "fn f(x: Option<u8>) -> u8 { x.unwrap_or_default() }"),
        ("main.rs", "fn main() { softbox::cli::run(); }"),
    ];
    for (file, text) in sound {
        assert!(said_of(file, text).is_empty(), "{file}: {text}: {:?}", said_of(file, text));
    }
}

#[test]
fn test_files_and_lines_are_found() {
    let test_files = |file: &str, text: &str| Source::new(Path::new(file), text).test_files;
    assert_eq!(test_files("a/b.rs", "#[cfg(test)]\nmod tests;"), [Path::new("a/b/tests.rs")]);
    assert_eq!(test_files("a/mod.rs", "#[cfg(test)] pub(crate) mod checks;"), [Path::new("a/checks.rs")]);
    assert_eq!(test_files("a/b.rs", "#[cfg(test)]\n#[path = \"b_tests.rs\"]\nmod tests;"), [Path::new("a/b_tests.rs")]);
    assert!(test_files("a/b.rs", "mod real;").is_empty());
    let said = said_of("engine/x.rs", "// one\nconst A: &str = \"two\nthree\";\nfn f() { todo!() }");
    assert_eq!(said, ["src/engine/x.rs:4: todo outside tests"]);
}
