"""Draws portraits: rays marched through the shapes of `geometry`, lit like a small photo studio, as 8-bit sRGB pictures.

One key light (left, front or right; hard or soft) with a cast shadow, a fill from the other side, a weak rim from behind, ambient
light with occlusion; skin lets red light creep into its shadows, hair shines along its strands; what lies behind the eyes is
slightly out of focus. The picture follows from the `Portrait` alone.

`python render.py OUT.png` draws a sheet to look at.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import Tensor

from attributes import Portrait
from geometry import RAISE, ellipsoid, length3, mouth_curve, parameters, parts, scene, to_head

# The camera stands this far before the head's centre: nearly parallel rays, as a portrait lens gives.
CAMERA = 9.0
STEPS, SHADOW_STEPS = 40, 13
# Shapes lie between these depths.
NEAR, FAR_PLANE = 2.0, -1.9
# Rays of one pass: a divisor of all sizes' rays, so that a GPU's kernels are compiled once for all of them.
RAYS = 1 << 17
TETRAHEDRON = ((1, -1, -1), (-1, -1, 1), (-1, 1, -1), (1, 1, 1))
# How far from the surface its surroundings are felt for ambient light.
CREVICES = (0.06, 0.16, 0.36)


def render(
    portraits: list[Portrait], width: int, height: int, device: str = "cpu", oversampling: int = 2, batch: int = 64
) -> Tensor:
    """Pictures [portraits, height, width, 3], uint8. `oversampling` squared rays make a pixel."""
    done = []
    for start in range(0, len(portraits), batch):
        group = portraits[start : start + batch]
        # Full batches only: one shape is compiled once.
        filled = group + [group[-1]] * (batch - len(group)) if device != "cpu" else group
        done.append(_draw(parameters(filled, device), width, height, oversampling)[: len(group)])
    return torch.cat(done)


_compiled: dict[str, object] = {}


def _fast(function, device: torch.device):
    """The function as one kernel on a GPU, as it is elsewhere."""
    if device.type == "cpu":
        return function
    if function.__name__ not in _compiled:
        _compiled[function.__name__] = torch.compile(function, dynamic=False)
    return _compiled[function.__name__]


@torch.no_grad()
def _draw(p: SimpleNamespace, width: int, height: int, oversampling: int) -> Tensor:
    device = p.yaw.device
    w, h = width * oversampling, height * oversampling
    # Half the picture's height in units: the shorter side frames the face, a longer one shows more around it.
    half = (1.98 - 0.6 * p.close) * (1 - 0.1 * (p.jitter.zoom - 0.5)) * (1 if height <= width else 1.22)
    middle = -0.52 + 0.38 * p.close - (0.1 if height > width else 0.0) + 0.08 * (p.jitter.shift_y - 0.5)
    v = 1 - (torch.arange(h, device=device) + 0.5) * (2 / h)
    u = ((torch.arange(w, device=device) + 0.5) * (2 / w) - 1) * (w / h)
    u, v = (a.reshape(1, -1) for a in torch.meshgrid(u, v, indexing="xy"))
    done = [_rays(p, part_u, part_v, w / h, half, middle) for part_u, part_v in zip(u.split(RAYS, 1), v.split(RAYS, 1), strict=True)]
    color = torch.cat([part for part, _ in done], 1).reshape(-1, h, w, 3)
    depth = torch.cat([part for _, part in done], 1).reshape(-1, 1, h, w)
    return _finish(p, color, depth, oversampling)


def _rays(p: SimpleNamespace, u: Tensor, v: Tensor, aspect: float, half: Tensor, middle: Tensor) -> tuple[Tensor, Tensor]:
    """Linear colours [batch, rays, 3] and depths [batch, rays] of rays through picture places `u`, `v`, [1, rays]."""
    device = p.yaw.device
    x = u * half + 0.16 * (p.jitter.shift_x - 0.5)
    y = v * half + middle
    dx, dy, dz = x, y - middle, torch.full_like(x, -CAMERA)
    scale = 1 / length3(dx, dy, dz)
    dx, dy, dz = dx * scale, dy * scale, dz * scale
    distance, at, away = (_fast(f, device) for f in (scene, _at, _away))
    t = (CAMERA - NEAR) / -dz
    for _ in range(STEPS):
        t = _fast(_advance, device)(t, distance(p, *at(middle, dx, dy, dz, t)), dz)
    x, y, z = at(middle, dx, dy, dz, t)
    hit = z > FAR_PLANE
    # The surface's direction: distances at the corners of a small tetrahedron.
    corners = [distance(p, x + i * 0.004, y + j * 0.004, z + k * 0.004) for i, j, k in TETRAHEDRON]
    nx, ny, nz = _fast(_normal, device)(*corners)
    crevices = [distance(p, *away(x, y, z, nx, ny, nz, torch.full_like(x, far))) for far in CREVICES]
    lx, ly, lz = _key(p)
    shadow = torch.ones_like(x)
    reach = torch.full_like(x, 0.05)
    # Starting a little off the surface, which would shade itself.
    sx, sy, sz = away(x, y, z, nx, ny, nz, torch.full_like(x, 0.035))
    for _ in range(SHADOW_STEPS):
        d = distance(p, *away(sx, sy, sz, lx, ly, lz, reach))
        shadow, reach = _fast(_hide, device)(p.hard, d, shadow, reach)
    color = _fast(_shade, device)(p, x, y, z, nx, ny, nz, dx, dy, dz, shadow, *crevices)
    back = _fast(_background, device)(p, u / aspect, v)
    return torch.where(hit[..., None], color, back), torch.where(hit, z, torch.full_like(z, FAR_PLANE))


def _at(middle, dx, dy, dz, t):
    """The point of a camera ray at a length."""
    return dx * t, middle + dy * t, CAMERA + dz * t


def _away(x, y, z, dx, dy, dz, t):
    """The point at a length in a direction from a point."""
    return x + dx * t, y + dy * t, z + dz * t


def _advance(t, distance, dz):
    return torch.minimum(t + 0.8 * distance, (CAMERA - FAR_PLANE + 0.2) / -dz)


def _normal(a, b, c, d):
    nx, ny, nz = a - b - c + d, -a - b + c + d, -a + b - c + d
    scale = 1 / length3(nx, ny, nz)
    return nx * scale, ny * scale, nz * scale


def _key(p):
    """Direction to the key light."""
    front = 1 - p.light.abs()
    x = p.light * (0.9 + 0.2 * p.jitter.light_side) + front * (p.jitter.light_side - 0.5) * 0.25
    y = 0.38 + 0.35 * p.jitter.light_height + 0.1 * front
    z = 0.5 + 0.65 * front
    scale = 1 / length3(x, y, z)
    return x * scale, y * scale, z * scale


def _hide(hard, distance, shadow, reach):
    """One step towards the key light: how close the ray passes by something, over how far, is how much of the light is hidden."""
    sharp = 5 + 20 * hard
    shadow = torch.minimum(shadow, 0.5 + 0.5 * (sharp * distance / reach).clamp(-1.0, 1.0))
    return shadow, reach + distance.clamp(0.04, 0.3)


def _mix(a: Tensor, b, weight: Tensor) -> Tensor:
    b = b if isinstance(b, Tensor) else a.new_tensor(b)
    return a + (b - a) * weight[..., None]


def _bump(x: Tensor, low: float, high: float) -> Tensor:
    """From 0 at `low` to 1 at `high`, smoothly."""
    s = ((x - low) / (high - low)).clamp(0.0, 1.0)
    return s * s * (3 - 2 * s)


def _skin_color(p, x, y, z, hx, hy, hz):
    side = hx.abs()
    front = _bump(hz, 0.05, 0.35)
    color = p.skin_color.expand(*x.shape, 3)
    red = torch.exp(-(((side - 0.36) / 0.2) ** 2) - ((hy + 0.27) / 0.17) ** 2) * front
    red = red + 0.8 * torch.exp(-((hx / 0.12) ** 2) - ((hy + 0.22) / 0.1) ** 2) * front
    color = _mix(color, color * color.new_tensor([1.06, 0.76, 0.74]), (0.55 * red).clamp(max=1.0))
    bags = torch.exp(-(((side - p.eye_x) / 0.14) ** 2) - ((hy + 0.1) / 0.05) ** 2) * front
    color = _mix(color, color * color.new_tensor([0.72, 0.62, 0.62]), bags * (0.15 + 0.5 * p.old + 0.2 * p.middle))
    # Lines of age: on the forehead, and from the nose to the corners of the mouth.
    forehead = _bump(torch.sin(hy * 62 + torch.sin(hx * 5) * 0.8), 0.55, 1.0) * _bump(hy, 0.36, 0.44) * _bump(-hy, -0.72, -0.62)
    fold = (side - 0.17 - 0.55 * (-0.2 - hy)).abs()
    fold = _bump(-fold, -0.035, -0.005) * _bump(-hy, 0.2, 0.26) * _bump(hy, -0.56, -0.46)
    lines = (forehead * 0.55 * p.old + fold * (0.6 * p.old + 0.3 * p.middle)) * front
    color = _mix(color, color * color.new_tensor([0.5, 0.4, 0.38]), lines.clamp(max=1.0))
    # Lips.
    curve = mouth_curve(p, hx, hy)
    gap = p.open * 0.8
    inside = ((hx / (p.mouth_wide * 1.02)) ** 2 + ((curve + gap * 0.5) / (p.lip * 1.75 + gap * 0.75)) ** 2) < 1
    lips = inside * _bump(hz, 0.5, 0.56)
    tint = color.new_tensor([0.66, 0.17, 0.19]) * (0.55 + 0.6 * p.skin_color.mean(-1, keepdim=True))
    color = _mix(color, _mix(color * color.new_tensor([0.9, 0.62, 0.62]), tint, (1 - p.man) * (0.35 + 0.5 * p.jitter.lip_color)), lips * 0.85)
    slit = _bump(-((curve + gap * 0.4).abs()), -0.016, -0.004) * (side < p.mouth_wide * 0.8) * _bump(hz, 0.4, 0.5)
    color = _mix(color, [0.12, 0.03, 0.03], slit * 0.75 * (p.open <= 0))
    mouth = ((hx / (p.mouth_wide * 0.86)) ** 2 + ((curve + gap * 0.35) / (0.012 + gap * 0.72)) ** 2 < 1) * (hz < 0.7) * (p.open > 0) * _bump(hz, 0.3, 0.4)
    color = _mix(color, [0.09, 0.015, 0.015], mouth * 0.95)
    # Brows and lashes.
    along = (side - 0.27) / 0.2
    arch = 0.27 + p.brow_lift + 0.05 * (p.jitter.brow_arch + 0.3) * (1 - along * along) - p.brow_tilt * (side - 0.27) * 0.6
    thick = p.brow_thick * (1 - 0.45 * along.clamp(min=0.0))
    brow = _bump(thick - (hy - arch).abs(), -0.014, 0.012) * _bump(0.21 - (side - 0.285).abs(), 0.0, 0.05) * front
    brow_color = p.hair_color * 0.45 + 0.012
    color = _mix(color, brow_color, brow * (0.9 - 0.35 * p.old))
    corner = ((side - p.eye_x) / 0.17) ** 2
    edge = (hy - 0.05) - p.lid * (1 - 0.75 * corner)
    lash = _bump(-(edge - 0.006).abs(), -0.026, -0.01) * (corner < 1.05) * _bump(hz, 0.4, 0.5)
    color = _mix(color, [0.03, 0.018, 0.015], lash * (0.62 + 0.3 * (1 - p.man)))
    return color


def _eye_color(p, hx, hy, hz):
    side = hx.abs()
    x, y, z = (side - p.eye_x) / p.eye, (hy - 0.05) / p.eye, (hz - 0.5) / p.eye
    # Looking mostly at the camera, also from a turned head; a mirrored eye looks the mirrored way.
    look = (-p.yaw * 0.55 + p.gaze) * torch.sign(hx)
    away = torch.sqrt((x - torch.sin(look)) ** 2 + (y - 0.02) ** 2 + 1e-9)
    iris = _bump(-away, -0.6, -0.54)
    pupil = _bump(-away, -0.29, -0.24)
    ring = _bump(away, 0.4, 0.58)
    white = hx.new_tensor([0.80, 0.77, 0.74]).expand(*hx.shape, 3)
    # The lid shades the top of the eye.
    white = white * (1 - 0.4 * _bump(y, 0.1, 0.5))[..., None]
    color = _mix(white, p.eye_color.expand(*hx.shape, 3) * 1.1, iris * (z > 0))
    color = _mix(color, color * 0.3, iris * ring)
    return _mix(color, [0.008, 0.008, 0.01], pupil * (z > 0))


def _cloth_color(p, x, y, z):
    side = x.abs()
    color = p.cloth_color.expand(*x.shape, 3)
    knit = 0.5 + 0.5 * torch.sin(x * 42 + torch.sin(y * 60) * 0.8)
    color = color * (1 - 0.22 * p.turtleneck * knit)[..., None]
    hole = ellipsoid(x, y, z, (0.0, -1.45, 0.05), (0.47, 0.36, 0.55))
    color = color * (1 - 0.3 * p.tee * _bump(-hole, -0.1, -0.085))[..., None]
    front = (z > -0.35) & (y < -1.2)
    lapel = 0.62 * (y + 2.75) - side
    inner = p.suit * front * _bump(lapel, -0.01, 0.02)
    collar = p.suit * (y > -1.72) * (y < -1.3) * (side < 0.5)
    color = _mix(color, [0.78, 0.78, 0.8], torch.maximum(inner, collar).clamp(max=1.0))
    tie = p.suit * front * (side < 0.075 + 0.03 * (-1.6 - y).clamp(min=0.0)) * (y < -1.58)
    color = _mix(color, [0.03, 0.03, 0.045], tie * 0.95)
    edge = p.suit * front * _bump(-(lapel + 0.01).abs(), -0.03, -0.008)
    color = _mix(color, color * 0.35, edge * 0.8)
    seam = p.shirt * (y < -1.62) * (z > 0) * _bump(-side, -0.07, -0.055) * (1 - _bump(-side, -0.055, -0.04))
    color = _mix(color, color * 0.55, seam)
    spot = (y + 1.78) / 0.3
    button = p.shirt * (y < -1.65) * (z > 0) * (((spot - torch.round(spot)) * 0.3) ** 2 + x * x < 0.0009)
    color = _mix(color, [0.6, 0.58, 0.55], button * 0.9)
    cord = p.hoodie * (z > -0.1) * _bump(-(side - 0.17 - 0.03 * torch.sin(y * 4)).abs(), -0.03, -0.018) * (y < -1.6) * (y > -2.3)
    return _mix(color, [0.62, 0.61, 0.6], cord * 0.9)


def _shade(p, x, y, z, nx, ny, nz, dx, dy, dz, shadow, *crevices):
    """Linear colour of every hit point."""
    hx, hy, hz = to_head(p, x, y, z)
    skin, hair, beard, eyes, teeth, cloth, hat, frame, lens = parts(p, x, y, z)
    nearest = torch.minimum(torch.minimum(torch.minimum(skin, hair), torch.minimum(beard, eyes)), torch.minimum(teeth, cloth))
    nearest = torch.minimum(nearest, torch.minimum(torch.minimum(hat, frame), lens))
    is_skin, is_hair, is_beard = skin <= nearest, hair <= nearest, beard <= nearest
    is_eye, is_teeth, is_cloth = eyes <= nearest, teeth <= nearest, cloth <= nearest
    is_hat, is_frame, is_lens = hat <= nearest, frame <= nearest, lens <= nearest

    turn = torch.atan2(hx, hz + 0.35)
    streak = torch.sin(turn * 47 + torch.sin(hy * 6 + p.jitter.phase * 6) * 1.1) + torch.sin(turn * 83 + hy * 5)
    streak = 1 + (0.11 + 0.05 * p.wavy) * streak * (1 - 0.6 * p.curly)
    hair_color = p.hair_color.expand(*x.shape, 3) * streak[..., None]
    hair_color = hair_color * (0.8 + 0.25 * _bump(hy, -1.2, 0.9))[..., None]
    band = p.brim * (hy > 0.47) * (hy < 0.68)
    hat_color = p.hat_color.expand(*x.shape, 3) * (1 - 0.5 * band)[..., None]
    metal = torch.where(p.jitter.frame_color < 0.65, 0.012, 0.22) * torch.ones_like(x)
    frame_color = torch.stack([metal, metal * 0.85, metal * 0.75], -1)

    color = torch.zeros(*x.shape, 3, device=x.device)
    for mask, albedo in (
        (is_skin, _skin_color(p, x, y, z, hx, hy, hz)),
        (is_hair, hair_color),
        (is_beard, hair_color * 0.82),
        (is_eye, _eye_color(p, hx, hy, hz)),
        (is_cloth, _cloth_color(p, x, y - RAISE, z)),
        (is_hat, hat_color),
        (is_teeth, color.new_tensor([0.8, 0.78, 0.72]).expand(*x.shape, 3)),
        (is_frame, frame_color),
        (is_lens, color.new_tensor([0.012, 0.012, 0.016]).expand(*x.shape, 3)),
    ):
        color = torch.where(mask[..., None], albedo, color)

    occlusion = torch.ones_like(x)
    for d, far, weight in zip(crevices, CREVICES, (0.5, 0.35, 0.22), strict=True):
        occlusion = occlusion - weight * (1 - (d / far).clamp(0.0, 1.0))
    occlusion = occlusion.clamp(0.12, 1.0)

    lx, ly, lz = _key(p)
    facing = nx * lx + ny * ly + nz * lz
    front = 1 - p.light.abs()
    # Light creeps around the edge of the shadow, red light furthest, on skin; a little on hair and cloth.
    key = 0.0
    wraps = []
    for red in (0.42, 0.2, 0.13):
        wrap = torch.where(is_skin, red, 0.12) * (1 - 0.4 * p.hard)
        lit = ((facing + wrap) / (1 + wrap)).clamp(min=0.0)
        wraps.append(lit * shadow ** (1 - 0.45 * torch.where(is_skin, red, 0.0)))
    key = torch.stack(wraps, -1)
    strength = 1.18 + 0.22 * p.hard - 0.12 * front
    fill_light = (0.34 - 0.22 * p.hard + 0.06 * front) * (0.55 + 0.45 * (nz * 0.8 - nx * p.light * 0.6))
    sky = (0.14 - 0.06 * p.hard) * (0.6 + 0.4 * ny)
    back_glow = p.back_color * 0.1
    light = key * strength[..., None] * key.new_tensor([1.04, 1.0, 0.95])
    light = light + ((fill_light + sky) * occlusion)[..., None] * key.new_tensor([0.96, 0.99, 1.05])
    light = light + back_glow * (occlusion * (0.4 - 0.6 * nz).clamp(0.0, 1.0))[..., None]
    color = color * light

    # Highlights.
    vx, vy, vz = -dx, -dy, -dz
    bx, by, bz = lx + vx, ly + vy, lz + vz
    scale = 1 / length3(bx, by, bz)
    half = ((nx * bx + ny * by + nz * bz) * scale).clamp(0.0, 1.0)
    grazing = (1 - (nx * vx + ny * vy + nz * vz).clamp(0.0, 1.0)) ** 4
    gloss = torch.zeros_like(x)
    for mask, power, amount in (
        (is_skin, 22.0, 0.1), (is_skin, 90.0, 0.05), (is_eye, 240.0, 1.6), (is_teeth, 60.0, 0.2), (is_frame, 50.0, 0.6),
        (is_lens, 70.0, 0.9), (is_hat, 8.0, 0.02), (is_cloth, 8.0, 0.02),
    ):  # fmt: skip
        gloss = gloss + mask * half**power * amount
    gloss = gloss * shadow * (1 + 0.5 * p.hard)
    # A window mirrored in the eyes and the dark glasses.
    mirror = is_lens * _bump(torch.sin(hx * 6 + hy * 5 + 1.2), 0.75, 0.95) * 0.1
    # Hair shines where its strands, running down the head, stand across the light (Kajiya and Kay, 1989).
    down = -ny
    tx, ty, tz = -nx * down, -1 - ny * down, -nz * down
    scale = 1 / length3(tx, ty, tz)
    across = ((tx * bx + ty * by + tz * bz) * scale / length3(bx, by, bz)).clamp(-1.0, 1.0) + 0.06 * (streak - 1)
    shine = torch.sqrt((1 - across * across).clamp(min=0.0)) ** 34 * (0.35 + 0.65 * facing.clamp(min=0.0)) * shadow
    shine = (is_hair | is_beard) * shine * (0.55 - 0.3 * p.curly)
    tint = 0.35 * p.hair_color.expand(*x.shape, 3) + 0.09
    rim = (-(p.light + 0.3 * front) * nx * 0.9 + 0.35 * ny - 0.3 * nz).clamp(0.0, 1.0) * grazing * (0.12 + 0.35 * p.jitter.rim)
    color = color + shine[..., None] * tint + (gloss + mirror)[..., None]
    return color + (rim * occlusion)[..., None] * (0.4 + color)


def _background(p, u, v):
    """The wall behind: plain, from dark to light, or with a glow behind the head."""
    sx, sy = (p.jitter.spot_x - 0.5) * 0.5, (p.jitter.spot_y - 0.5) * 0.4
    far = (u - sx) ** 2 + (v - 0.1 - sy) ** 2
    slope = v * torch.cos(p.jitter.spot_x * 6.28) + u * torch.sin(p.jitter.spot_x * 6.28)
    value = 1 - 0.06 * far * (1 - p.gradient - p.spot)
    value = value + p.gradient * slope * 0.32
    value = value + p.spot * (0.3 * torch.exp(-1.6 * far) - 0.32 * (1 - torch.exp(-0.7 * far)))
    value = value * (0.9 + 0.2 * p.jitter.value_back)
    return (p.back_color * value[..., None]).clamp(0.0, 1.0)


def _blur(image: Tensor, sigma: float) -> Tensor:
    reach = max(1, math.ceil(2.5 * sigma))
    at = torch.arange(-reach, reach + 1, device=image.device, dtype=image.dtype)
    weights = torch.exp(-0.5 * (at / sigma) ** 2)
    weights = weights / weights.sum()
    n = image.shape[1]
    image = F.pad(image, (reach,) * 4, mode="replicate")
    image = F.conv2d(image, weights.view(1, 1, 1, -1).expand(n, 1, 1, -1), groups=n)
    return F.conv2d(image, weights.view(1, 1, -1, 1).expand(n, 1, -1, 1), groups=n)


def _finish(p, color: Tensor, depth: Tensor, oversampling: int) -> Tensor:
    """Rays to pixels, focus, bloom, black-and-white, and sRGB."""
    # A shoulder over 0.75 instead of hard clipping.
    over = (color - 0.75).clamp(min=0.0)
    color = torch.minimum(color, color.new_tensor(0.75)) + 0.25 * (1 - torch.exp(-over / 0.25))
    picture = color.permute(0, 3, 1, 2)
    if oversampling > 1:
        picture = F.avg_pool2d(picture, oversampling)
        depth = F.avg_pool2d(depth, oversampling)
    pixel = min(picture.shape[-2:]) / 256
    # Out of focus from half a unit behind the eyes on.
    far = _bump(-_blur(depth, 1.5 * pixel), -0.15, 1.4)
    picture = picture + (_blur(picture, 1.6 * pixel) - picture) * far
    glow = _blur((picture - 0.6).clamp(min=0.0), 5 * pixel)
    picture = picture + 0.25 * p.jitter.bloom[..., None, None] * glow
    gray = (picture * picture.new_tensor([0.2126, 0.7152, 0.0722]).view(1, 3, 1, 1)).sum(1, keepdim=True)
    picture = torch.where(p.mono[..., None, None] > 0, gray.expand_as(picture), picture).clamp(0.0, 1.0)
    srgb = torch.where(picture <= 0.0031308, picture * 12.92, 1.055 * picture.clamp(min=1e-6) ** (1 / 2.4) - 0.055)
    return (srgb * 255 + 0.5).clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1)


def sheet(pictures: Tensor, columns: int) -> Tensor:
    """Pictures [n, h, w, 3] side by side in rows of `columns`."""
    rows = [torch.cat(list(pictures[i : i + columns]), 1) for i in range(0, len(pictures) - columns + 1, columns)]
    return torch.cat(rows, 0)


if __name__ == "__main__":
    import sys

    import numpy as np
    from PIL import Image

    from attributes import sample

    count = int(sys.argv[2]) if len(sys.argv) > 2 else 24
    rng = np.random.default_rng(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    drawn = render([sample(rng) for _ in range(count)], 256, 256, batch=4)
    Image.fromarray(sheet(drawn, min(count, 6)).numpy()).save(sys.argv[1])
