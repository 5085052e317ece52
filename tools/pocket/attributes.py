"""What a drawn portrait can be: the attributes, their classes, and how one portrait is drawn from chance.

Every attribute that a caption can name is a class index into `LABELS`; what no caption names (how wide this head is, where this
curl falls) is one of `JITTER` numbers in 0..1. A `Portrait` alone decides the picture: the renderer draws nothing from chance.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

COLORS = ["red", "orange", "yellow", "green", "teal", "blue", "purple", "pink", "brown", "white", "grey", "black"]

LABELS: dict[str, list[str]] = {
    "person": ["woman", "man"],
    "age": ["young", "middle-aged", "old"],
    "skin": ["fair", "light", "tan", "brown", "dark"],
    "face": ["oval", "round", "long", "square"],
    "hair_color": ["black", "brown", "blonde", "red", "grey", "white", "blue", "pink", "green", "purple"],
    "hair_length": ["bald", "short", "medium", "long"],
    "hair_style": ["straight", "wavy", "curly", "bun"],
    "eyes": ["brown", "blue", "green", "grey"],
    "glasses": ["none", "glasses", "sunglasses"],
    "hat": ["none", "beanie", "cap", "sun hat", "beret"],
    "hat_color": COLORS,
    "beard": ["none", "beard", "moustache"],
    "expression": ["neutral", "smiling", "laughing", "sad", "surprised"],
    "turn": ["left", "front", "right"],
    "clothing": ["t-shirt", "shirt", "turtleneck", "suit", "hoodie", "dress"],
    "clothing_color": COLORS,
    "background": COLORS,
    "gradient": ["plain", "gradient", "spotlight"],
    "light": ["left", "front", "right"],
    "softness": ["soft", "hard"],
    "framing": ["close-up", "bust"],
    "tone": ["color", "black-and-white"],
}

# Free numbers in 0..1 that no caption names.
JITTER = [
    "head_width", "head_height", "jaw", "chin", "cheek", "nose_length", "nose_width", "eye_size", "eye_gap", "brow_thick",
    "brow_arch", "lip", "ear", "neck", "shoulder", "hairline", "hair_volume", "part", "curl", "phase", "strand", "yaw", "pitch",
    "roll", "gaze", "light_height", "light_side", "rim", "shift_x", "shift_y", "zoom", "hue_skin", "hue_hair", "hue_cloth",
    "hue_back", "value_back", "frame_shape", "frame_color", "spot_x", "spot_y", "bloom", "lip_color",
]  # fmt: skip


@dataclass(frozen=True)
class Portrait:
    """One portrait: class indices by attribute name, and free numbers by jitter name."""

    classes: dict[str, int]
    jitter: dict[str, float] = field(repr=False)

    def named(self, attribute: str) -> str:
        """The name of this portrait's class of an attribute."""
        return LABELS[attribute][self.classes[attribute]]


def _pick(rng: np.random.Generator, attribute: str, weights: dict[str, float] | None = None) -> int:
    names = LABELS[attribute]
    if weights is None:
        return int(rng.integers(len(names)))
    chances = np.array([weights.get(name, 0.0) for name in names])
    return int(rng.choice(len(names), p=chances / chances.sum()))


def sample(rng: np.random.Generator) -> Portrait:
    """Draws one portrait. Colours are uniform and independent of each other, so that no colour can be guessed from another."""
    c: dict[str, int] = {}
    for attribute in ("person", "skin", "face", "hair_color", "eyes", "clothing_color", "background", "hat_color"):
        c[attribute] = _pick(rng, attribute)
    man = c["person"] == 1
    c["age"] = _pick(rng, "age", {"young": 0.45, "middle-aged": 0.3, "old": 0.25})
    if man:
        lengths = {"bald": 0.12, "short": 0.6, "medium": 0.18, "long": 0.1}
    else:
        lengths = {"bald": 0.02, "short": 0.26, "medium": 0.34, "long": 0.38}
    c["hair_length"] = _pick(rng, "hair_length", lengths)
    styles = {"straight": 0.36, "wavy": 0.24, "curly": 0.26, "bun": 0.14}
    if man or c["hair_length"] < 2:
        styles["bun"] = 0.0
    c["hair_style"] = _pick(rng, "hair_style", styles)
    c["glasses"] = _pick(rng, "glasses", {"none": 0.62, "glasses": 0.26, "sunglasses": 0.12})
    c["hat"] = _pick(rng, "hat", {"none": 0.64, "beanie": 0.09, "cap": 0.09, "sun hat": 0.09, "beret": 0.09})
    if LABELS["hair_style"][c["hair_style"]] == "bun" and c["hat"]:
        c["hair_style"] = 0
    c["beard"] = _pick(rng, "beard", {"none": 0.52, "beard": 0.33, "moustache": 0.15}) if man else 0
    c["expression"] = _pick(
        rng, "expression", {"neutral": 0.34, "smiling": 0.3, "laughing": 0.14, "sad": 0.11, "surprised": 0.11}
    )
    c["turn"] = _pick(rng, "turn", {"left": 0.28, "front": 0.44, "right": 0.28})
    clothes = {"t-shirt": 0.2, "shirt": 0.2, "turtleneck": 0.2, "suit": 0.16, "hoodie": 0.16, "dress": 0.08}
    if man:
        clothes["dress"] = 0.0
    c["clothing"] = _pick(rng, "clothing", clothes)
    c["gradient"] = _pick(rng, "gradient", {"plain": 0.4, "gradient": 0.3, "spotlight": 0.3})
    c["light"] = _pick(rng, "light", {"left": 0.36, "front": 0.28, "right": 0.36})
    c["softness"] = _pick(rng, "softness", {"soft": 0.62, "hard": 0.38})
    c["framing"] = _pick(rng, "framing", {"close-up": 0.36, "bust": 0.64})
    c["tone"] = _pick(rng, "tone", {"color": 0.93, "black-and-white": 0.07})
    jitter = {name: float(value) for name, value in zip(JITTER, rng.random(len(JITTER)), strict=True)}
    return Portrait(c, jitter)


def labels(portrait: Portrait) -> dict[str, int]:
    """Class indices for a classifier; -1 where the picture cannot show the attribute (a colour in black and white, the colour
    of no hair, the style of a bald head, eyes behind dark glasses)."""
    c = dict(portrait.classes)
    if portrait.named("tone") == "black-and-white":
        for attribute in ("hair_color", "clothing_color", "background", "hat_color", "eyes"):
            c[attribute] = -1
    if portrait.named("hair_length") == "bald":
        c["hair_style"] = -1
        if portrait.named("beard") == "none":
            c["hair_color"] = -1
    if portrait.named("hat") == "none":
        c["hat_color"] = -1
    elif portrait.named("hair_length") in ("bald", "short"):
        # A hat covers most of short hair and all of none: what is left does not tell.
        c["hair_length"] = -1
        c["hair_style"] = -1
        if portrait.named("hair_length") == "bald" and portrait.named("beard") == "none":
            c["hair_color"] = -1
    if portrait.named("glasses") == "sunglasses":
        c["eyes"] = -1
    return c
