"""Captions: what a portrait artist would have typed to get this portrait.

Three manners. Most captions are sentences or tag lists about a person: they leave attributes out freely, but name glasses, hat and
beard whenever they are there, so that what a prompt of this kind does not name stays away. Some are bare tags ("glasses, red
hair"), so that a negative prompt can name one thing. A few are vague ("a portrait") and leave everything open.
"""

from __future__ import annotations

import numpy as np

from attributes import COLORS, LABELS, Portrait

# Words that portrait artists type and that change nothing here; the model learns to pass over them.
STUDIO_WORDS = [
    "studio lighting", "high quality", "sharp focus", "photorealistic", "raw photo", "highly detailed", "85mm", "50mm lens",
    "bokeh", "professional photography", "depth of field", "masterpiece", "best quality", "film grain", "beautiful", "8k uhd",
    "dslr", "realistic", "detailed skin", "editorial",
]  # fmt: skip

OPENINGS = [
    "portrait photo of {}", "a portrait of {}", "photo of {}", "a photo of {}", "studio portrait of {}", "headshot of {}",
    "a studio photograph of {}", "portrait of {}", "{}", "raw photo of {}", "photograph of {}",
]  # fmt: skip

VAGUE = [
    "a portrait", "portrait photo", "a studio portrait", "portrait", "a photo of a person", "portrait of someone", "a face",
    "studio photograph", "a person", "headshot",
]  # fmt: skip

WORDS = {
    "person": {"woman": ["woman", "lady", "female model", "woman"], "man": ["man", "gentleman", "male model", "man"]},
    "age": {
        "young": ["young {}", "{} in {} twenties", "youthful {}", "young {}"],
        "middle-aged": ["middle-aged {}", "{} in {} forties", "middle-aged {}"],
        "old": ["old {}", "elderly {}", "{} in {} seventies", "aged {}", "old {}"],
    },
    "skin": {
        "fair": ["fair skin", "pale skin"],
        "light": ["light skin"],
        "tan": ["tanned skin", "tan skin", "olive skin"],
        "brown": ["brown skin"],
        "dark": ["dark skin", "deep dark skin"],
    },
    "face": {
        "oval": ["oval face"],
        "round": ["round face"],
        "long": ["long face", "narrow face"],
        "square": ["square jaw", "square face"],
    },
    "hair_color": {
        "black": ["black", "jet black", "black"],
        "brown": ["brown", "brunette", "brown"],
        "blonde": ["blonde", "blond", "golden blonde"],
        "red": ["red", "ginger", "copper red"],
        "grey": ["grey", "gray", "silver grey"],
        "white": ["white", "snow white"],
        "blue": ["blue"],
        "pink": ["pink"],
        "green": ["green"],
        "purple": ["purple", "violet"],
    },
    "eyes": {name: [f"{name} eyes"] for name in LABELS["eyes"]},
    "glasses": {
        "glasses": ["glasses", "wearing glasses", "eyeglasses", "with glasses", "spectacles", "glasses"],
        "sunglasses": ["sunglasses", "wearing sunglasses", "dark glasses", "with sunglasses", "sunglasses"],
    },
    "hat": {
        "beanie": ["beanie", "knit cap", "beanie hat"],
        "cap": ["cap", "baseball cap"],
        "sun hat": ["sun hat", "wide-brimmed hat", "brim hat"],
        "beret": ["beret"],
    },
    "beard": {
        "beard": ["beard", "full beard", "bearded", "with a beard", "beard"],
        "moustache": ["moustache", "mustache", "with a moustache"],
    },
    "expression": {
        "neutral": ["neutral expression", "calm", "serious"],
        "smiling": ["smiling", "smile", "gentle smile", "friendly smile"],
        "laughing": ["laughing", "laugh", "big laugh", "open smile"],
        "sad": ["sad", "sad expression", "frowning"],
        "surprised": ["surprised", "astonished", "surprised expression"],
    },
    "turn": {
        "left": ["looking left", "head turned left", "facing left", "looking to the left"],
        "front": ["looking at the camera", "facing the camera", "looking straight"],
        "right": ["looking right", "head turned right", "facing right", "looking to the right"],
    },
    "clothing": {
        "t-shirt": ["t-shirt", "tee"],
        "shirt": ["shirt", "collared shirt", "button-up shirt"],
        "turtleneck": ["turtleneck", "turtleneck sweater", "sweater"],
        "suit": ["suit", "suit jacket", "blazer"],
        "hoodie": ["hoodie", "hooded sweatshirt"],
        "dress": ["dress", "low-cut dress"],
    },
    "gradient": {
        "plain": ["plain", "solid", "uniform"],
        "gradient": ["gradient"],
        "spotlight": ["spotlit", "glowing"],
    },
    "light": {
        "left": ["light from the left", "lit from the left", "left side light"],
        "front": ["front light", "light from the front", "frontal lighting"],
        "right": ["light from the right", "lit from the right", "right side light"],
    },
    "softness": {"soft": ["soft", "diffuse", "gentle"], "hard": ["hard", "harsh", "dramatic"]},
    "framing": {"close-up": ["close-up", "close-up portrait", "face close-up"], "bust": ["bust", "head and shoulders", "bust shot"]},
    "tone": {"black-and-white": ["black and white", "black-and-white photo", "monochrome"]},
}

