//! What the `.yaml` beside a checkpoint says of its prediction type, in block or flow style. Called by `inspect`.
//!
//! Of YAML 1.2 this reads what such files are written in: nested mappings and sequences in either style, the three plain
//! and quoted kinds of scalars, block scalars, comments, tags and anchors. All that is asked of it is one key, wherever
//! it stands.

/// The first value of the key `parameterization`; `None` where it is absent, null, or no scalar.
pub fn parameterization(yaml: &str) -> Option<String> {
    value_of(yaml.trim_start_matches('\u{feff}'), "parameterization")
}

fn value_of(yaml: &str, wanted: &str) -> Option<String> {
    let mut text = Cursor { rest: yaml, depth: 0, line_start: true, column: 0, indent: 0 };
    // The last key that has no value yet.
    let mut key: Option<String> = None;
    while let Some(token) = text.next() {
        match token {
            Token::Scalar(scalar) if text.takes_colon() => key = Some(scalar),
            Token::Scalar(scalar) => {
                if key.take().as_deref() == Some(wanted) {
                    return Some(scalar).filter(|value| !matches!(value.as_str(), "" | "~" | "null"));
                }
            }
            // A mapping or sequence is the value, or the entry ends without one.
            Token::Mark => key = None,
        }
    }
    None
}

enum Token {
    Scalar(String),
    /// A bracket, a comma, or a dash.
    Mark,
}

/// Where in the text reading stands.
struct Cursor<'a> {
    rest: &'a str,
    /// How many flow brackets are open.
    depth: usize,
    /// Nothing but white space stands before on this line.
    line_start: bool,
    /// Of the line's first word, in characters, behind the dashes before it; counted while `line_start`.
    column: usize,
    /// What a block scalar has to be indented more than: the column of its key or dash.
    indent: usize,
}

