"""Trains the VAE, whitens its latents, measures it, and saves it as `vae-1.safetensors`.

Loss: absolute and squared error of pixels, absolute error of their differences at three scales (edges and shading), and a
faint KL term. The decoder always sees latents with some noise, since the UNet's latents are never exact. Runs as a stage of
`train.py`; as a command of its own it only compiles one size (`--warm`).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from common import Clock, load_parts, prepare_device, save_parts, say
from compiling import Step, Warmers, warm
from data import Source, stream_of, to_bytes, to_signed
from model import PIXELS_PER_CELL, build_vae, count
from settings import FULL, SEED, Settings, Size
from training import Loop, Schedule

KL_WEIGHT = 1e-5
# Most noise on the decoder's input, in standard deviations of the latents.
LATENT_NOISE = 0.1

# The rough map from latents to RGB in −1..1 that previews use (fitted to SD1's latents and published by "keturn", 2022).
# Whitened latents may be turned freely, so ours are turned to where this map fits them best.
TO_RGB = [[0.298, 0.207, 0.208], [0.187, 0.286, 0.173], [-0.158, 0.189, 0.264], [-0.184, -0.271, -0.473]]


def reconstruction_loss(made: torch.Tensor, true: torch.Tensor) -> torch.Tensor:
    """Distance of two pictures `[n, 3, h, w]` in −1..1."""
    off = made - true
    loss = off.abs().mean() + off.square().mean()
    for level in range(3):
        if level:
            off = F.avg_pool2d(off, 2)
        across = (off[..., :, 1:] - off[..., :, :-1]).abs().mean()
        down = (off[..., 1:, :] - off[..., :-1, :]).abs().mean()
        loss = loss + 0.5 * (across + down)
    return loss


def make_loss(vae, device: torch.device):
    """The training loss as a function of a batch: pictures, noise for sampling, noise on top, and how much of that."""
    kind = device.type

    def loss(pictures, noise, extra, amount):
        true = to_signed(pictures).contiguous(memory_format=torch.channels_last)
        with torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda"):
            moments = vae.quant_conv(vae.encoder(true))
        mean, spread = moments.float().chunk(2, 1)
        spread = spread.clamp(-30.0, 20.0)
        width = mean.detach().std(dim=(0, 2, 3), keepdim=True)
        latents = mean + torch.exp(0.5 * spread) * noise + amount * width * extra
        with torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda"):
            made = vae.decoder(vae.post_quant_conv(latents))
        kl = 0.5 * (mean.square() + spread.exp() - 1.0 - spread).mean()
        return reconstruction_loss(made.float(), true) + KL_WEIGHT * kl

    return loss


def _noise(count_: int, size: Size, device: torch.device) -> list[torch.Tensor]:
    shape = (count_, 4, size[1] // PIXELS_PER_CELL, size[0] // PIXELS_PER_CELL)
    amount = LATENT_NOISE * torch.rand(count_, 1, 1, 1, device=device)
    return [torch.randn(shape, device=device), torch.randn(shape, device=device), amount]


def prepared(settings: Settings, device: torch.device):
    """A fresh VAE, and its step's parts; the same in the training and in the helpers that compile for it."""
    vae = build_vae(SEED).to(device, memory_format=torch.channels_last).train()
    return vae, make_loss(vae, device), list(vae.parameters())


def warmers_of(settings: Settings) -> Warmers:
    """Helper processes that compile the training step while something else is done."""
    return Warmers(settings.sizes, lambda size: [__file__, "--warm", str(size[0]), str(size[1])])


