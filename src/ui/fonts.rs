//! The window's fonts: egui's own for Latin text, Lucide for icons, and a bundled one for Chinese where it is given.
//!
//! Installed once at start by the application. Characters that none of these holds are looked up among the system's fonts
//! by eframe.

use egui::{FontData, FontDefinitions, FontFamily, FontId, RichText};
pub use lucide_icons::Icon;
use std::sync::Arc;

const ICONS: &str = "lucide";
const BUNDLED: &str = "bundled-han";
/// Side of an icon beside 13 px text.
pub const ICON: f32 = 15.0;

/// Sets up the fonts. `han` is a font file with the Chinese characters the window itself uses.
///
/// Icons and Chinese are fallbacks of both families, after the text font: it alone decides what a letter looks like.
pub fn install(ctx: &egui::Context, han: Option<&'static [u8]>) {
    let mut fonts = FontDefinitions::default();
    fonts.font_data.insert(ICONS.to_owned(), Arc::new(FontData::from_static(lucide_icons::LUCIDE_FONT_BYTES)));
    let mut fallbacks = vec![ICONS.to_owned()];
    if let Some(bytes) = han {
        fonts.font_data.insert(BUNDLED.to_owned(), Arc::new(FontData::from_static(bytes)));
        fallbacks.push(BUNDLED.to_owned());
    }
    for family in [FontFamily::Proportional, FontFamily::Monospace] {
        let keys = fonts.families.entry(family).or_default();
        // Second: before egui's emoji fonts, which hold other pictures at the same code points.
        let at = keys.len().min(1);
        keys.splice(at..at, fallbacks.iter().cloned());
    }
    fonts.families.insert(icon_family(), vec![ICONS.to_owned()]);
    ctx.set_fonts(fonts);
}

/// An icon as text of its own size; the font around it does not shift it.
pub fn icon(icon: Icon) -> RichText {
    RichText::new(icon.unicode()).font(icon_font(ICON))
}

pub fn icon_font(size: f32) -> FontId {
    FontId::new(size, icon_family())
}

fn icon_family() -> FontFamily {
    FontFamily::Name(ICONS.into())
}

#[cfg(test)]
mod tests {
    #[test]
    fn icons_are_drawn_and_figures_are_tabular() {
        let ctx = egui::Context::default();
        super::install(&ctx, None);
        crate::ui::theme::install(&ctx, false);
        let mut drawn = ctx.run_ui(egui::RawInput::default(), |ui| {
            let font = egui::TextStyle::Body.resolve(ui.style());
            ui.fonts_mut(|fonts| {
                assert!(fonts.has_glyph(&super::icon_font(15.0), super::Icon::Pause.unicode()));
                let widths: Vec<f32> = ('0'..='9').map(|c| fonts.glyph_width(&font, c)).collect();
                assert!(widths.iter().all(|w| (w - widths[0]).abs() < 0.01), "{widths:?}");
            });
        });
        drawn.textures_delta.clear();
    }
}
