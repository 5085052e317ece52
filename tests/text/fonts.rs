//! The bundled font draws every Chinese phrase, so that no machine shows boxes where words should be.

use softbox::text::AREAS;
use std::collections::BTreeSet;
use std::sync::Arc;

const HAN: &[u8] = include_bytes!("../../assets/fonts/NotoSansCJKsc-Softbox.otf");

/// Asks egui, which draws them, for the characters that a set of fonts lacks.
fn lacking(fonts: egui::FontDefinitions, wanted: impl Iterator<Item = char>) -> BTreeSet<char> {
    let ctx = egui::Context::default();
    ctx.set_fonts(fonts);
    let mut wanted: BTreeSet<char> = wanted.collect();
    let mut output = ctx.run_ui(egui::RawInput::default(), |ui| {
        let font = egui::FontId::proportional(13.0);
        ui.fonts_mut(|fonts| wanted.retain(|c| !fonts.has_glyph(&font, *c)));
    });
    // Nothing is drawn.
    output.textures_delta.clear();
    wanted
}

/// The bundled font by itself, or after egui's own as in the window.
fn definitions(alone: bool) -> egui::FontDefinitions {
    let mut fonts = egui::FontDefinitions::default();
    fonts.font_data.insert("han".to_owned(), Arc::new(egui::FontData::from_static(HAN)));
    let family = fonts.families.entry(egui::FontFamily::Proportional).or_default();
    if alone {
        family.clear();
    }
    family.push("han".to_owned());
    fonts
}

fn chinese() -> impl Iterator<Item = char> {
    AREAS
        .iter()
        .flat_map(|(_, phrases)| phrases.iter())
        .flat_map(|phrase| phrase.zh.chars())
        .filter(|c| !c.is_control())
}

fn is_wide(c: char) -> bool {
    matches!(c, '\u{2E80}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{FF00}'..='\u{FFEF}')
}

#[test]
fn every_chinese_phrase_is_drawn() {
    let lacking = lacking(definitions(false), chinese());
    assert!(lacking.is_empty(), "run scripts/subset_font.py; no font has {lacking:?}");
}

#[test]
fn han_characters_come_from_the_bundled_font() {
    let lacking = lacking(definitions(true), chinese().filter(|c| is_wide(*c)));
    assert!(lacking.is_empty(), "run scripts/subset_font.py; the bundled font lacks {lacking:?}");
}

#[test]
fn a_usual_prompt_is_drawn_and_a_missing_character_is_noticed() {
    let prompt = "一位年轻女子的肖像，柔和的窗光，胶片质感，浅景深：海边的黄昏（特写）";
    assert!(lacking(definitions(true), prompt.chars()).is_empty());
    // Hangul and a rare character are not in it: without this the tests above would prove nothing.
    let others = lacking(definitions(true), "한龘".chars());
    assert_eq!(others.len(), 2);
}
