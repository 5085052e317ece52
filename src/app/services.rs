//! Pure functions that the studio is given, since it may not use the folders they come from.

use super::forecast::{Cost, forecaster};
use crate::base::{Lang, Latest, ModelChoice, Vocabulary};
use crate::diffusion::config::TextEncoderConfig;
use crate::diffusion::place::Place;
use crate::diffusion::tokenizer::Tokenizer;
use crate::diffusion::{pocket, prompt};
use crate::studio::{Services, TokenCount};
use directories::UserDirs;
use std::path::PathBuf;

/// What the studio works with in the real program.
pub fn services(costs: Latest<Cost>) -> Services {
    let clip = Tokenizer::clip();
    let pocket = pocket::folder();
    let small = pocket.as_ref().and_then(|folder| Tokenizer::from_folder(folder.join("tokenizer")).ok());
    let positions = TextEncoderConfig::sd15().max_positions;
    Services {
        count_tokens: Box::new(move |model, text| {
            let own = small.as_ref().filter(|_| model == Some(&ModelChoice::Pocket));
            count_tokens(own.unwrap_or(&clip), positions, text)
        }),
        forecast: forecaster(costs),
        pictures_folder: pictures_folder(),
        pocket: pocket.map(|folder| words(&folder)),
        system_lang: system_lang(),
    }
}

/// The words that lie beside the built-in model. Without them it works as well.
fn words(folder: &Place) -> Vocabulary {
    let text = folder.join("words.json").read_to_string().unwrap_or_default();
    serde_json::from_str(&text).inspect_err(|error| tracing::warn!("the words of Pocket: {error}")).unwrap_or_default()
}

/// Tokens by a tokenizer's vocabulary, and where in the text each chunk but the first begins.
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
