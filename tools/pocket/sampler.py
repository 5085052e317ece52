"""Makes pictures as the program does: Euler on k-diffusion's noise levels, classifier-free guidance, noise from torch's CPU
generator (`--rng cpu`), so that a prompt and a seed give the same picture here and there, up to rounding.
"""

from __future__ import annotations

from pathlib import Path

import torch
from PIL import Image

from model import PIXELS_PER_CELL, Generator, alphas_cumprod
from settings import Size
from tokenizer import Tokenizer
from train_vae import decode


def noise_levels(steps: int) -> tuple[list[float], list[float]]:
    """Timesteps from 999 to 0, evenly spaced and not whole, and their sigmas, with a last 0 after them.

    Sigma is noise over signal; between two whole timesteps its logarithm is interpolated.
    """
    signal = alphas_cumprod()
    logs = ((1.0 - signal) / signal).log() * 0.5
    times = torch.linspace(999.0, 0.0, steps, dtype=torch.float64)
    low = times.floor().long().clamp(max=998)
    share = times - low
    sigmas = ((1.0 - share) * logs[low] + share * logs[low + 1]).exp()
    return times.tolist(), [*sigmas.tolist(), 0.0]


@torch.no_grad()
def latents(
    model: Generator, tokenizer: Tokenizer, prompts: list[str], negatives: list[str], seeds: list[int], size: Size,
    steps: int, cfg: float, batch: int = 100,
) -> torch.Tensor:  # fmt: skip
    """Clean latents `[n, 4, h/8, w/8]` of as many prompts, f32. Without guidance (`cfg` 1) negatives do nothing."""
    device = next(model.parameters()).device
    times, sigmas = noise_levels(steps)
    shape = (4, size[1] // PIXELS_PER_CELL, size[0] // PIXELS_PER_CELL)
    done = []
    for start in range(0, len(prompts), batch):
        part = slice(start, start + batch)
        ids = [tokenizer.padded(text) for text in prompts[part]]
        states = model.text_encoder(torch.tensor(ids, device=device))
        if cfg != 1.0:
            ids = [tokenizer.padded(text) for text in negatives[part]]
            states = torch.cat([model.text_encoder(torch.tensor(ids, device=device)), states])
        noise = [torch.randn(shape, generator=torch.Generator().manual_seed(seed)) for seed in seeds[part]]
        x = torch.stack(noise).to(device) * sigmas[0]
        for time, sigma, following in zip(times, sigmas, sigmas[1:]):
            seen = x / (sigma**2 + 1.0) ** 0.5
            if cfg != 1.0:
                seen = torch.cat([seen, seen])
            at = torch.full((len(seen),), time, device=device)
            eps = model.unet(seen, at, encoder_hidden_states=states, return_dict=False)[0]
            if cfg != 1.0:
                without, with_prompt = eps.chunk(2)
                eps = without + cfg * (with_prompt - without)
            x = x + eps * (following - sigma)
        done.append(x)
    return torch.cat(done)


def pictures(
    model: Generator, vae, tokenizer: Tokenizer, prompts: list[str], negatives: list[str], seeds: list[int], size: Size,
    steps: int, cfg: float,
) -> torch.Tensor:  # fmt: skip
    """uint8 pictures `[n, height, width, 3]` of as many prompts, on the model's device."""
    return decode(vae, latents(model, tokenizer, prompts, negatives, seeds, size, steps, cfg))


def save_sheet(blocks: list[tuple[torch.Tensor, int]], path: Path) -> None:
    """Writes one JPEG of blocks below each other. A block is pictures `[n, h, w, 3]` of one size and how many stand in a row."""
    done = []
    for made, columns in blocks:
        n, h, w, _ = made.shape
        block = torch.full((-(-n // columns) * h, columns * w, 3), 255, dtype=torch.uint8)
        for i, picture in enumerate(made.cpu()):
            row, column = divmod(i, columns)
            block[row * h : (row + 1) * h, column * w : (column + 1) * w] = picture
        done.append(block)
    width = max(block.shape[1] for block in done)
    done = [torch.nn.functional.pad(block, (0, 0, 0, width - block.shape[1]), value=255) for block in done]
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(torch.cat(done).numpy()).save(path, quality=88)
