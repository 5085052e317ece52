//! Just enough of Rust's grammar to see what a source file names: tokens without comments, paths with `use` trees spread
//! out, and what is only compiled for tests taken away.

use std::path::{Path, PathBuf};

/// One word or mark, and the line it stands in, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub line: usize,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An identifier, keyword or number.
    Word(String),
    /// The contents of a string or character literal, escapes as they are written.
    Text(String),
    /// `::`, or a single mark.
    Mark(&'static str),
    Other(char),
}

impl Kind {
    pub fn is_word(&self, word: &str) -> bool {
        matches!(self, Kind::Word(own) if own == word)
    }

    pub fn is(&self, mark: char) -> bool {
        matches!(self, Kind::Other(own) if *own == mark)
    }

    fn is_path(&self) -> bool {
        *self == Kind::Mark("::")
    }
}

/// A path as the file names it, made absolute where it begins with `crate`, `self` or `super`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub line: usize,
    /// `["crate", "base", "Bytes"]`, `["std", "fs", "File"]`.
    pub path: Vec<String>,
}

/// A source file without what only tests compile.
pub struct Source {
    /// Below `src`: `engine/device/mod.rs`.
    pub file: PathBuf,
    pub text: String,
    pub tokens: Vec<Token>,
    /// Files, below `src`, that only tests compile, as this file declares them.
    pub test_files: Vec<PathBuf>,
}

impl Source {
    pub fn new(file: &Path, text: &str) -> Self {
        let (tokens, test_modules) = without_tests(tokens(text));
        let test_files = test_modules.into_iter().map(|module| module.file(file)).collect();
        Source { file: file.to_owned(), text: text.to_owned(), tokens, test_files }
    }

    /// `base`, `ui`, …; the file's own stem where it lies directly in `src`.
    pub fn folder(&self) -> String {
        let first = self.file.iter().next().unwrap_or_default();
        Path::new(first).file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// All paths of two or more segments, and every name that `use` brings in.
    pub fn named(&self) -> Vec<Named> {
        let module = module_of(&self.file);
        let mut all = Vec::new();
        let mut at = 0;
        while let Some(token) = self.tokens.get(at) {
            if token.kind.is_word("use") {
                at = spread(&self.tokens, at + 1, &[], &mut all);
            } else if let Kind::Word(first) = &token.kind {
                let mut path = vec![first.clone()];
                let line = token.line;
                at += 1;
                while self.tokens.get(at).is_some_and(|t| t.kind.is_path()) {
                    let Some(Token { kind: Kind::Word(next), .. }) = self.tokens.get(at + 1) else { break };
                    path.push(next.clone());
                    at += 2;
                }
                if path.len() > 1 {
                    all.push(Named { line, path });
                }
            } else {
                at += 1;
            }
        }
        for named in &mut all {
            absolute(&mut named.path, &module);
        }
        all
    }
}

/// `engine/device/mod.rs` → `["engine", "device"]`.
fn module_of(file: &Path) -> Vec<String> {
    let mut module: Vec<String> =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        module.pop();
    }
    module
}

fn absolute(path: &mut Vec<String>, module: &[String]) {
    let supers = path.iter().take_while(|part| *part == "super").count();
    let own = path.first().is_some_and(|first| first == "self");
    if supers == 0 && !own {
        return;
    }
    let kept = module.len().saturating_sub(supers);
    let tail = path.split_off(supers.max(1));
    *path = std::iter::once("crate".to_owned()).chain(module[..kept].iter().cloned()).chain(tail).collect();
}

/// Reads one `use` tree and returns where it ends.
fn spread(tokens: &[Token], mut at: usize, prefix: &[String], all: &mut Vec<Named>) -> usize {
    let mut path = prefix.to_vec();
    while let Some(token) = tokens.get(at) {
        match &token.kind {
            Kind::Word(word) if word == "as" => at += 1,
            // `{self}` names the path so far.
            Kind::Word(word) if word == "self" && !prefix.is_empty() => {}
            Kind::Word(word) => path.push(word.clone()),
            Kind::Other('*') => path.push("*".to_owned()),
            Kind::Other('{') => {
                at += 1;
                while tokens.get(at).is_some_and(|t| !t.kind.is('}')) {
                    at = spread(tokens, at, &path, all);
                    if tokens.get(at).is_some_and(|t| t.kind.is(',')) {
                        at += 1;
                    }
                }
                return at + 1;
            }
            Kind::Mark("::") => {}
            _ => break,
        }
        at += 1;
    }
    if let Some(last) = at.checked_sub(1).and_then(|last| tokens.get(last)) {
        all.push(Named { line: last.line, path });
    }
    at
}

/// A module that only tests compile and that has a file of its own.
struct TestModule {
    name: String,
    /// From `#[path = "…"]`.
    path: Option<String>,
}

impl TestModule {
    fn file(&self, declared_in: &Path) -> PathBuf {
        let beside = declared_in.parent().unwrap_or(Path::new(""));
        match &self.path {
            Some(path) => beside.join(path),
            None if declared_in.ends_with("mod.rs") || declared_in.parent() == Some(Path::new("")) => {
                beside.join(format!("{}.rs", self.name))
            }
            None => declared_in.with_extension("").join(format!("{}.rs", self.name)),
        }
    }
}