def train(
    settings: Settings, device: torch.device, clock: Clock, source: Source, data: dict[Size, torch.Tensor],
    warmers: Warmers | None, out: Path, reserve: float, state: Path | None = None,
):  # fmt: skip
    """Trains on pictures by size, whitens, saves into `out`. Returns the finished VAE (f32, frozen) and a report.

    Goes on from the VAE in the folder `state`, if given, with half the learning rate. `reserve` is how many seconds of the
    clock have to remain for what follows.
    """
    ready = warmers.wait(max(5.0, min(150.0, clock.left() - reserve - 0.6 * settings.vae_seconds))) if warmers else set()

    vae, loss, parameters = prepared(settings, device)
    if state is not None:
        vae.load_state_dict({name: tensor.float() for name, tensor in load_parts(state, "vae")[0].items()})
    say(f"VAE: {count(vae)} parameters")
    step = Step(loss, parameters, ready)
    # Each size compiles (from the caches) before the clock of the schedule starts.
    for size in ready:
        step(size, data[size][: settings.vae_batch], *_noise(settings.vae_batch, size, device))
    for parameter in parameters:
        parameter.grad = None
    seconds = clock.budget(settings.vae_seconds, reserve)
    loop = Loop("VAE", vae, Schedule(settings.vae_lr * (0.5 if state else 1.0), seconds), device)
    say(f"VAE: training {seconds:.0f} s")
    rng = np.random.default_rng([SEED, 7])
    sizes = list(data)
    shares = np.array([len(data[size]) for size in sizes], float)
    while loop.schedule.progress() < 1.0:
        size = sizes[rng.choice(len(sizes), p=shares / shares.sum())]
        rows = torch.randint(len(data[size]), (settings.vae_batch,), device=device)
        value = step(size, data[size][rows], *_noise(settings.vae_batch, size, device))
        loop.update(value, settings.vae_batch)
    loop.look()
    loop.average.copy_to_parameters()
    vae.eval().requires_grad_(False)

    report = {"parameters": count(vae), "steps": loop.steps, "samples": loop.samples, "seconds": round(seconds)}
    report["pictures"] = int(shares.sum())
    report["whitened"] = whiten(vae, {size: pictures[:1500] for size, pictures in data.items()})
    # From here on it is what will be exported: everything after it learns from, and is measured with, the rounded weights.
    vae.half().float()
    save_parts({name: tensor.half() for name, tensor in vae.state_dict().items()}, out, "vae")
    report["psnr"] = measured(settings, source, vae)
    report["history"] = loop.history
    return vae, report


def keep(settings: Settings, device: torch.device, source: Source, state: Path, out: Path):
    """The finished VAE in the folder `state` as it is, saved into `out` too. Returns it and a report, as `train` does."""
    tensors, _ = load_parts(state, "vae")
    vae = build_vae(SEED)
    vae.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    vae = vae.to(device, memory_format=torch.channels_last).eval().requires_grad_(False)
    if out != state:
        save_parts(tensors, out, "vae")
    return vae, {"parameters": count(vae), "kept": True, "psnr": measured(settings, source, vae)}