impl Cursor<'_> {
    fn next(&mut self) -> Option<Token> {
        loop {
            self.skip_space();
            let first = self.rest.chars().next()?;
            let indicator = matches!(first, '-' | '?') && self.rest[1..].starts_with([' ', '\t', '\r', '\n']);
            if self.line_start && !matches!(first, '|' | '>' | '!' | '&') {
                self.indent = self.column;
            }
            match first {
                '#' => self.skip_line(),
                '{' | '[' => {
                    self.skip(1);
                    self.depth += 1;
                    return Some(Token::Mark);
                }
                '}' | ']' => {
                    self.skip(1);
                    self.depth = self.depth.saturating_sub(1);
                    return Some(Token::Mark);
                }
                ',' if self.depth > 0 => {
                    self.skip(1);
                    return Some(Token::Mark);
                }
                // A dash sets the indentation of what stands behind it, so the line has only begun.
                _ if indicator && self.depth == 0 => {
                    self.rest = &self.rest[1..];
                    self.column += 1;
                    return Some(Token::Mark);
                }
                '|' | '>' if self.depth == 0 => self.skip_block(),
                '!' | '&' => {
                    let end = self.rest.find([' ', '\t', '\r', '\n', ',', '}', ']']).unwrap_or(self.rest.len());
                    self.skip(end);
                }
                '"' | '\'' => return Some(Token::Scalar(self.quoted(first))),
                _ => return Some(Token::Scalar(self.plain())),
            }
        }
    }

    /// Takes the colon that makes the scalar just read a key, if one follows.
    fn takes_colon(&mut self) -> bool {
        let after = self.rest.trim_start_matches([' ', '\t']);
        let Some(behind) = after.strip_prefix(':') else { return false };
        let ends = behind.is_empty() || behind.starts_with([' ', '\t', '\r', '\n', '"', '\'']);
        if ends || (self.depth > 0 && behind.starts_with(['{', '[', ',', '}', ']'])) {
            self.skip(self.rest.len() - behind.len());
            return true;
        }
        false
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
        self.line_start = false;
    }

    fn skip_space(&mut self) {
        while let Some(c) = self.rest.chars().next().filter(|c| c.is_whitespace()) {
            if c == '\n' {
                self.line_start = true;
                self.column = 0;
            } else if self.line_start {
                self.column += 1;
            }
            self.rest = &self.rest[c.len_utf8()..];
        }
    }

    fn skip_line(&mut self) {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        self.skip(end);
    }

    /// A literal or folded text: all lines that are indented more than the one that announced it.
    fn skip_block(&mut self) {
        let indent = self.indent;
        self.skip_line();
        while let Some(line) = self.rest.strip_prefix('\n') {
            let end = line.find('\n').unwrap_or(line.len());
            let line = &line[..end];
            let depth = line.chars().take_while(|c| *c == ' ').count();
            if !line.trim().is_empty() && depth <= indent {
                return;
            }
            self.skip(1 + end);
        }
    }

    /// What stands between these quotes; the other escapes than that of the quote itself stay as they are.
    fn quoted(&mut self, quote: char) -> String {
        self.skip(1);
        let mut value = String::new();
        let mut chars = self.rest.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let escaped = match (quote, c) {
                ('"', '\\') => true,
                ('\'', '\'') => chars.peek().is_some_and(|(_, next)| *next == '\''),
                _ => false,
            };
            if escaped && let Some((_, next)) = chars.next() {
                value.push(next);
            } else if c == quote {
                self.skip(at + 1);
                return value;
            } else {
                value.push(c);
            }
        }
        self.skip(self.rest.len());
        value
    }

    /// A scalar without quotes: to the end of the line, a comment, a colon, or in flow style a bracket or comma.
    fn plain(&mut self) -> String {
        let mut before = ' ';
        let mut end = self.rest.len();
        for (at, c) in self.rest.char_indices() {
            let behind = &self.rest[at + c.len_utf8()..];
            let colon = c == ':' && (behind.is_empty() || behind.starts_with([' ', '\t', '\r', '\n']));
            let flow = self.depth > 0
                && (matches!(c, ',' | '{' | '}' | '[' | ']')
                    || (c == ':' && behind.starts_with([',', '{', '}', '[', ']'])));
            if c == '\n' || colon || flow || (c == '#' && before.is_whitespace() && at > 0) {
                end = at;
                break;
            }
            before = c;
        }
        // A lone colon or the like is nothing, and must be passed all the same.
        let end = if end == 0 { self.rest.chars().next().map_or(0, char::len_utf8) } else { end };
        let value = self.rest[..end].trim().to_owned();
        self.skip(end);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_found_in_every_style() {
        for yaml in [
            "model:\n  params:\n    parameterization: \"v\"\n",
            "model:\r\n  target: x\r\n  params:\r\n    parameterization: v\r\n    other: 1\r\n",
            "model: {params: {parameterization: \"v\"}}",
            "model: {params: {parameterization: v}}",
            "model: {params: {parameterization: 'v', linear_start: 0.00085}}",
            "model: { target: ldm.models.diffusion.ddpm.LatentDiffusion,\n  params: {\n    linear_end: 0.0120, # end\n    parameterization: v # velocity\n  }\n}\n",
            "{\"model\":{\"params\":{\"parameterization\":\"v\"}}}",
            "{\n  \"model\": {\n    \"params\": {\"image_size\": 64, \"parameterization\": \"v\"}}}",
            "\u{feff}---\nmodel:\n    params:\n        'parameterization' : v   # comment\n...\n",
            "model:\n  params: {timesteps: 1000, first_stage_key: [jpg, txt], parameterization: !!str v}\n",
            "model:\n  params:\n    parameterization:\n      v\n",
            "model:\n  - params:\n    - parameterization: &p v\n",
            "notes: >\n  parameterization: eps\n  was the old one\nmodel: {params: {parameterization: v}}",
            "# parameterization: eps\nnote: \"parameterization: eps\"\nother: 'it''s parameterization: eps'\nparameterization: v",
            "url: http://x/parameterization:eps\nparameterization: v",
            "text: parameterization\nparameterization: v",
            "- note: |\n    parameterization: eps\n  parameterization: v\n",
        ] {
            assert_eq!(parameterization(yaml).as_deref(), Some("v"), "{yaml}");
        }
    }

    #[test]
    fn what_is_not_said_is_not_read() {
        for yaml in [
            "",
            "model: {params: {}}",
            "parameterization:",
            "parameterization: null",
            "parameterization:\nnext: v",
            "{parameterization: , next: v}",
            "{parameterization, v}",
            "parameterization: {v: 1}",
            "# parameterization: v",
            "my_parameterization: v",
            "note: |\n  parameterization: v\n  more\n",
            "- |\n  parameterization: v\n",
            "note: 'parameterization: v'",
            "parameterization:v",
            "}}}: ]",
            "\"parameterization",
            ": : :\n- - -\n? ?",
        ] {
            assert_eq!(parameterization(yaml), None, "{yaml}");
        }
    }

    #[test]
    fn no_text_hangs_or_panics() {
        let parts = [
            "{",
            "}",
            "[",
            ",",
            ":",
            " ",
            "\n",
            "-",
            "\"",
            "'",
            "#",
            "|",
            "v",
            "中",
            "parameterization",
            "\\",
            "!",
            "\u{a0}",
        ];
        let mut state = 1u64;
        for _ in 0..4000 {
            let mut text = String::new();
            for _ in 0..12 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                text.push_str(parts[(state >> 33) as usize % parts.len()]);
            }
            parameterization(&text);
        }
    }
}