HEADWEAR = ["hat", "headwear"]
FACIAL_HAIR = ["facial hair"]


def _choose(rng: np.random.Generator, items: list[str]) -> str:
    return items[int(rng.integers(len(items)))]


def _word(rng: np.random.Generator, portrait: Portrait, attribute: str) -> str:
    return _choose(rng, WORDS[attribute][portrait.named(attribute)])


def _article(phrase: str) -> str:
    return ("an " if phrase[0] in "aeiou" else "a ") + phrase


def _color(name: str, rng: np.random.Generator) -> str:
    """A colour word of clothes, hats and backgrounds."""
    synonyms = {"grey": ["grey", "gray"], "purple": ["purple", "violet"], "teal": ["teal", "turquoise"]}
    return _choose(rng, synonyms.get(name, [name]))


def phrases(portrait: Portrait, rng: np.random.Generator) -> dict[str, str]:
    """One phrase for each thing that can be said of a portrait, by a key of its own; what cannot be seen has no phrase."""
    colored = portrait.named("tone") == "color"
    said: dict[str, str] = {}
    if portrait.named("hair_length") == "bald":
        said["hair"] = _choose(rng, ["bald", "bald head", "shaved head"])
    else:
        parts = []
        if rng.random() < 0.75:
            parts.append({"short": "short", "medium": "shoulder-length", "long": "long"}[portrait.named("hair_length")])
        style = portrait.named("hair_style")
        if style != "bun" and rng.random() < 0.75:
            parts.append(style)
        if colored:
            parts.append(_word(rng, portrait, "hair_color"))
        said["hair"] = " ".join([*parts, "hair"])
        if style == "bun":
            said["hair"] += _choose(rng, [" in a bun", " tied in a bun"])
    said["skin"] = _word(rng, portrait, "skin")
    said["face"] = _word(rng, portrait, "face")
    if colored and portrait.named("glasses") != "sunglasses":
        said["eyes"] = _word(rng, portrait, "eyes")
    if portrait.named("glasses") != "none":
        said["glasses"] = _word(rng, portrait, "glasses")
    if portrait.named("hat") != "none":
        hat = _choose(rng, HEADWEAR) if rng.random() < 0.25 else _word(rng, portrait, "hat")
        if colored and rng.random() < 0.8:
            hat = f"{_color(portrait.named('hat_color'), rng)} {hat}"
        said["hat"] = _choose(rng, ["{}", "wearing {a}", "with {a}", "{a}"]).format(hat, a=_article(hat))
    if portrait.named("beard") != "none":
        said["beard"] = _choose(rng, FACIAL_HAIR) if rng.random() < 0.06 else _word(rng, portrait, "beard")
    said["expression"] = _word(rng, portrait, "expression")
    said["turn"] = _word(rng, portrait, "turn")
    clothing = _word(rng, portrait, "clothing")
    if colored:
        clothing = f"{_color(portrait.named('clothing_color'), rng)} {clothing}"
    said["clothing"] = _choose(rng, ["{}", "wearing {a}", "in {a}", "{a}"]).format(clothing, a=_article(clothing))
    back = _choose(rng, ["background", "background", "background", "backdrop"])
    gradient = _word(rng, portrait, "gradient") + " " if rng.random() < 0.45 else ""
    if colored:
        back = f"{gradient}{_color(portrait.named('background'), rng)} {back}"
        said["background"] = _choose(rng, ["{}", "{}", "on {a}", "against {a}"]).format(back, a=_article(back))
    elif gradient:
        said["background"] = f"{gradient}{back}"
    light = _word(rng, portrait, "light")
    said["light"] = f"{_word(rng, portrait, 'softness')} {light}" if rng.random() < 0.6 else light
    if rng.random() < 0.12:
        said["light"] = f"{_word(rng, portrait, 'softness')} light"
    said["framing"] = _word(rng, portrait, "framing")
    if not colored:
        said["tone"] = _word(rng, portrait, "tone")
    return said


def _subject(portrait: Portrait, rng: np.random.Generator, with_age: bool) -> str:
    person = _word(rng, portrait, "person")
    if not with_age:
        return _article(person)
    their = "her" if portrait.named("person") == "woman" else "his"
    return _article(_word(rng, portrait, "age").format(person, their))


