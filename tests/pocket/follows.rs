//! When the prompt says red background, the picture has one.

use super::colors::{self, CORNERS, HAIR, THINGS, distance, value};
use super::{middle, picture, request};
use softbox::base::ShotRequest;
use std::fmt::Write;

/// Prompts with a seed, and the background, hair and clothing they name.
const ASKED: [(&str, u64, &str, &str, &str); 8] = [
    (
        "portrait photo of a young woman with long blonde hair, green t-shirt, red background",
        1,
        "red",
        "blonde",
        "green",
    ),
    ("portrait of a man with short black hair, white shirt, blue background", 2, "blue", "black", "white"),
    ("photo of a woman with long pink hair, black turtleneck, teal background", 3, "teal", "pink", "black"),
    (
        "studio portrait of an old woman with short white hair, purple hoodie, green background",
        4,
        "green",
        "white",
        "purple",
    ),
    (
        "portrait photo of a young man with short blue hair, yellow t-shirt, white background",
        5,
        "white",
        "blue",
        "yellow",
    ),
    ("headshot of a woman with curly purple hair, orange hoodie, black background", 6, "black", "purple", "orange"),
    ("a portrait of a man with wavy green hair, red turtleneck, yellow background", 7, "yellow", "green", "red"),
    ("photo of a middle-aged woman with straight black hair, blue shirt, pink background", 8, "pink", "black", "blue"),
];

#[test]
fn eight_prompts_get_the_colours_they_name() {
    let mut wrong = String::new();
    for (prompt, seed, background, hair, clothes) in ASKED {
        let image = picture(&request(prompt, seed));
        let found = (colors::background(&image), colors::hair(&image), colors::clothes(&image));
        if found != (background, Some(hair), clothes) {
            writeln!(wrong, "{prompt}: {found:?}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "background, hair and clothing came out otherwise:\n{wrong}");
}

/// How near the background comes to a colour: 0 is the colour itself.
fn far_from(wanted: &str, request: &ShotRequest) -> f32 {
    let image = picture(request);
    let wanted = value(wanted, &THINGS);
    CORNERS.iter().map(|corner| distance(middle(&image, *corner), wanted)).fold(f32::MAX, f32::min)
}

#[test]
fn guidance_brings_the_picture_nearer_to_the_prompt() {
    let (mut with, mut without) = (0.0, 0.0);
    // The vivid ones: grey, black and white are near to what no guidance gives.
    for (prompt, seed, background, ..) in ASKED.into_iter().filter(|asked| ["red", "teal", "yellow"].contains(&asked.2))
    {
        let guided = request(prompt, seed);
        with += far_from(background, &guided);
        without += far_from(background, &ShotRequest { cfg: 1.0, ..guided });
    }
    assert!(with < without, "CFG 7 is {with} away from the colours, CFG 1 {without}");
}

#[test]
fn the_negative_prompt_takes_away_what_it_names() {
    let vague = |negative: &str| {
        let mut request = request("portrait photo of a woman", 11);
        negative.clone_into(&mut request.negative);
        request
    };
    let lightness = |negative: &str| {
        let image = picture(&vague(negative));
        CORNERS.iter().map(|corner| colors::oklab(middle(&image, *corner))[0]).sum::<f32>() / 2.0
    };
    let (no_white, no_black) = (lightness("white background"), lightness("black background"));
    assert!(no_white + 0.1 < no_black, "without white {no_white}, without black {no_black}");

    let is = |color: &str, negative: &str| colors::hair(&picture(&vague(negative))) == Some(color);
    let made = colors::hair(&picture(&vague(""))).expect("hair");
    assert!(HAIR.iter().any(|(name, _)| *name == made));
    assert!(!is(made, &format!("{made} hair")), "{made} hair is still there");
}
