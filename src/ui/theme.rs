//! Colours, spacing and type of the window, in one place.
//!
//! [`install`] puts both themes into egui once, at start. Panels take what egui does not know (tungsten, the memory colours)
//! from [`Palette::of`]. A test holds every pair of text and ground against WCAG's 4.5 : 1.

use egui::epaint::Shadow;
use egui::{Color32, CornerRadius, FontFamily, FontId, Margin, Stroke, TextStyle, Theme, Ui, Vec2, Visuals};

/// Distances in points. Everything on screen is one of these apart.
pub mod space {
    pub const XS: f32 = 4.0;
    pub const S: f32 = 8.0;
    pub const M: f32 = 12.0;
    pub const L: f32 = 16.0;
}

/// Height of a button, a field, a row of a setting.
pub const CONTROL: f32 = 28.0;
pub const RADIUS: u8 = 6;
/// Text of a control, and of a caption beneath one.
pub const BODY: f32 = 13.0;
pub const CAPTION: f32 = 11.0;
/// The longest fade, in seconds.
pub const FADE: f32 = 0.12;

/// The colours of one theme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    pub ground: Color32,
    pub panel: Color32,
    pub raised: Color32,
    /// A raised thing under the pointer.
    pub lifted: Color32,
    pub hairline: Color32,
    pub text: Color32,
    pub quiet: Color32,
    /// The one primary action, and progress.
    pub tungsten: Color32,
    pub on_tungsten: Color32,
    /// Over the limit, and failure. Nothing else.
    pub safelight: Color32,
    /// Memory of this program that tensors hold; what the pools keep has the same hue, hatched.
    pub in_use: Color32,
    pub context: Color32,
    pub others: Color32,
    pub done: Color32,
    /// Ground of a chosen thing and of selected text.
    pub chosen: Color32,
}

pub const DARK: Palette = Palette {
    ground: Color32::from_rgb(0x16, 0x17, 0x1A),
    panel: Color32::from_rgb(0x1E, 0x20, 0x24),
    raised: Color32::from_rgb(0x27, 0x2A, 0x2F),
    lifted: Color32::from_rgb(0x32, 0x36, 0x3C),
    hairline: Color32::from_rgb(0x34, 0x37, 0x3D),
    text: Color32::from_rgb(0xE8, 0xE6, 0xE3),
    quiet: Color32::from_rgb(0xA4, 0xA7, 0xAD),
    tungsten: Color32::from_rgb(0xF2, 0xA9, 0x3B),
    on_tungsten: Color32::from_rgb(0x1E, 0x14, 0x04),
    safelight: Color32::from_rgb(0xF0, 0x63, 0x67),
    in_use: Color32::from_rgb(0x5B, 0xB8, 0xD4),
    context: Color32::from_rgb(0x7E, 0x87, 0x94),
    others: Color32::from_rgb(0x8E, 0x7C, 0xC3),
    done: Color32::from_rgb(0x6F, 0xBF, 0x73),
    chosen: Color32::from_rgb(0x2F, 0x43, 0x4C),
};

pub const LIGHT: Palette = Palette {
    ground: Color32::from_rgb(0xF7, 0xF5, 0xF2),
    panel: Color32::from_rgb(0xFF, 0xFF, 0xFF),
    raised: Color32::from_rgb(0xF1, 0xEE, 0xE9),
    lifted: Color32::from_rgb(0xE6, 0xE1, 0xD9),
    hairline: Color32::from_rgb(0xDD, 0xD8, 0xD0),
    text: Color32::from_rgb(0x1C, 0x1B, 0x1A),
    quiet: Color32::from_rgb(0x63, 0x60, 0x5B),
    tungsten: Color32::from_rgb(0x9A, 0x5C, 0x00),
    on_tungsten: Color32::from_rgb(0xFF, 0xFF, 0xFF),
    safelight: Color32::from_rgb(0xC2, 0x2B, 0x30),
    in_use: Color32::from_rgb(0x1F, 0x7A, 0x96),
    context: Color32::from_rgb(0x66, 0x6F, 0x7C),
    others: Color32::from_rgb(0x73, 0x60, 0xAB),
    done: Color32::from_rgb(0x37, 0x7E, 0x3C),
    chosen: Color32::from_rgb(0xD3, 0xE8, 0xEF),
};

