"""Trains text encoder and UNet together to predict noise, in stages that go on where the last one ended.

A stage renders portraits of its own, encodes them once, and keeps latents and token ids on the device. Loss: squared error of
the noise, weighted by min(SNR, 5)/SNR (Hang et al. 2023), so that nearly clean latents do not outweigh the rest; a tenth of the
captions is empty, for classifier-free guidance. State between stages: the averaged weights in f16 and Adam's second moments in
bf16; the average is also what training goes on from. As a command of its own it only compiles one size (`--warm`).
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from common import Clock, has_parts, load_parts, prepare_device, save_parts, say
from compiling import Step, Warmers, warm
from data import Source, stream_of
from graphs import Recorder, Stepper, own_stream
from model import PIXELS_PER_CELL, Generator, alphas_cumprod, count
from settings import SEED, Settings, Size
from tokenizer import LENGTH, Tokenizer
from train_vae import encode
from training import Loop, Schedule

EMPTY_CAPTIONS = 0.1
SNR_CAP = 5.0
# Standard deviation of a constant added to each channel's noise. At the last timestep SD's schedule leaves a little of the
# latent's mean in the noise, and a model learns to read the mean there, which pure noise does not have; with this it has
# to take colours of large areas from the caption.
OFFSET_NOISE = 0.1


@dataclass
class Bucket:
    """All latents of one size, f16 `[n, 4, h, w]`, with their captions' ids, int16 `[n, captions, 77]`."""

    latents: torch.Tensor
    ids: torch.Tensor


def make_loss(model: Generator, device: torch.device):
    """The training loss as a function of a batch: noisy latents, timesteps, ids, the noise, and each sample's weight."""
    kind = device.type

    def loss(latents, timesteps, ids, noise, weights):
        # Without autocast's cache of cast weights: a recorded graph must cast them itself, and each is used once a step.
        with torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda", cache_enabled=False):
            guess = model(latents, timesteps, ids)
        return ((guess.float() - noise).square().mean(dim=(1, 2, 3)) * weights).mean()

    return loss


class Noiser:
    """Turns clean latents into training samples."""

    def __init__(self, device: torch.device):
        # Its own random numbers: nothing that happens while a graph is recorded can disturb them.
        self.random = torch.Generator(device).manual_seed(SEED + 2)
        signal = alphas_cumprod()
        snr = signal / (1.0 - signal)
        self.signal = signal.sqrt().float().to(device)
        self.noise = (1.0 - signal).sqrt().float().to(device)
        self.weight = (snr.clamp(max=SNR_CAP) / snr).float().to(device)

    def __call__(self, clean: torch.Tensor, ids: torch.Tensor, empty: torch.Tensor) -> list[torch.Tensor]:
        """Arguments of the loss. `ids` `[n, 77]`, `empty` `[77]` is what a dropped caption becomes."""
        clean = clean.contiguous()
        n, options = len(clean), {"device": clean.device, "generator": self.random}
        # Evenly spread timesteps with one common offset: less chance in the loss than n independent ones.
        places = (torch.arange(n, device=clean.device) + torch.rand(1, **options)) / n
        timesteps = (places * 1000.0).long().clamp(max=999)
        noise = torch.randn(clean.shape, **options) + OFFSET_NOISE * torch.randn(n, clean.shape[1], 1, 1, **options)
        at = (slice(None), None, None, None)
        noisy = self.signal[timesteps][at] * clean + self.noise[timesteps][at] * noise
        dropped = torch.rand(n, 1, **options) < EMPTY_CAPTIONS
        return [noisy, timesteps, torch.where(dropped, empty, ids), noise, self.weight[timesteps]]

    def batch(self, bucket: Bucket, count_: int, empty: torch.Tensor) -> list[torch.Tensor]:
        """Arguments of the loss from pictures and captions drawn from a bucket."""
        options = {"device": bucket.latents.device, "generator": self.random}
        rows = torch.randint(len(bucket.latents), (count_,), **options)
        which = torch.randint(bucket.ids.shape[1], (count_,), **options)
        return self(bucket.latents[rows].float(), bucket.ids[rows, which].long(), empty)