def measured(settings: Settings, source: Source, vae) -> dict:
    """PSNR on held-out pictures, by size."""
    report = {}
    for size in settings.sizes:
        _, pictures = source.held_out(stream_of("vae-test"), size, settings.test_pictures // 4)
        name = f"{size[0]}x{size[1]}"
        report[name] = figures = psnr(vae, pictures)
        say(f"VAE: {name} {figures['mean']} dB, the worst twentieth at most {figures['p5']} dB, of {figures['pictures']}")
    return report


@torch.no_grad()
def encode(vae, pictures: torch.Tensor) -> torch.Tensor:
    """Latents' means, f32 `[n, 4, h/8, w/8]`, of uint8 pictures `[n, h, w, 3]`; in half precision on a GPU."""
    kind = pictures.device.type
    out = []
    for part in pictures.split(64):
        with torch.autocast(kind, torch.float16, enabled=kind == "cuda"):
            moments = vae.quant_conv(vae.encoder(to_signed(part)))
        out.append(moments.float().chunk(2, 1)[0])
    return torch.cat(out)


@torch.no_grad()
def decode(vae, latents: torch.Tensor) -> torch.Tensor:
    """uint8 pictures `[n, h, w, 3]` of latents; in half precision on a GPU."""
    kind = latents.device.type
    out = []
    for part in latents.split(64):
        with torch.autocast(kind, torch.float16, enabled=kind == "cuda"):
            made = vae.decoder(vae.post_quant_conv(part))
        out.append(to_bytes(made))
    return torch.cat(out)


@torch.no_grad()
def whiten(vae, pictures: dict[Size, torch.Tensor]) -> dict:
    """Gives the latents zero mean and unit covariance, by an affine map folded into the two 1×1 convolutions.

    The decoder undoes the map exactly, so pictures stay the same. Of all whitening maps the one is taken whose latents the
    linear preview shows best. Returns the figures before and after.
    """
    device = next(vae.parameters()).device
    total, outer = torch.zeros(4, device=device, dtype=torch.float64), torch.zeros(4, 4, device=device, dtype=torch.float64)
    cross, n = torch.zeros(4, 3, device=device, dtype=torch.float64), 0
    for some in pictures.values():
        z = encode(vae, some).double()
        y = F.avg_pool2d(to_signed(some), PIXELS_PER_CELL).double()
        z, y = z.movedim(1, -1).reshape(-1, 4), y.movedim(1, -1).reshape(-1, 3)
        total += z.sum(0)
        outer += z.T @ z
        cross += z.T @ (y - y.mean(0))
        n += len(z)
    mean = total / n
    covariance = outer / n - mean[:, None] * mean[None]
    values, vectors = torch.linalg.eigh(covariance)
    plain = vectors @ torch.diag(values.rsqrt()) @ vectors.T
    # Orthogonal Procrustes: the turn that brings the latents closest to what the preview's map expects.
    to_rgb = torch.tensor(TO_RGB, device=device, dtype=torch.float64)
    left, _, right = torch.linalg.svd(plain @ (cross / n) @ to_rgb.T)
    forward = (left @ right).T @ plain
    fold(vae, forward, mean)

    check = torch.cat([encode(vae, some).movedim(1, -1).reshape(-1, 4) for some in pictures.values()]).double()
    after = check.T.cov()
    figures = {
        "mean_before": [round(v, 4) for v in mean.tolist()],
        "covariance_before": [[round(v, 4) for v in row] for row in covariance.tolist()],
        "largest_mean_after": round(float(check.mean(0).abs().max()), 5),
        "largest_error_of_covariance_after": round(float((after - torch.eye(4, device=device)).abs().max()), 5),
    }
    say(f"VAE: whitened; {figures}")
    return figures


@torch.no_grad()
def fold(vae, forward: torch.Tensor, mean: torch.Tensor) -> None:
    """Makes the encoder's means `forward (z − mean)` and lets the decoder undo it. f64, `[4, 4]` and `[4]`.

    The logarithms of the variances follow as closely as an affine map can: each becomes the average of the old ones, weighted
    by their shares in the new variance, plus the logarithm of the scale. Text to picture never reads them.
    """
    quant, post = vae.quant_conv, vae.post_quant_conv
    weight, bias = quant.weight.double()[:, :, 0, 0], quant.bias.double()
    scale = forward.square().sum(1)
    shares = forward.square() / scale[:, None]
    means = forward @ weight[:4], forward @ (bias[:4] - mean)
    spreads = shares @ weight[4:], shares @ bias[4:] + scale.log()
    quant.weight.copy_(torch.cat([means[0], spreads[0]])[:, :, None, None])
    quant.bias.copy_(torch.cat([means[1], spreads[1]]))
    weight, bias = post.weight.double()[:, :, 0, 0], post.bias.double()
    post.weight.copy_((weight @ torch.linalg.inv(forward))[:, :, None, None])
    post.bias.copy_(bias + weight @ mean)


@torch.no_grad()
def psnr(vae, pictures: torch.Tensor) -> dict:
    """PSNR in dB of reconstructions, both sides 8 bits: mean over pictures, and what a twentieth of them stay under."""
    made = decode(vae, encode(vae, pictures))
    error = (made.float() - pictures.float()).square().mean(dim=(1, 2, 3)).clamp_min(1e-6)
    values = 10.0 * torch.log10(255.0**2 / error)
    low = torch.quantile(values, 0.05)
    return {"mean": round(float(values.mean()), 2), "p5": round(float(low), 2), "pictures": len(pictures)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Compiles the VAE's training step for one size.")
    parser.add_argument("--warm", nargs=2, type=int, required=True, metavar=("WIDTH", "HEIGHT"))
    size = tuple(parser.parse_args().warm)
    device = prepare_device(SEED)
    _, loss, parameters = prepared(FULL, device)
    pictures = torch.randint(256, (FULL.vae_batch, size[1], size[0], 3), dtype=torch.uint8, device=device)
    repeats = 10 if device.type == "cuda" else 0
    warm(size, Step(loss, parameters, {size}), [pictures, *_noise(FULL.vae_batch, size, device)], repeats)


if __name__ == "__main__":
    main()
