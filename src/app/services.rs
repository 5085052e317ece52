//! Pure functions that the studio is given, since it may not use the folders they come from.

use super::forecast::{Cost, forecaster};
use crate::base::{Lang, Latest};
use crate::diffusion::config::TextEncoderConfig;
use crate::diffusion::prompt;
use crate::diffusion::tokenizer::Tokenizer;
use crate::studio::{Services, TokenCount};
use directories::UserDirs;
use std::path::PathBuf;

/// What the studio works with in the real program.
pub fn services(costs: Latest<Cost>) -> Services {
    let tokenizer = Tokenizer::clip();
    let positions = TextEncoderConfig::sd15().max_positions;
    Services {
        count_tokens: Box::new(move |text| count_tokens(&tokenizer, positions, text)),
        forecast: forecaster(costs),
        pictures_folder: pictures_folder(),
        system_lang: system_lang(),
    }
}

/// Tokens by CLIP's vocabulary, and where in the text each chunk but the first begins.
fn count_tokens(tokenizer: &Tokenizer, positions: usize, text: &str) -> TokenCount {
    let count = prompt::count(tokenizer, text, positions);
    let used_by = |end: usize| prompt::count(tokenizer, &text[..end], positions).used.iter().sum::<usize>();
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut before = 0;
    let mut chunks = Vec::new();
    for used in count.used.iter().take(count.used.len().saturating_sub(1)) {
        before += used;
        // The longest beginning of the text that has no more tokens than the chunks before.
        let fits = ends.partition_point(|end| used_by(*end) <= before);
        chunks.push(fits.checked_sub(1).and_then(|at| ends.get(at)).copied().unwrap_or(0));
    }
    TokenCount { tokens: count.tokens(), chunks, limit: count.capacity }
}

/// "Softbox" in the person's pictures folder, or in their home where there is none.
fn pictures_folder() -> Option<PathBuf> {
    let folders = UserDirs::new()?;
    let parent = folders.picture_dir().unwrap_or_else(|| folders.home_dir());
    Some(parent.join("Softbox"))
}

fn system_lang() -> Lang {
    sys_locale::get_locale().map(|locale| Lang::from_system_locale(&locale)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_begin_where_their_first_word_does() {
        let (tokenizer, positions) = (Tokenizer::clip(), TextEncoderConfig::sd15().max_positions);
        let count = |text: &str| count_tokens(&tokenizer, positions, text);
        assert_eq!(count("a cat"), TokenCount { tokens: 2, chunks: vec![], limit: 75 });
        let long = "cat ".repeat(80);
        let counted = count(&long);
        assert_eq!((counted.tokens, counted.chunks.len()), (80, 1));
        assert_eq!(long[..counted.chunks[0]].split_whitespace().count(), 75);
        assert_eq!(count("a BREAK b").chunks.len(), 1);
    }
}
