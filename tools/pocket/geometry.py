"""The shapes of a portrait as signed distances, evaluated for whole batches of points at once.

Space: the head's centre is the origin, x to the picture's right, y up, z to the camera; a head is about two units tall. Every
function takes coordinates [batch, points] and parameters [batch, 1] and returns distances [batch, points]: negative inside.
Distances of ellipsoids and blends are bounds, not exact; the marcher takes shortened steps.

The distance functions of simple solids and the polynomial smooth minimum are the well-known ones (Inigo Quilez, "Distance
functions" and "Smooth minimum", 2008 to 2013); the head is ours.
"""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from attributes import COLORS, JITTER, LABELS, Portrait

# The trunk is built for a long neck and raised by this much.
RAISE = 0.26

# A part that is absent lies this far away.
FAR = 50.0

PARTS = ["skin", "hair", "beard", "eyes", "teeth", "cloth", "hat", "frame", "lens"]

_BACKGROUND = {
    "red": "b3191f", "orange": "e67a17", "yellow": "ecc932", "green": "2f8a3c", "teal": "169a98", "blue": "2850b8",
    "purple": "743399", "pink": "ee9ab8", "brown": "70492b", "white": "efefee", "grey": "858587", "black": "151517",
}  # fmt: skip
_HAIR = {
    "black": "17151a", "brown": "55331c", "blonde": "d9b066", "red": "a8401a", "grey": "8d8d92", "white": "e6e3dc",
    "blue": "2f5cd0", "pink": "ee6fb2", "green": "35a050", "purple": "7a3fb8",
}  # fmt: skip
_SKIN = {"fair": "f2d3c2", "light": "e3b595", "tan": "c68f66", "brown": "94603d", "dark": "5a3725"}
_EYES = {"brown": "5a3214", "blue": "3f78c0", "green": "4c8a4a", "grey": "7d8790"}


def linear(hexes: dict[str, str], names: list[str]) -> Tensor:
    """sRGB colours as a [names, 3] table of linear light."""
    rows = [[int(hexes[name][i : i + 2], 16) / 255 for i in (0, 2, 4)] for name in names]
    srgb = torch.tensor(rows)
    return torch.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


BACKGROUND = linear(_BACKGROUND, COLORS)
HAIR = linear(_HAIR, LABELS["hair_color"])
SKIN = linear(_SKIN, LABELS["skin"])
EYES = linear(_EYES, LABELS["eyes"])