def example(size: Size, vocabulary: int, device: torch.device) -> Bucket:
    """A bucket of chance numbers, for compiling and measuring."""
    latents = torch.randn(64, 4, size[1] // PIXELS_PER_CELL, size[0] // PIXELS_PER_CELL, device=device).half()
    return Bucket(latents, torch.randint(vocabulary, (64, 2, LENGTH), device=device).to(torch.int16))


def prepared(vocabulary: int, device: torch.device):
    """A fresh model, and its step's parts; the same in the training and in the helpers that compile for it."""
    model = Generator(SEED + 1, vocabulary).to(device).train()
    model.unet.to(memory_format=torch.channels_last)
    return model, make_loss(model, device), list(model.parameters())


def latents_of(chunks, vae, device: torch.device) -> dict[Size, Bucket]:
    """Encodes rendered portraits, gathered by size."""
    parts: dict[Size, list] = {}
    for chunk in chunks:
        ids = torch.from_numpy(chunk.ids.astype(np.int16))
        parts.setdefault(chunk.size, []).append((encode(vae, chunk.pictures).half(), ids))
    return {
        size: Bucket(torch.cat([z for z, _ in some]), torch.cat([ids for _, ids in some]).to(device))
        for size, some in parts.items()
    }


def warmers_of(sizes: list[Size], vocabulary: int, batch: int) -> Warmers:
    """Helper processes that compile the training step while something else is done."""
    more = ["--vocabulary", str(vocabulary), "--batch", str(batch)]
    return Warmers(sizes, lambda size: [__file__, "--warm", str(size[0]), str(size[1]), *more])


def train(
    settings: Settings, device: torch.device, clock: Clock, buckets: dict[Size, Bucket], warmers: Warmers | None,
    tokenizer_file: Path, state: Path, out: Path, stage: int, schedule: tuple[float, float], reserve: float,
    graphs: bool = True,
):  # fmt: skip
    """One stage: trains on latents by size, saves into `out`. Returns the averaged model and a report.

    Goes on from the state in the folder `state`, unless `stage` is 1. `schedule` is the part of the whole training, in 0..1,
    that this stage covers. `reserve` is how many seconds of the clock have to remain for what follows the saving.
    `graphs` records whole steps on a GPU.
    """
    tokenizer = Tokenizer.load(tokenizer_file)
    ready = warmers.wait(max(5.0, min(200.0, 0.3 * (clock.left() - reserve)))) if warmers else set()

    model, loss, parameters = prepared(len(tokenizer), device)
    if stage > 1:
        load_model(model, state)
    say(f"text encoder: {count(model.text_encoder)} parameters, UNet: {count(model.unet)}")
    noiser = Noiser(device)
    empty = torch.tensor(tokenizer.padded(""), device=device)
    step = Step(loss, parameters, ready)

    with own_stream(device):
        for size in ready:
            step(size, *noiser.batch(buckets[size], settings.unet_batch, empty))
        for parameter in parameters:
            parameter.grad = None
        seconds = clock.budget(settings.unet_seconds, reserve)
        loop = Loop("UNet", model, Schedule(settings.unet_lr, seconds, *schedule), device)
        if stage > 1:
            load_moments(loop, model, state)
        say(f"UNet: stage {stage}, training {seconds:.0f} s, schedule {schedule[0]} to {schedule[1]}")
        stepper = Stepper(step, loop, Recorder() if graphs and device.type == "cuda" else None)
        rng = np.random.default_rng([SEED, 8, stage])
        sizes = list(buckets)
        shares = np.array([len(buckets[size].latents) for size in sizes], float)
        names = [name for name, p in model.named_parameters() if p.requires_grad]
        kept = time.monotonic()
        while loop.schedule.progress() < 1.0:
            size = sizes[rng.choice(len(sizes), p=shares / shares.sum())]
            stepper(size, noiser.batch(buckets[size], settings.unet_batch, empty))
            if time.monotonic() - kept > settings.keep_seconds:
                # Something to go on from, should the machine be lost.
                averages = {name: v.half() for name, v in zip(names, loop.average.values, strict=True)}
                save_parts(averages, out / "middle", "unet")
                kept = time.monotonic()
        loop.look()
    loop.average.copy_to_parameters()
    report = {
        "stage": stage,
        "parameters": {"text_encoder": count(model.text_encoder), "unet": count(model.unet)},
        "pictures": int(shares.sum()),
        "steps": loop.steps,
        "samples": loop.samples,
        "seconds": round(seconds),
        "schedule": list(schedule),
        "history": loop.history,
    }
    save_state(model, loop, out)
    return model.eval().requires_grad_(False), report


def save_state(model: Generator, loop: Loop, folder: Path) -> None:
    """Writes the averaged weights (already in `model`) as `unet-*`, and Adam's second moments as `moments-*`."""
    save_parts({name: p.detach().half() for name, p in model.named_parameters()}, folder, "unet")
    moments = {}
    for name, p in model.named_parameters():
        if p in loop.optimizer.state:
            moments[name] = loop.optimizer.state[p]["exp_avg_sq"].to(torch.bfloat16)
    steps = int(next(iter(loop.optimizer.state.values()))["step"]) if moments else 0
    save_parts(moments, folder, "moments", {"steps": str(steps)})


def load_model(model: Generator, folder: Path) -> None:
    """Reads the weights that `save_state` wrote."""
    tensors, _ = load_parts(folder, "unet")
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})


def load_moments(loop: Loop, model: Generator, folder: Path) -> None:
    """Gives Adam its second moments back; the first ones start from zero, which is a short warm-up."""
    if not has_parts(folder, "moments"):
        say("UNet: no moments to go on from, Adam starts anew")
        return
    tensors, note = load_parts(folder, "moments")
    state = loop.optimizer.state
    for name, p in model.named_parameters():
        state[p] = {
            "step": torch.tensor(float(note["steps"]), device=p.device if p.is_cuda else "cpu"),
            "exp_avg": torch.zeros_like(p),
            "exp_avg_sq": torch.empty_like(p).copy_(tensors[name].float()),
        }
    loop.average.updates = int(note["steps"])


def load_generator(folder: Path, tokenizer: Tokenizer, device: torch.device) -> Generator:
    """The trained model for making pictures."""
    model = Generator(SEED, len(tokenizer))
    load_model(model, folder)
    return model.to(device).eval().requires_grad_(False)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compiles the training step of text encoder and UNet for one size.")
    parser.add_argument("--warm", nargs=2, type=int, required=True, metavar=("WIDTH", "HEIGHT"))
    parser.add_argument("--vocabulary", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    arguments = parser.parse_args()
    size = tuple(arguments.warm)
    device = prepare_device(SEED)
    _, loss, parameters = prepared(arguments.vocabulary, device)
    bucket = example(size, arguments.vocabulary, device)
    batch = Noiser(device).batch(bucket, arguments.batch, bucket.ids[0, 0].long())
    warm(size, Step(loss, parameters, {size}), batch, 10 if device.type == "cuda" else 0)


if __name__ == "__main__":
    main()
