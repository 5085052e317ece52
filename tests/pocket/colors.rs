//! Colours measured: where in a portrait they are looked for, and which name is nearest.
//!
//! Distances are taken in Oklab (Björn Ottosson, 2020), in which equal distances look equally large. Light and shade change a
//! colour's lightness far more than its hue, so lightness counts for less.

use softbox::base::RgbImage;

/// A colour's name and its sRGB value in the pictures that Pocket was trained on.
pub type Named = (&'static str, [u8; 3]);

/// Backgrounds and clothes.
pub const THINGS: [Named; 12] = [
    ("red", [0xb3, 0x19, 0x1f]),
    ("orange", [0xe6, 0x7a, 0x17]),
    ("yellow", [0xec, 0xc9, 0x32]),
    ("green", [0x2f, 0x8a, 0x3c]),
    ("teal", [0x16, 0x9a, 0x98]),
    ("blue", [0x28, 0x50, 0xb8]),
    ("purple", [0x74, 0x33, 0x99]),
    ("pink", [0xee, 0x9a, 0xb8]),
    ("brown", [0x70, 0x49, 0x2b]),
    ("white", [0xef, 0xef, 0xee]),
    ("grey", [0x85, 0x85, 0x87]),
    ("black", [0x15, 0x15, 0x17]),
];

pub const HAIR: [Named; 10] = [
    ("black", [0x17, 0x15, 0x1a]),
    ("brown", [0x55, 0x33, 0x1c]),
    ("blonde", [0xd9, 0xb0, 0x66]),
    ("red", [0xa8, 0x40, 0x1a]),
    ("grey", [0x8d, 0x8d, 0x92]),
    ("white", [0xe6, 0xe3, 0xdc]),
    ("blue", [0x2f, 0x5c, 0xd0]),
    ("pink", [0xee, 0x6f, 0xb2]),
    ("green", [0x35, 0xa0, 0x50]),
    ("purple", [0x7a, 0x3f, 0xb8]),
];

/// A rectangle, in percent of the picture's sides: from left, from the top, to right, to the bottom.
pub type Patch = [usize; 4];

/// Both upper corners, where no head and no shoulder comes.
pub const CORNERS: [Patch; 2] = [[0, 2, 10, 22], [90, 2, 100, 22]];
/// Left and right of a collar, at the lower edge.
pub const CLOTHES: [Patch; 2] = [[26, 92, 40, 99], [60, 92, 74, 99]];

/// How much lightness counts against hue and chroma.
const LIGHTNESS: f32 = 0.4;

/// sRGB to Oklab.
pub fn oklab(rgb: [f32; 3]) -> [f32; 3] {
    let linear = |v: f32| {
        let v = v / 255.0;
        if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
    };
    let [r, g, b] = rgb.map(linear);
    let l = (0.412_221_46 * r + 0.536_332_55 * g + 0.051_445_995 * b).cbrt();
    let m = (0.211_903_5 * r + 0.680_699_5 * g + 0.107_396_96 * b).cbrt();
    let s = (0.088_302_46 * r + 0.281_718_85 * g + 0.629_978_7 * b).cbrt();
    [
        0.210_454_26 * l + 0.793_617_8 * m - 0.004_072_047 * s,
        1.977_998_5 * l - 2.428_592_2 * m + 0.450_593_7 * s,
        0.025_904_037 * l + 0.782_771_77 * m - 0.808_675_77 * s,
    ]
}

/// How far two colours are apart, with lightness counted for less.
pub fn distance(a: [f32; 3], b: [f32; 3]) -> f32 {
    let (a, b) = (oklab(a), oklab(b));
    let [l, x, y] = std::array::from_fn(|i| a[i] - b[i]);
    (LIGHTNESS * l).hypot(x).hypot(y)
}

/// The name whose colour is nearest.
pub fn name(color: [f32; 3], palette: &[Named]) -> &'static str {
    let far = |named: &&Named| distance(color, named.1.map(f32::from));
    palette.iter().min_by(|a, b| far(a).total_cmp(&far(b))).expect("colours").0
}