def parameters(portraits: list[Portrait], device: str) -> SimpleNamespace:
    """Everything the shapes and the shading read, as [batch, 1] numbers and [batch, 1, 3] linear colours."""
    p = SimpleNamespace()

    def table(values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float32, device=device)[:, None]

    def choose(attribute: str, values: dict[str, float], default: float = 0.0) -> Tensor:
        return table([values.get(q.named(attribute), default) for q in portraits])

    def flag(attribute: str, *names: str) -> Tensor:
        return table([float(q.named(attribute) in names) for q in portraits])

    j = SimpleNamespace(**{name: table([q.jitter[name] for q in portraits]) for name in JITTER})
    p.jitter = j
    man = flag("person", "man")
    old, middle = flag("age", "old"), flag("age", "middle-aged")
    p.man, p.old, p.middle = man, old, middle
    wide = choose("face", {"round": 1.12, "long": 0.9, "square": 1.08}, 1.0)
    tall = choose("face", {"round": 0.95, "long": 1.1}, 1.0)
    p.width = wide * (0.96 + 0.08 * j.head_width) * (1 + 0.03 * man)
    p.height = tall * (0.97 + 0.06 * j.head_height)
    p.jaw = 0.54 + 0.08 * j.jaw + 0.07 * man + 0.05 * flag("face", "round") + 0.05 * old
    p.corner = 0.18 * flag("face", "square") + 0.06 * man
    p.chin = 0.19 + 0.06 * j.chin + 0.04 * man - 0.03 * flag("face", "round")
    p.cheek = 0.25 + 0.05 * j.cheek + 0.04 * flag("face", "round") - 0.05 * old
    p.nose_length = 0.02 * j.nose_length - 0.05 + 0.04 * man + 0.03 * old
    p.nose_width = 0.85 + 0.3 * j.nose_width + 0.12 * man
    p.eye = 0.165 + 0.015 * j.eye_size + 0.012 * (1 - man)
    p.eye_x = 0.275 + 0.03 * j.eye_gap
    p.neck = 0.36 + 0.04 * j.neck + 0.07 * man
    p.shoulder = 1.0 + 0.12 * j.shoulder + 0.14 * man

    sign = choose("turn", {"left": -1.0, "right": 1.0})
    # Degrees: a quarter turn would hide an eye; 22 to 38 still shows both.
    p.yaw = torch.deg2rad(sign * (22 + 16 * j.yaw) + (1 - sign.abs()) * (j.yaw - 0.5) * 10)
    p.pitch = torch.deg2rad((j.pitch - 0.5) * 10)
    p.roll = torch.deg2rad((j.roll - 0.5) * 9)
    p.gaze = (j.gaze - 0.5) * 0.25

    expression = {name: flag("expression", name) for name in LABELS["expression"]}
    smile, laugh, sad, wow = (expression[n] for n in ("smiling", "laughing", "sad", "surprised"))
    p.smile = 0.55 * smile + 0.8 * laugh - 0.6 * sad
    p.open = 0.13 * laugh + 0.13 * wow
    p.mouth_wide = 0.215 + 0.035 * smile + 0.06 * laugh - 0.05 * wow
    p.lid = 0.064 + 0.035 * wow - 0.02 * smile - 0.03 * laugh - 0.014 * sad - 0.01 * old
    p.lid_low = 0.085 + 0.02 * wow - 0.02 * laugh - 0.012 * smile
    p.brow_lift = 0.085 * wow - 0.015 * sad + 0.01 * laugh
    p.brow_tilt = 0.35 * sad
    p.lip = 0.04 + 0.02 * j.lip + 0.012 * (1 - man) - 0.012 * old
    p.brow_thick = 0.028 + 0.016 * j.brow_thick + 0.012 * man

    length = {name: flag("hair_length", name) for name in LABELS["hair_length"]}
    style = {name: flag("hair_style", name) for name in LABELS["hair_style"]}
    haired = 1 - length["bald"]
    p.haired, p.hair_long = haired, length["long"]
    p.curly, p.wavy, p.bun = style["curly"] * haired, style["wavy"] * haired, style["bun"] * haired
    hat = {name: flag("hat", name) for name in LABELS["hat"]}
    p.hat = 1 - hat["none"]
    p.beanie, p.cap, p.brim, p.beret = hat["beanie"], hat["cap"], hat["sun hat"], hat["beret"]
    p.volume = (0.055 + 0.05 * j.hair_volume + 0.15 * p.curly + 0.03 * p.wavy) * (1 - 0.55 * p.hat)
    p.locks = (length["medium"] + length["long"]) * haired * (1 - p.bun)
    p.lock_end = -0.95 - 0.12 * j.curl - length["long"] * (0.85 + 0.25 * j.curl)
    p.hairline = 0.02 + 0.14 * j.hairline + 0.1 * length["short"] + 0.1 * old * man
    p.part = (j.part - 0.5) * 0.9

    p.beard = flag("beard", "beard")
    p.moustache = flag("beard", "beard", "moustache")
    p.glasses = flag("glasses", "glasses", "sunglasses")
    p.dark_lens = flag("glasses", "sunglasses")
    clothing = {name: flag("clothing", name) for name in LABELS["clothing"]}
    p.tee, p.shirt, p.turtleneck = clothing["t-shirt"], clothing["shirt"], clothing["turtleneck"]
    p.suit, p.hoodie, p.dress = clothing["suit"], clothing["hoodie"], clothing["dress"]

    def color(attribute: str, colors: Tensor, hue: Tensor, spread: float) -> Tensor:
        base = colors[[q.classes[attribute] for q in portraits]].to(device)
        # A little lighter or darker, a little warmer or colder: no two are the same.
        tilt = torch.stack([hue - 0.5, (hue * 7.13) % 1 - 0.5, (hue * 13.7) % 1 - 0.5], -1)
        return (base[:, None] * (1 + spread * tilt)).clamp(0.0, 1.0)

    p.skin_color = color("skin", SKIN, j.hue_skin, 0.12)
    p.hair_color = color("hair_color", HAIR, j.hue_hair, 0.22)
    p.eye_color = color("eyes", EYES, j.gaze, 0.2)
    p.cloth_color = color("clothing_color", BACKGROUND, j.hue_cloth, 0.15)
    p.hat_color = color("hat_color", BACKGROUND, j.frame_color, 0.15)
    p.back_color = color("background", BACKGROUND, j.hue_back, 0.12)

    p.gradient, p.spot = flag("gradient", "gradient"), flag("gradient", "spotlight")
    p.light = choose("light", {"left": -1.0, "right": 1.0})
    p.hard = flag("softness", "hard")
    p.close = flag("framing", "close-up")
    p.mono = flag("tone", "black-and-white")
    return p