/// Takes every item under `#[cfg(test)]` away.
fn without_tests(tokens: Vec<Token>) -> (Vec<Token>, Vec<TestModule>) {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut modules = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !is_cfg_test(&tokens[at..]) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        let mut path = None;
        while tokens.get(at).is_some_and(|t| t.kind.is('#')) {
            let end = matching(&tokens, at + 1, '[', ']');
            if let [Kind::Word(key), Kind::Other('='), Kind::Text(text)] =
                &tokens[at + 2..end - 1].iter().map(|t| t.kind.clone()).collect::<Vec<_>>()[..]
                && key == "path"
            {
                path = Some(text.clone());
            }
            at = end;
        }
        let item = at;
        while tokens.get(at).is_some_and(|t| !t.kind.is(';') && !t.kind.is('{')) {
            at += 1;
        }
        if tokens.get(at).is_some_and(|t| t.kind.is('{')) {
            at = matching(&tokens, at, '{', '}');
            // `use a::{b};` has its end after the braces.
            if tokens.get(item).is_some_and(|t| t.kind.is_word("use")) {
                at += 1;
            }
            continue;
        }
        let words: Vec<&Kind> = tokens[item..at].iter().map(|t| &t.kind).collect();
        if let Some([_, Kind::Word(name)]) = words.iter().position(|k| k.is_word("mod")).map(|from| &words[from..]) {
            modules.push(TestModule { name: name.clone(), path });
        }
        at += 1;
    }
    (kept, modules)
}

fn is_cfg_test(tokens: &[Token]) -> bool {
    let [hash, open, cfg, round, test, ..] = tokens else { return false };
    hash.kind.is('#') && open.kind.is('[') && cfg.kind.is_word("cfg") && round.kind.is('(') && test.kind.is_word("test")
}

/// The position after the mark that closes the one at `from`.
fn matching(tokens: &[Token], from: usize, open: char, close: char) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        if token.kind.is(open) {
            depth += 1;
        } else if token.kind.is(close) {
            depth -= 1;
            if depth == 0 {
                return at + 1;
            }
        }
    }
    tokens.len()
}

/// Words and marks of a file; comments are left out.
fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    let starts = |at: usize, what: &str| what.chars().enumerate().all(|(i, c)| chars.get(at + i) == Some(&c));
    while at < chars.len() {
        let c = chars[at];
        let begun = at;
        let kind = if c.is_whitespace() {
            at += 1;
            None
        } else if starts(at, "//") {
            while at < chars.len() && chars[at] != '\n' {
                at += 1;
            }
            None
        } else if starts(at, "/*") {
            let mut depth = 0;
            loop {
                if starts(at, "/*") {
                    depth += 1;
                    at += 2;
                } else if starts(at, "*/") {
                    depth -= 1;
                    at += 2;
                } else {
                    at += 1;
                }
                if depth == 0 || at >= chars.len() {
                    break;
                }
            }
            None
        } else if let Some(hashes) = raw_string(&chars[at..]) {
            let end = format!("\"{}", "#".repeat(hashes));
            while chars[at] != '"' {
                at += 1;
            }
            let from = at + 1;
            at = from;
            while at < chars.len() && !starts(at, &end) {
                at += 1;
            }
            let inside = chars[from..at].iter().collect();
            at += end.chars().count();
            Some(Kind::Text(inside))
        } else if c == '"' || (c == '\'' && is_char(&chars[at..])) {
            at += 1;
            let from = at;
            while at < chars.len() && chars[at] != c {
                at += if chars[at] == '\\' { 2 } else { 1 };
            }
            let inside = chars[from..at.min(chars.len())].iter().collect();
            at += 1;
            Some(Kind::Text(inside))
        } else if c.is_alphanumeric() || c == '_' {
            while at < chars.len() && (chars[at].is_alphanumeric() || chars[at] == '_') {
                at += 1;
            }
            let word: String = chars[begun..at].iter().collect();
            // The letter before `b"…"` belongs to the string.
            (!(matches!(word.as_str(), "b" | "c") && matches!(chars.get(at), Some('"' | '\''))))
                .then_some(Kind::Word(word))
        } else if starts(at, "::") {
            at += 2;
            Some(Kind::Mark("::"))
        } else {
            at += 1;
            Some(Kind::Other(c))
        };
        if let Some(kind) = kind {
            found.push(Token { line, kind });
        }
        line += chars[begun..at.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    found
}

/// How many `#` a raw string that begins here has.
fn raw_string(chars: &[char]) -> Option<usize> {
    let skip = match chars {
        ['r', ..] => 1,
        ['b' | 'c', 'r', ..] => 2,
        _ => return None,
    };
    let hashes = chars[skip..].iter().take_while(|c| **c == '#').count();
    (chars.get(skip + hashes) == Some(&'"')).then_some(hashes)
}

/// Tells `'a'` from the lifetime `'a`.
fn is_char(chars: &[char]) -> bool {
    matches!(chars, [_, '\\', ..] | [_, _, '\'', ..])
}