/// The value of a named colour.
pub fn value(name: &str, palette: &[Named]) -> [f32; 3] {
    palette.iter().find(|named| named.0 == name).expect("a known colour").1.map(f32::from)
}

/// The median of each channel over these rows and columns.
fn median(image: &RgbImage, columns: std::ops::Range<usize>, rows: std::ops::Range<usize>) -> [f32; 3] {
    let width = image.width();
    std::array::from_fn(|channel| {
        let at = |x: usize, y: usize| image.pixels()[(y * width + x) * 3 + channel];
        let mut values: Vec<u8> =
            rows.clone().flat_map(|y| columns.clone().map(move |x| (x, y))).map(|(x, y)| at(x, y)).collect();
        values.sort_unstable();
        f32::from(values[values.len() / 2])
    })
}

/// The middle colour of a part of a picture.
pub fn middle(image: &RgbImage, [left, top, right, bottom]: Patch) -> [f32; 3] {
    let (width, height) = (image.width(), image.height());
    median(image, left * width / 100..right * width / 100, top * height / 100..bottom * height / 100)
}

/// The background: the corner that names it best, since the light may come from the other side.
pub fn background(image: &RgbImage) -> &'static str {
    named_best(image, &CORNERS)
}

pub fn clothes(image: &RgbImage) -> &'static str {
    named_best(image, &CLOTHES)
}

fn named_best(image: &RgbImage, patches: &[Patch]) -> &'static str {
    let found = patches.iter().map(|patch| middle(image, *patch));
    let far = |color: [f32; 3]| distance(color, value(name(color, &THINGS), &THINGS));
    let best = found.min_by(|a, b| far(*a).total_cmp(&far(*b))).expect("a patch");
    name(best, &THINGS)
}

/// The hair on top of the head: what lies just below where, from above, the background ends.
pub fn hair(image: &RgbImage) -> Option<&'static str> {
    let (width, height) = (image.width(), image.height());
    let columns = 44 * width / 100..56 * width / 100;
    let sky = median(image, columns.clone(), 0..height / 50 + 1);
    let band = height / 32;
    let top = (band..height / 2).find(|&y| distance(median(image, columns.clone(), y..y + 2), sky) > 0.05)?;
    let from = top + band / 2;
    Some(name(median(image, columns, from..from + band), &HAIR))
}

#[test]
fn colours_are_named_in_light_and_shade() {
    for palette in [&THINGS[..], &HAIR] {
        for (wanted, value) in palette {
            let value = value.map(f32::from);
            assert_eq!(name(value, palette), *wanted);
            // A tenth darker, a tenth of white in it.
            assert_eq!(name(value.map(|v| v * 0.9), palette), *wanted, "{wanted} in the shade");
            assert_eq!(name(value.map(|v| v + (255.0 - v) * 0.1), palette), *wanted, "{wanted} in the light");
        }
    }
}

#[test]
fn a_portrait_is_measured_where_its_parts_are() {
    // A green ground, blonde hair from a fifth of the height, skin below, a red shirt.
    let rgb = |name: &str, palette: &[Named]| value(name, palette).map(|v| v as u8);
    let pixels = (0..64 * 64).flat_map(|i| {
        let (x, y) = (i % 64, i / 64);
        match (x, y) {
            (8..56, 50..) => rgb("red", &THINGS),
            (20..44, 20..) => [0xe3, 0xb5, 0x95],
            (20..44, 13..20) => rgb("blonde", &HAIR),
            _ => rgb("green", &THINGS),
        }
    });
    let image = RgbImage::new(64, 64, pixels.collect()).unwrap();
    assert_eq!((background(&image), hair(&image), clothes(&image)), ("green", Some("blonde"), "red"));
}
