"""Writes the trained parts as a diffusers folder in f16, checks its size, and holds it against what was trained.

    python export.py --state target/pocket --to assets/pocket
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from safetensors.torch import save_file

import captions
from common import load_parts, say
from model import SCHEDULER, TEXT, Generator, build_vae
from settings import SEED
from tokenizer import Tokenizer
from train_unet import load_model

# All files together.
MOST_BYTES = 20_000_000
DIFFUSERS = "0.42.1"


def _json(path: Path, value) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def load_vae(state: Path) -> AutoencoderKL:
    """The finished VAE, f32, not to be trained on."""
    vae = build_vae(SEED)
    vae.load_state_dict({name: tensor.float() for name, tensor in load_parts(state, "vae")[0].items()})
    return vae.eval().requires_grad_(False)


def export(state: Path, folder: Path) -> int:
    """Writes the folder from the state of the stages. Returns the bytes of all its files.

    Raises ValueError if they are too many, or a weight is no number in f16.
    """
    tokenizer = Tokenizer.load(state / "tokenizer.json")
    model = Generator(SEED, len(tokenizer))
    load_model(model, state)
    vae = load_vae(state)
    for part in (model, vae):
        for name, tensor in part.state_dict().items():
            if not torch.isfinite(tensor.half()).all():
                raise ValueError(f"{name} has values that f16 cannot hold")

    tokenizer.save_folder(folder / "tokenizer")
    model.unet.half().save_pretrained(folder / "unet")
    vae.half().save_pretrained(folder / "vae")
    text = {name: tensor.half().contiguous() for name, tensor in model.text_encoder.state_dict().items()}
    (folder / "text_encoder").mkdir(parents=True, exist_ok=True)
    save_file(text, folder / "text_encoder" / "model.safetensors", metadata={"format": "pt"})
    ids = {"bos_token_id": tokenizer.start, "eos_token_id": tokenizer.end, "pad_token_id": tokenizer.end}
    config = {"architectures": ["CLIPTextModel"], "model_type": "clip_text_model", "vocab_size": len(tokenizer), **TEXT, **ids}
    _json(folder / "text_encoder" / "config.json", {**config, "attention_dropout": 0.0, "torch_dtype": "float16"})
    _json(folder / "scheduler" / "scheduler_config.json", {**SCHEDULER, "_diffusers_version": DIFFUSERS})
    parts = {
        "scheduler": ["diffusers", "PNDMScheduler"],
        "text_encoder": ["transformers", "CLIPTextModel"],
        "tokenizer": ["transformers", "CLIPTokenizer"],
        "unet": ["diffusers", "UNet2DConditionModel"],
        "vae": ["diffusers", "AutoencoderKL"],
    }
    absent = {name: [None, None] for name in ("feature_extractor", "image_encoder", "safety_checker")}
    # The words that the window offers beside its prompt.
    _json(folder / "words.json", captions.known_words())
    index = {"_class_name": "StableDiffusionPipeline", "_diffusers_version": DIFFUSERS, "requires_safety_checker": False}
    _json(folder / "model_index.json", index | dict(sorted((absent | parts).items())))

    sizes = {path.relative_to(folder): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}
    for path, size in sizes.items():
        (folder / path).chmod(0o644)
        say(f"{size:>10} bytes  {path}")
    total = sum(sizes.values())
    say(f"{total:>10} bytes  in all")
    if total > MOST_BYTES:
        raise ValueError(f"{total} bytes are more than {MOST_BYTES}")
    return total


@torch.no_grad()
def compare(state: Path, folder: Path) -> dict[str, float]:
    """Loads the folder with diffusers and transformers and runs it beside the trained parts rounded to f16.

    Returns the largest difference of each part, relative to its largest output. Raises ValueError where one is not tiny, or
    the tokenizers disagree.
    """
    from transformers import CLIPTextModel, CLIPTokenizer

    tokenizer = Tokenizer.load(state / "tokenizer.json")
    model = Generator(SEED, len(tokenizer))
    load_model(model, state)
    vae = load_vae(state)
    for part in (model, vae):
        part.half().float().eval()

    theirs = CLIPTokenizer.from_pretrained(folder / "tokenizer")
    for text in ("a portrait of a woman, red hair", "don't  SHOUT, 85mm!", "café 中文 🙂 ½", ""):
        ids = theirs(text, padding="max_length", max_length=77, truncation=True)["input_ids"]
        if ids != tokenizer.padded(text):
            raise ValueError(f"tokenizers disagree on {text!r}: {ids} {tokenizer.padded(text)}")

    generator = torch.Generator().manual_seed(0)
    ids = torch.tensor([tokenizer.padded("portrait photo of a woman with red hair, blue background"), tokenizer.padded("")])
    latents = torch.randn(2, 4, 32, 48, generator=generator)
    picture = torch.rand(1, 3, 64, 96, generator=generator) * 2 - 1
    states = model.text_encoder(ids)
    text = CLIPTextModel.from_pretrained(folder / "text_encoder", dtype=torch.float32).eval()
    unet = UNet2DConditionModel.from_pretrained(folder / "unet", torch_dtype=torch.float32).eval()
    other = AutoencoderKL.from_pretrained(folder / "vae", torch_dtype=torch.float32).eval()
    time = torch.tensor([700, 20])
    pairs = {
        "text encoder": (states, text(ids).last_hidden_state),
        "UNet": (model.unet(latents, time, states).sample, unet(latents, time, states).sample),
        "VAE encoder": (vae.encode(picture).latent_dist.mean, other.encode(picture).latent_dist.mean),
        "VAE decoder": (vae.decode(latents).sample, other.decode(latents).sample),
    }
    errors = {name: float((a - b).abs().max() / a.abs().max()) for name, (a, b) in pairs.items()}
    say(f"against diffusers and transformers: {errors}")
    if max(errors.values()) > 1e-3:
        raise ValueError(f"the folder computes something else: {errors}")
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes the trained model as a diffusers folder.")
    parser.add_argument("--state", type=Path, default=Path("target/pocket"))
    parser.add_argument("--to", type=Path, default=Path("assets/pocket"))
    arguments = parser.parse_args()
    export(arguments.state, arguments.to)
    compare(arguments.state, arguments.to)


if __name__ == "__main__":
    main()
