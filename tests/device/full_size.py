#!/usr/bin/env python3
"""The full-size model against diffusers on the same card: SD1.5's published configuration with seeded weights.

    python full_size.py make FOLDER              writes a diffusers folder in f16 (2.1 GB)
    python full_size.py run FOLDER OUT           diffusers' final latents in f32 and f16, from torch's CPU noise of seed 42
    python full_size.py compare OUT OURS         our latents (softbox generate --save-latents) against both

Needs torch with CUDA, diffusers and transformers. `run` walks Euler over the k-diffusion sigmas of the "normal" schedule, 25
steps at 512x768, CFG 7, as `softbox generate --rng cpu --seed 42 --sampler euler --schedule normal` does.
"""

import json
import math
import re
import sys
import time
from pathlib import Path

import torch

SIZE, STEPS, CFG, SEED = (96, 64), 25, 7.0, 42
PROMPT, NEGATIVE = "portrait photo of a woman, soft light", "blurry"


def token_ids(text):
    """One chunk of CLIP's ids for plain lower-case words, padded with the end token."""
    merges = Path(__file__).parents[2].joinpath("assets/clip/merges.txt").read_text().splitlines()
    merges = [tuple(line.split()) for line in merges if len(line.split()) == 2 and not line.startswith("#version")]
    letters = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spelling = {b: chr(b) for b in letters}
    spelling.update({b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in letters)})
    words = [spelling[b] for b in letters] + [spelling[b] for b in range(256) if b not in letters]
    words += [w + "</w>" for w in words] + ["".join(pair) for pair in merges]
    number, rank = {w: i for i, w in enumerate(words)}, {pair: i for i, pair in enumerate(merges)}
    ids = []
    for word in re.findall(r"[a-z]+|[^\sa-z]+", text):
        parts = [*word[:-1], word[-1] + "</w>"]
        while len(parts) > 1:
            best, at = min((rank.get(pair, math.inf), i) for i, pair in enumerate(zip(parts, parts[1:])))
            if best == math.inf:
                break
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
        ids += [number[part] for part in parts]
    return [49406, *ids, *[49407] * (76 - len(ids))]


def scaled(model, seed):
    """Weights of variance 1/fan-in, so that signals keep their size; residual outputs a little smaller."""
    gen = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.ndim >= 2:
                fan_in = p[0].numel() if "embedding" not in name else p.shape[1]
                p.copy_(torch.randn(p.shape, generator=gen) / math.sqrt(fan_in))
            elif name.endswith("bias"):
                p.copy_(0.02 * torch.randn(p.shape, generator=gen))
    return model


def make(folder):
    from diffusers import AutoencoderKL, DDIMScheduler, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel

    folder = Path(folder)
    unet = UNet2DConditionModel(
        sample_size=64, cross_attention_dim=768, attention_head_dim=8, block_out_channels=(320, 640, 1280, 1280),
        down_block_types=("CrossAttnDownBlock2D",) * 3 + ("DownBlock2D",),
        up_block_types=("UpBlock2D",) + ("CrossAttnUpBlock2D",) * 3)
    vae = AutoencoderKL(
        block_out_channels=(128, 256, 512, 512), layers_per_block=2, latent_channels=4, sample_size=512,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4)
    text = CLIPTextModel(CLIPTextConfig(
        vocab_size=49408, hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12,
        projection_dim=768, hidden_act="quick_gelu", bos_token_id=49406, eos_token_id=49407, pad_token_id=49407))
    for seed, (part, model) in enumerate({"unet": unet, "vae": vae, "text_encoder": text}.items()):
        scaled(model, seed).half().save_pretrained(folder / part)
    DDIMScheduler(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", clip_sample=False,
                  set_alpha_to_one=False, steps_offset=1).save_pretrained(folder / "scheduler")
    (folder / "model_index.json").write_text(json.dumps({
        "_class_name": "StableDiffusionPipeline", "unet": ["diffusers", "UNet2DConditionModel"],
        "vae": ["diffusers", "AutoencoderKL"], "text_encoder": ["transformers", "CLIPTextModel"],
        "scheduler": ["diffusers", "DDIMScheduler"]}))


def run(folder, out):
    from diffusers import AutoencoderKL, UNet2DConditionModel
    from safetensors.torch import save_file
    from transformers import CLIPTextModel

    betas = torch.linspace(0.00085**0.5, 0.012**0.5, 1000, dtype=torch.float64) ** 2
    acp = torch.cumprod(1 - betas, 0)
    log_sigmas = (((1 - acp) / acp).sqrt()).log()
    t = torch.linspace(999, 0, STEPS, dtype=torch.float64)
    low = t.floor().long().clamp(max=998)
    sigmas = ((1 - (t - low)) * log_sigmas[low] + (t - low) * log_sigmas[low + 1]).exp().tolist() + [0.0]
    noise = torch.randn(1, 4, *SIZE, generator=torch.Generator().manual_seed(SEED))
    result = {}
    for name, dtype in (("f32", torch.float32), ("f16", torch.float16)):
        load = dict(torch_dtype=dtype)
        unet = UNet2DConditionModel.from_pretrained(folder, subfolder="unet", **load).cuda().eval()
        text = CLIPTextModel.from_pretrained(folder, subfolder="text_encoder", **load).cuda().eval()
        vae = AutoencoderKL.from_pretrained(folder, subfolder="vae", **load).cuda().eval()
        with torch.no_grad():
            context = torch.cat([text(torch.tensor([row]).cuda()).last_hidden_state for row in map(token_ids, (PROMPT, NEGATIVE))])
            x = noise * sigmas[0]
            torch.cuda.synchronize()
            started = time.time()
            for i in range(STEPS):
                seen = (x / (1 + sigmas[i] ** 2) ** 0.5).to(dtype).cuda()
                eps = unet(torch.cat([seen, seen]), float(t[i]), context).sample.float().cpu()
                cond, uncond = eps.chunk(2)
                x = x + (uncond + CFG * (cond - uncond)) * (sigmas[i + 1] - sigmas[i])
            seconds = time.time() - started
            image = vae.decode((x / 0.18215).to(dtype).cuda()).sample.float().cpu()
        print(f"diffusers {name}: {seconds / STEPS * 1000:.1f} ms a step, latents std {x.std():.3f}, "
              f"finite {bool(torch.isfinite(image).all())}, peak {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")
        result[name] = x
        del unet, text, vae
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    save_file(result, out)


def compare(out, ours):
    from safetensors.torch import load_file

    reference, ours = load_file(out), load_file(ours)["latents"]

    def error(a, b):
        return ((a - b).norm() / b.norm()).item(), ((a - b).abs().max() / b.abs().max()).item()

    print("relative error (L2, largest over largest):")
    print("  diffusers f16 against diffusers f32  %.3e  %.3e" % error(reference["f16"], reference["f32"]))
    print("  ours against diffusers f16           %.3e  %.3e" % error(ours, reference["f16"]))
    print("  ours against diffusers f32           %.3e  %.3e" % error(ours, reference["f32"]))


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    task, *rest = sys.argv[1:]
    {"make": make, "run": run, "compare": compare}[task](*rest)