MUST = {"glasses", "hat", "beard", "tone"}
OFTEN = {"hair": 0.85, "clothing": 0.8, "background": 0.88, "light": 0.66, "expression": 0.6, "turn": 0.5, "framing": 0.45,
         "skin": 0.4, "eyes": 0.4, "face": 0.22}  # fmt: skip


def _about_person(portrait: Portrait, rng: np.random.Generator, everything: bool) -> str:
    said = phrases(portrait, rng)
    thin = 1.0 if rng.random() < 0.7 else 0.45
    kept = [k for k in said if everything or k in MUST or rng.random() < OFTEN[k] * thin]
    subject = _subject(portrait, rng, everything or rng.random() < 0.7 * thin)
    text = _choose(rng, OPENINGS).format(subject)
    if everything or rng.random() < 0.75:
        rng.shuffle(kept)
    if "hair" in kept and rng.random() < 0.5:
        kept.remove("hair")
        text += " with " + said["hair"] if not said["hair"].startswith("bald") else ", " + said["hair"]
        if "beard" in kept and rng.random() < 0.4:
            kept.remove("beard")
            beard = portrait.named("beard")
            text += f" and a {beard}"
    elif "clothing" in kept and rng.random() < 0.4:
        kept.remove("clothing")
        clothing = said["clothing"]
        text += (" " if clothing.startswith(("in ", "wearing ")) else ", ") + clothing
    tail = [said[k] for k in kept]
    if portrait.named("glasses") == "none" and rng.random() < 0.05:
        tail.append("no glasses")
    if portrait.named("hat") == "none" and rng.random() < 0.05:
        tail.append(_choose(rng, ["no hat", "bareheaded"]))
    if portrait.named("person") == "man" and portrait.named("beard") == "none" and rng.random() < 0.15:
        tail.append(_choose(rng, ["clean-shaven", "no beard"]))
    for _ in range(int(rng.integers(0, 4)) if rng.random() < 0.5 else 0):
        tail.insert(int(rng.integers(0, len(tail) + 1)), _choose(rng, STUDIO_WORDS))
    return ", ".join([text, *tail])


def full_caption(portrait: Portrait, rng: np.random.Generator) -> str:
    """A caption that names everything that can be seen, in chance words and order."""
    return _about_person(portrait, rng, everything=True)


def caption(portrait: Portrait, rng: np.random.Generator) -> str:
    """A caption in one of the three manners."""
    manner = rng.random()
    if manner < 0.07:
        return _choose(rng, VAGUE)
    if manner < 0.24:
        said = phrases(portrait, rng)
        said["person"] = _word(rng, portrait, "person")
        keys = list(said)
        rng.shuffle(keys)
        # Accessories first in the draw: a negative prompt names them most.
        keys.sort(key=lambda k: k not in ("glasses", "hat", "beard") or rng.random() < 0.5)
        return ", ".join(said[k] for k in keys[: int(rng.integers(1, 5))])
    return _about_person(portrait, rng, everything=manner > 0.85)


def known_words() -> dict:
    """The words offered beside the prompt box: categories of phrases the model was trained on, and whole example prompts."""
    hair = [f"{name} hair" for name in LABELS["hair_color"]]
    shape = ["short hair", "shoulder-length hair", "long hair", "straight hair", "wavy hair", "curly hair", "hair in a bun", "bald"]
    return {
        "categories": [
            {"name": "person", "words": ["woman", "man", "young woman", "young man", "middle-aged woman", "middle-aged man", "old woman", "old man"]},
            {"name": "hair", "words": hair + shape},
            {"name": "face", "words": ["fair skin", "light skin", "tan skin", "brown skin", "dark skin", "oval face", "round face", "long face", "square jaw",
                                       "brown eyes", "blue eyes", "green eyes", "grey eyes", "beard", "moustache", "clean-shaven"]},
            {"name": "expression", "words": ["smiling", "laughing", "serious", "sad", "surprised", "looking left", "looking at the camera", "looking right"]},
            {"name": "accessories", "words": ["glasses", "sunglasses", "beanie", "baseball cap", "sun hat", "beret"]},
            {"name": "clothing", "words": ["t-shirt", "shirt", "turtleneck", "suit", "hoodie", "dress"], "colors": COLORS},
            {"name": "background", "words": [f"{name} background" for name in COLORS] + ["gradient background", "plain background"]},
            {"name": "light", "words": ["soft light", "hard light", "light from the left", "front light", "light from the right", "black and white"]},
            {"name": "framing", "words": ["close-up", "head and shoulders"]},
        ],
        "examples": [
            "portrait photo of a young woman with long wavy red hair, green turtleneck, smiling, teal background, soft light from the left",
            "portrait photo of an old man with a beard, glasses, grey hair, brown suit, black background, hard light from the right",
            "close-up portrait of a young man with short curly black hair, dark skin, yellow hoodie, laughing, purple background",
        ],
    }  # fmt: skip