impl Palette {
    /// The colours that this part of the window is drawn in.
    pub fn of(ui: &Ui) -> &'static Palette {
        if ui.visuals().dark_mode { &DARK } else { &LIGHT }
    }
}

/// Puts both themes into egui. `motion` is false where the system asks for less of it: then nothing fades.
pub fn install(ctx: &egui::Context, motion: bool) {
    for (theme, palette) in [(Theme::Dark, &DARK), (Theme::Light, &LIGHT)] {
        ctx.style_mut_of(theme, |style| {
            style.visuals = visuals(theme, palette);
            style.animation_time = if motion { FADE } else { 0.0 };
            style.text_styles = [
                (TextStyle::Heading, FontId::new(16.0, FontFamily::Proportional)),
                (TextStyle::Body, FontId::new(BODY, FontFamily::Proportional)),
                (TextStyle::Button, FontId::new(BODY, FontFamily::Proportional)),
                (TextStyle::Small, FontId::new(CAPTION, FontFamily::Proportional)),
                (TextStyle::Monospace, FontId::new(12.0, FontFamily::Monospace)),
            ]
            .into();
            style.drag_value_text_style = TextStyle::Body;
            let s = &mut style.spacing;
            s.item_spacing = Vec2::new(space::S, 6.0);
            s.button_padding = Vec2::new(10.0, 4.0);
            s.interact_size = Vec2::new(40.0, CONTROL);
            s.window_margin = Margin::same(12);
            s.menu_margin = Margin::same(6);
            s.icon_width = 16.0;
            s.icon_width_inner = 10.0;
            s.icon_spacing = 6.0;
            s.combo_height = 360.0;
            s.tooltip_width = 320.0;
            s.scroll.bar_width = 8.0;
            style.interaction.selectable_labels = false;
            style.interaction.tooltip_delay = 0.35;
            if !motion {
                style.scroll_animation = egui::style::ScrollAnimation::none();
            }
        });
    }
}

fn visuals(theme: Theme, p: &Palette) -> Visuals {
    let mut v = theme.default_visuals();
    let radius = CornerRadius::same(RADIUS);
    v.override_text_color = None;
    v.weak_text_color = Some(p.quiet);
    v.hyperlink_color = p.in_use;
    v.faint_bg_color = p.raised;
    v.extreme_bg_color = p.ground;
    v.text_edit_bg_color = Some(p.ground);
    v.code_bg_color = p.raised;
    v.warn_fg_color = p.tungsten;
    v.error_fg_color = p.safelight;
    v.panel_fill = p.panel;
    v.window_fill = p.panel;
    v.window_stroke = Stroke::new(1.0, p.hairline);
    v.window_corner_radius = radius;
    v.menu_corner_radius = radius;
    let shade = if theme == Theme::Dark { 120 } else { 40 };
    v.popup_shadow = Shadow { offset: [0, 4], blur: 16, spread: 0, color: Color32::from_black_alpha(shade) };
    v.window_shadow = v.popup_shadow;
    v.selection.bg_fill = p.chosen;
    // egui also outlines the focused text field with this stroke.
    v.selection.stroke = Stroke::new(1.5, p.text);
    v.text_cursor.stroke = Stroke::new(1.5, p.text);
    v.slider_trailing_fill = true;
    v.collapsing_header_frame = false;
    v.disabled_alpha = 0.45;

    let quiet = Stroke::new(1.0, p.hairline);
    let w = &mut v.widgets;
    for (state, fill, edge, text) in [
        (&mut w.noninteractive, p.panel, quiet, p.text),
        (&mut w.inactive, p.raised, Stroke::NONE, p.text),
        (&mut w.hovered, p.lifted, quiet, p.text),
        // Pressed, and holding the keyboard's focus: a ring in the colour of text, which nothing else has.
        (&mut w.active, p.lifted, Stroke::new(1.5, p.text), p.text),
        (&mut w.open, p.lifted, quiet, p.text),
    ] {
        state.bg_fill = fill;
        state.weak_bg_fill = fill;
        state.bg_stroke = edge;
        state.corner_radius = radius;
        state.fg_stroke = Stroke::new(1.0, text);
        state.expansion = 0.0;
    }
    // A field and a check box stay visible on the panel they lie on.
    w.inactive.bg_stroke = quiet;
    v
}