def smooth_min(a: Tensor, b: Tensor, k: float) -> Tensor:
    """The smaller of two distances, blended over `k` units where they are alike."""
    h = (k - (a - b).abs()).clamp(min=0.0) / k
    return torch.minimum(a, b) - h * h * (k * 0.25)


def smooth_max(a: Tensor, b: Tensor, k: float) -> Tensor:
    return -smooth_min(-a, -b, k)


def length3(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return torch.sqrt(x * x + y * y + z * z + 1e-12)


def ellipsoid(x: Tensor, y: Tensor, z: Tensor, center: tuple, radii: tuple) -> Tensor:
    x, y, z = x - center[0], y - center[1], z - center[2]
    a, b, c = radii
    near = length3(x / a, y / b, z / c)
    steep = length3(x / (a * a), y / (b * b), z / (c * c))
    return near * (near - 1) / steep


def sphere(x: Tensor, y: Tensor, z: Tensor, center: tuple, radius) -> Tensor:
    return length3(x - center[0], y - center[1], z - center[2]) - radius


def capsule(x: Tensor, y: Tensor, z: Tensor, start: tuple, end: tuple, radius, radius_end=None) -> Tensor:
    """A rod with round ends, its radius going from `radius` to `radius_end`."""
    dx, dy, dz = (end[i] - start[i] for i in range(3))
    px, py, pz = x - start[0], y - start[1], z - start[2]
    along = ((px * dx + py * dy + pz * dz) / (dx * dx + dy * dy + dz * dz)).clamp(0.0, 1.0)
    thick = radius if radius_end is None else radius + (radius_end - radius) * along
    return length3(px - dx * along, py - dy * along, pz - dz * along) - thick


def absent(distance: Tensor, present: Tensor) -> Tensor:
    """Moves a part away where it is not present (0)."""
    return distance + FAR * (1 - present)


def to_head(p: SimpleNamespace, x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Points in the turned head's own coordinates: turned about the neck, then scaled to this head's proportions."""
    y = y + 0.75
    cos, sin = torch.cos(p.roll), torch.sin(p.roll)
    x, y = cos * x + sin * y, cos * y - sin * x
    cos, sin = torch.cos(p.pitch), torch.sin(p.pitch)
    y, z = cos * y - sin * z, cos * z + sin * y
    cos, sin = torch.cos(p.yaw), torch.sin(p.yaw)
    x, z = cos * x - sin * z, cos * z + sin * x
    return x / p.width, y / p.height - 0.75, z


def mouth_curve(p: SimpleNamespace, x: Tensor, y: Tensor) -> Tensor:
    """Height over the mouth's bent midline."""
    return y + 0.53 - p.smile * (x * x * 1.5 - 0.02)


def _face(p: SimpleNamespace, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    side = x.abs()
    skull = ellipsoid(x, y, z, (0.0, 0.27, -0.12), (0.76, 0.82, 0.86))
    jaw = ellipsoid(x, y, z, (0.0, -0.32, 0.1), (p.jaw, 0.7, 0.6))
    jaw_corner = sphere(side, y, z, (0.36, -0.5, 0.02), p.corner)
    head = smooth_min(skull, jaw, 0.22)
    head = smooth_min(head, jaw_corner, 0.25)
    head = smooth_min(head, sphere(x, y, z, (0.0, -0.85, 0.38), p.chin), 0.22)
    head = smooth_min(head, sphere(side, y, z, (0.31, -0.25, 0.43), p.cheek), 0.18)
    head = smooth_min(head, ellipsoid(side, y, z, (0.26, 0.22, 0.6), (0.24, 0.06, 0.1)), 0.16)
    head = smooth_max(head, -sphere(side, y, z, (p.eye_x, 0.03, 0.84), 0.2), 0.14)
    bridge = capsule(x, y, z, (0.0, 0.16, 0.66), (0.0, -0.19 + p.nose_length, 0.86), 0.055, 0.095)
    wing = sphere(side, y, z, (0.09 * p.nose_width, -0.23 + p.nose_length, 0.75), 0.07 * p.nose_width)
    nose = smooth_min(bridge, wing, 0.07)
    head = smooth_min(head, nose, 0.11)
    curve = mouth_curve(p, x, y)
    muzzle = ellipsoid(x, y, z, (0.0, -0.53, 0.5), (0.27, 0.21, 0.2))
    head = smooth_min(head, muzzle, 0.15)
    gap = p.open * 0.8
    front = z - 0.66
    upper = ellipsoid(x, curve, front, (0.0, 0.028 + gap * 0.35, 0.0), (p.mouth_wide, p.lip, 0.075))
    lower = ellipsoid(x, curve, front, (0.0, -0.036 - gap, 0.0), (p.mouth_wide * 0.86, p.lip * 1.15, 0.08))
    head = smooth_min(head, torch.minimum(upper, lower), 0.045)
    slit = ellipsoid(x, curve, front, (0.0, -gap * 0.3, 0.06), (p.mouth_wide * 0.93, 0.008 + gap * 0.85, 0.2))
    head = smooth_max(head, -slit, 0.03)
    ear = ellipsoid(side, y, z, (0.77, 0.0, -0.1), (0.09, 0.21, 0.14))
    ear = smooth_max(ear, -ellipsoid(side, y, z, (0.86, 0.02, -0.04), (0.06, 0.13, 0.09)), 0.04)
    return smooth_min(head, ear, 0.06)


def _lids(p: SimpleNamespace, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    side = x.abs()
    eye = (p.eye_x, 0.05, 0.5)
    # The opening is almond shaped: the lids close toward the corners.
    corner = ((side - p.eye_x) / 0.17) ** 2
    opening = y - 0.05
    shell = sphere(side, y, z, eye, p.eye + 0.028)
    upper = smooth_max(shell, (p.lid * (1 - 0.75 * corner)) - opening, 0.015)
    lower = smooth_max(shell - 0.004, opening + p.lid_low * (1 - 0.75 * corner), 0.015)
    return torch.minimum(upper, lower)


def _strands(p: SimpleNamespace, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """The relief of hair, in units: curls, waves, and the grain of strands."""
    turn = torch.atan2(x, z + 0.35)
    phase = p.jitter.phase * 6.28
    wave = torch.sin(y * 9 + torch.sin(turn * 4 + phase) * 1.5) * 0.028 * p.wavy
    curl = torch.sin(x * 15 + phase) * torch.sin(y * 15 + 2 * phase) * torch.sin(z * 15) * 0.055
    fine = torch.sin(x * 31 + y * 9) * torch.sin(y * 29 - z * 11) * 0.016
    straight = torch.sin(turn * 57 + torch.sin(y * 5 + phase) * 1.2) * 0.0042 + torch.sin(turn * 23 + y * 3 + phase) * 0.005
    return wave + (curl + fine) * p.curly + straight * (1 - p.curly)


def _hair(p: SimpleNamespace, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    side = x.abs()
    v = p.volume
    cap = ellipsoid(x, y, z, (0.0, 0.27, -0.14), (0.76 + v, 0.83 + v, 0.87 + v))
    # Short hair ends over the ears and at the nape.
    nape = -0.12 - 0.3 * (z < -0.2) - 0.5 * p.locks - 0.12 * p.curly
    cap = smooth_max(cap, nape - y + 0.25 * (z + 0.14).clamp(min=0.0), 0.08)
    face = ellipsoid(x - p.part * 0.15, y - p.part * x * 0.35, z, (0.0, -0.42, 0.9), (0.66, 0.93 + p.hairline, 0.84))
    hair = smooth_max(cap, -face, 0.07)
    end = p.lock_end
    sway = 0.05 * p.wavy * torch.sin(y * 7 + p.jitter.phase * 6.28)
    back = ellipsoid(x, y, z, (0.0, (end + 0.5) * 0.5, -0.4), (0.86 + v * 0.7, (0.5 - end) * 0.62, 0.5))
    lock = capsule(side + sway, y, z, (0.7, 0.3, -0.05), (0.78 + v * 0.4, end, 0.1), 0.17 + v * 0.4, 0.07 + v * 0.6)
    inner = capsule(side + sway, y, z, (0.68, 0.0, -0.1), (0.62, end - 0.08, 0.06), 0.15, 0.06 + v * 0.5)
    locks = smooth_min(back, smooth_min(lock, inner, 0.1), 0.15)
    locks = smooth_max(locks, -face, 0.06)
    hair = smooth_min(hair, absent(locks, p.locks), 0.18)
    bun = sphere(x, y, z, (0.0, 1.17 + v, -0.35), 0.31)
    hair = torch.minimum(hair, absent(bun, p.bun))
    # Under a hat the crown is pressed flat.
    hair = torch.where(p.hat > 0, smooth_max(hair, y - 0.62, 0.1), hair)
    return absent(hair + _strands(p, x, y, z), p.haired)


def _beard(p: SimpleNamespace, face: Tensor, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    side = x.abs()
    phase = p.jitter.phase * 6.28
    grain = torch.sin(x * 47 + y * 13 + phase) * torch.sin(y * 41 - x * 9) * torch.sin(z * 44) * 0.0075
    # Full: below a line from the ear to over the lip, the mouth left free.
    line = y + 0.36 - 0.62 * (side - 0.3).clamp(min=0.0)
    mouth = ellipsoid(x, mouth_curve(p, x, y), z, (0.0, -p.open * 0.5, 0.7), (0.23, 0.085 + p.open * 0.9, 0.5))
    full = smooth_max(face - 0.042, line, 0.05)
    full = smooth_max(full, -0.05 - z, 0.1)
    full = smooth_max(full, -mouth, 0.03)
    chin = ellipsoid(x, y, z, (0.0, -0.88, 0.34), (0.33, 0.26, 0.3))
    full = smooth_min(full, smooth_max(chin, -mouth, 0.03), 0.12)
    curve = mouth_curve(p, x, y)
    lip = capsule(side, curve, z, (0.03, 0.135, 0.72), (0.25, 0.06, 0.6), 0.055, 0.03)
    both = torch.minimum(absent(full, p.beard), absent(lip, p.moustache))
    return both + grain


def _body(p: SimpleNamespace, x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """Neck and trunk."""
    s = p.shoulder
    neck = capsule(x, y, z, (0.0, -0.6, -0.2), (0.0, -1.7, -0.3), p.neck, p.neck * 1.08)
    bar = capsule(x.abs(), y, z, (0.0, -1.86, -0.32), (0.92 * s, -2.12, -0.36), 0.27, 0.36)
    chest = ellipsoid(x, y, z, (0.0, -2.95, -0.3), (1.18 * s, 1.2, 0.62))
    arm = capsule(x.abs(), y, z, (0.95 * s, -2.1, -0.36), (1.16 * s, -3.4, -0.3), 0.33, 0.3)
    trunk = smooth_min(smooth_min(bar, chest, 0.3), arm, 0.16)
    return neck, trunk


def _cloth(p: SimpleNamespace, trunk: Tensor, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    side = x.abs()
    cloth = trunk - 0.05
    # How deep the neck is left free.
    wide = 0.47 + 0.26 * p.dress + 0.08 * p.hoodie
    deep = 0.36 + 0.34 * p.dress + 0.12 * p.shirt + 0.1 * p.suit - 0.06 * p.hoodie
    hole = ellipsoid(x, y, z, (0.0, -1.45, 0.05), (wide, deep, 0.55))
    cloth = smooth_max(cloth, -hole, 0.04)
    folds = torch.sin(x * 6 + torch.sin(y * 4 + p.jitter.phase * 6) * 1.4) * torch.sin(y * 5 + x * 2) * 0.014
    cloth = cloth + folds
    neck = (0.0, -1.12, -0.17), (0.0, -1.75, -0.24)
    roll = capsule(x, y, z, *neck, p.neck + 0.085, p.neck + 0.14)
    roll = smooth_max(roll, y + 1.1 + 0.12 * z, 0.05) + torch.sin(torch.atan2(x, z + 0.2) * 26) * 0.007
    cloth = smooth_min(cloth, absent(roll, p.turtleneck), 0.1)
    # A shirt's collar: a cone around the neck, wider downwards, open at the throat.
    below = -1.36 - y + 0.25 * (z + 0.25)
    around = torch.sqrt(x * x + (z + 0.22) ** 2 + 1e-9) - (p.neck + 0.015 + 0.4 * below)
    collar = around.abs() * 0.85 - 0.028
    collar = smooth_max(collar, smooth_max(-below - 0.02, below - 0.26 - 0.1 * (z > 0.0) * (1 - side), 0.02), 0.02)
    collar = smooth_max(collar, torch.where(z > 0.0, 0.04 + 0.75 * below - side, -0.2), 0.02)
    cloth = torch.minimum(cloth, absent(collar, (p.shirt + p.suit).clamp(max=1.0)))
    hood = _ring(x, y + 1.52 - 0.42 * (z + 0.25), z + 0.3, 0.62, 0.5, 0.2)
    cloth = smooth_min(cloth, absent(hood, p.hoodie), 0.08)
    # The lapels of a suit stand off the shirt.
    lapel = 0.62 * (y + 2.75) - side
    raised = 0.035 * p.suit * torch.sigmoid(-lapel * 40) * torch.sigmoid((lapel + 0.3) * 60)
    return cloth - raised


def _ring(x: Tensor, y: Tensor, z: Tensor, wide, deep, thick) -> Tensor:
    """A lying ring of half axes `wide` (x) and `deep` (z)."""
    scale = torch.sqrt((x / wide) ** 2 + (z / deep) ** 2 + 1e-9)
    around = (scale - 1) * torch.minimum(torch.as_tensor(wide), torch.as_tensor(deep))
    return torch.sqrt(around * around + y * y + 1e-12) - thick


def _hats(p: SimpleNamespace, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    v = p.volume
    rib = torch.sin(torch.atan2(x, z + 0.14) * 30) * 0.012
    dome = ellipsoid(x, y, z, (0.0, 0.36, -0.16), (0.83 + v, 0.92 + v, 0.95 + v))
    tilt = y - 0.45 + 0.1 * (z + 0.1)
    beanie = smooth_max(dome, -tilt, 0.05)
    fold = smooth_max(smooth_max(dome - 0.06, -tilt - 0.02, 0.03), tilt - 0.22, 0.05)
    beanie = torch.minimum(beanie, fold) + rib
    crown = ellipsoid(x, y, z, (0.0, 0.42, -0.14), (0.82 + v, 0.82 + v, 0.93 + v))
    cap = smooth_max(crown, -tilt + 0.02, 0.03)
    visor = ellipsoid(x, y - 0.1 * (1 - (x / 0.7) ** 2), z, (0.0, 0.44, 0.85), (0.62, 0.045, 0.55))
    cap = torch.minimum(cap, smooth_max(visor, 0.3 - z, 0.03))
    top = ellipsoid(x, y, z, (0.0, 0.5, -0.14), (0.8 + v, 0.85 + v, 0.9 + v))
    top = smooth_max(top, y - 1.18, 0.12)
    brim = ellipsoid(x, y + 0.14 * (x / 1.3) ** 2, z, (0.0, 0.5, -0.1), (1.5, 0.05, 1.3))
    sun = smooth_min(smooth_max(top, 0.48 - y, 0.03), brim, 0.08)
    lean = 0.24 * x
    beret = ellipsoid(x, y - lean, z, (0.06, 0.8, -0.15), (0.93 + v, 0.36, 0.97 + v))
    band = smooth_max(smooth_max(dome - 0.02, -tilt - 0.02, 0.03), tilt - 0.14, 0.03)
    beret = smooth_min(beret, band, 0.14)
    hats = torch.minimum(absent(beanie, p.beanie), absent(cap, p.cap))
    return torch.minimum(hats, torch.minimum(absent(sun, p.brim), absent(beret, p.beret)))


def _glasses(p: SimpleNamespace, x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """Frame, and dark lenses."""
    side = x.abs()
    plane = z - 0.83 + 0.28 * side * side
    # From round to rounded square, by the exponent of a superellipse.
    power = 2 + 3 * p.jitter.frame_shape
    across, up = (side - 0.3).abs() / 0.25, (y - 0.03).abs() / 0.215
    outline = ((across**power + up**power + 1e-9) ** (1 / power) - 1) * 0.22
    rim = torch.sqrt(outline * outline + plane * plane + 1e-12) - 0.027
    bridge = capsule(x, y, plane, (-0.06, 0.07, 0.0), (0.06, 0.07, 0.0), 0.022)
    temple = capsule(side, y, z, (0.55, 0.08, 0.72), (0.79, 0.06, -0.1), 0.022)
    frame = torch.minimum(torch.minimum(rim, bridge), temple)
    lens = torch.maximum(outline, plane.abs() - 0.014)
    return absent(frame, p.glasses), absent(lens, p.dark_lens)


def parts(p: SimpleNamespace, x: Tensor, y: Tensor, z: Tensor) -> list[Tensor]:
    """Distances to every part, in the order of `PARTS`."""
    hx, hy, hz = to_head(p, x, y, z)
    face = _face(p, hx, hy, hz)
    head = smooth_min(face, _lids(p, hx, hy, hz), 0.035)
    low = y - RAISE
    neck, trunk = _body(p, x, low, z)
    skin = smooth_min(smooth_min(head, neck, 0.2), trunk, 0.22)
    eyes = sphere(hx.abs(), hy, hz, (p.eye_x, 0.05, 0.5), p.eye)
    teeth = ellipsoid(hx, mouth_curve(p, hx, hy), hz, (0.0, 0.02 * p.open, 0.5), (0.22, 0.06 + p.open * 0.25, 0.15))
    hair = _hair(p, hx, hy, hz)
    beard = _beard(p, face, hx, hy, hz)
    frame, lens = _glasses(p, hx, hy, hz)
    return [skin, hair, beard, eyes, teeth, _cloth(p, trunk, x, low, z), _hats(p, hx, hy, hz), frame, lens]


def scene(p: SimpleNamespace, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """Distance to the nearest part."""
    nearest, *others = parts(p, x, y, z)
    for other in others:
        nearest = torch.minimum(nearest, other)
    return nearest