/// Draws the buttons that follow in this `ui` as the one primary action.
pub fn make_primary(ui: &mut Ui) {
    let p = Palette::of(ui);
    let widgets = &mut ui.visuals_mut().widgets;
    for (state, fill) in [
        (&mut widgets.inactive, p.tungsten),
        (&mut widgets.hovered, mix(p.tungsten, p.text, 0.12)),
        (&mut widgets.active, mix(p.tungsten, p.ground, 0.08)),
    ] {
        state.weak_bg_fill = fill;
        state.bg_fill = fill;
        state.fg_stroke.color = p.on_tungsten;
    }
    widgets.inactive.bg_stroke = Stroke::NONE;
    widgets.hovered.bg_stroke = Stroke::NONE;
}

/// Draws the buttons that follow in this `ui` without a frame until the pointer or the focus is on them.
pub fn make_quiet(ui: &mut Ui) {
    let p = Palette::of(ui);
    let inactive = &mut ui.visuals_mut().widgets.inactive;
    inactive.weak_bg_fill = Color32::TRANSPARENT;
    inactive.bg_stroke = Stroke::NONE;
    inactive.fg_stroke.color = p.quiet;
}

/// `a` with `share` of `b` in it, opaque.
pub fn mix(a: Color32, b: Color32, share: f32) -> Color32 {
    a.lerp_to_gamma(b, share)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WCAG 2.1: relative luminance of an opaque sRGB colour.
    fn luminance(c: Color32) -> f32 {
        let lin = |v: u8| {
            let v = f32::from(v) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * lin(c.r()) + 0.7152 * lin(c.g()) + 0.0722 * lin(c.b())
    }

    fn contrast(a: Color32, b: Color32) -> f32 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_is_readable_on_everything_it_is_put_on() {
        for (name, p) in [("dark", DARK), ("light", LIGHT)] {
            for (on, ground) in [("ground", p.ground), ("panel", p.panel), ("raised", p.raised), ("lifted", p.lifted)] {
                for (what, ink) in [("text", p.text), ("quiet", p.quiet)] {
                    let ratio = contrast(ink, ground);
                    assert!(ratio >= 4.5, "{name}: {what} on {on} is {ratio:.2}");
                }
            }
            for (what, ink) in [("safelight", p.safelight), ("tungsten", p.tungsten), ("done", p.done)] {
                let ratio = contrast(ink, p.panel);
                assert!(ratio >= 4.5, "{name}: {what} on panel is {ratio:.2}");
            }
            assert!(contrast(p.on_tungsten, p.tungsten) >= 4.5, "{name}: text on the primary action");
            assert!(contrast(p.text, p.chosen) >= 4.5, "{name}: text on the chosen");
            for (what, fill) in [("in use", p.in_use), ("context", p.context), ("others", p.others)] {
                let ratio = contrast(fill, p.ground);
                // A graphic, not text: WCAG asks for 3 : 1.
                assert!(ratio >= 3.0, "{name}: {what} on ground is {ratio:.2}");
            }
        }
    }

    #[test]
    fn both_themes_are_installed_and_stillness_is_honoured() {
        let ctx = egui::Context::default();
        install(&ctx, true);
        assert!(ctx.style_of(Theme::Dark).animation_time <= FADE);
        assert_eq!(ctx.style_of(Theme::Dark).visuals.panel_fill, DARK.panel);
        assert_eq!(ctx.style_of(Theme::Light).visuals.panel_fill, LIGHT.panel);
        install(&ctx, false);
        assert_eq!(ctx.style_of(Theme::Light).animation_time, 0.0);
    }
}
