"""Makes the tiny models and the reference vectors of the parity tests: `python tests/data/make_reference.py`.

Everything is seeded and runs on the CPU; sampling arithmetic is f64, models are f32. The models are the real classes of
diffusers and transformers at tiny size with random weights, saved in the formats that artists have on disk; the
vectors are what those classes, and the samplers of diffusers and k-diffusion, answer after loading the saved files.
README.md beside this file describes each output.

Made with Python 3.11, torch 2.15.0 (CPU), diffusers 0.42.1, transformers 5.24.0, safetensors 0.8.0,
k-diffusion 0.1.1.post1, clip-anytorch 2.6.0 (for CLIP's own vocabulary; nothing of it is committed).

    pip install torch "diffusers==0.42.1" transformers safetensors accelerate scipy tqdm
    pip install --no-deps k-diffusion==0.1.1.post1 clip-anytorch==2.6.0
"""

import json
import math
import shutil
import sys
import tempfile
import types
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

import diffusers
import numpy as np
import torch
import transformers
from diffusers.schedulers import scheduling_lcm
from diffusers import (
    AutoencoderKL,
    DDIMScheduler,
    LCMScheduler,
    StableDiffusionPipeline,
    UNet2DConditionModel,
    UniPCMultistepScheduler,
)
from safetensors.torch import save_file
from transformers import CLIPTextConfig, CLIPTextModel

import ldm_names
from tiny_tokenizers import clip_merges, learn_merges, package_folder, save_tokenizer, write_json


def without_training_tools():
    """Lets two modules of k-diffusion be imported without the packages that the rest of it needs."""
    package = types.ModuleType("k_diffusion")
    package.__path__ = [str(package_folder("k_diffusion"))]
    utils = types.ModuleType("k_diffusion.utils")
    utils.append_dims = lambda x, dims: x.reshape(*x.shape, *[1] * (dims - x.ndim))
    odes = types.ModuleType("torchdiffeq")
    odes.odeint = None
    sys.modules |= {"k_diffusion": package, "k_diffusion.utils": utils, "torchdiffeq": odes,
                    "torchsde": types.ModuleType("torchsde")}


without_training_tools()
from k_diffusion import external, sampling

torch.set_grad_enabled(False)
torch.set_num_threads(1)  # the networks are too small for more; also keeps the order of sums
torch.use_deterministic_algorithms(True)
diffusers.utils.logging.set_verbosity_error()
transformers.utils.logging.set_verbosity_error()
diffusers.utils.logging.disable_progress_bar()

HERE = Path(__file__).resolve().parent
SEED = 42
STEPS = 20
CFG = 7.0
PROMPT = "a photo of a cat in a red hat"
NEGATIVE = "blurry, low quality"
LONG = " ".join(f"{a} {b}" for a in "soft warm quiet bright old small grey red".split() for b in
                "window portrait light garden chair".split())
PROMPTS = {
    "short": "a photo of a cat",
    "empty": "",
    "spaces": "  A   PHOTO\tof\na Cat ",
    "punctuation": "portrait, 85mm f/1.8; don't crop... (soft light:1.2)! she'll smile",
    "unicode": "café à la crème, 中文 🙂 ½ Ünïcödé",
    "decomposed": "cafe\u0301",
    "long": LONG,
}


# ------------------------------------------------------------------------------------------------------- weights

def randoms(seed):
    return torch.Generator("cpu").manual_seed(seed)


def quantised(values, std):
    """Rounds to whole multiples (-15 to 15) of a power of two near std/4: exact in F8_E4M3, F16 and BF16, and small in git."""
    q = 2.0 ** math.floor(math.log2(std / 3))
    return (values / q).round().clamp(-15, 15) * q


def fill(model, seed, gains=()):
    """Random weights that keep activations near 1: N(0, gain/sqrt(fan in)); norms near 1; small biases."""
    gen = randoms(seed)
    for name, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=gen)
        gain = next((g for part, g in gains if part in name), 1.0)
        if name.endswith("bias"):
            # The final norm of the text encoder is given a mean away from 0, as CLIP's has: A1111's rescaling divides by it.
            value = quantised(noise * 0.1, 0.1) + (0.25 if name == "final_layer_norm.bias" else 0.0)
        elif p.ndim == 1:
            value = 1 + quantised(noise * 0.1, 0.1)
        elif "embedding.weight" in name:
            value = quantised(noise * 0.5, 0.5)
        else:
            std = gain / math.sqrt(p[0].numel())
            value = quantised(noise * std, std)
        p.copy_(value)
    return model.eval()


def half(state):
    return {k: v.half().contiguous() for k, v in state.items()}


# -------------------------------------------------------------------------------------------------------- models

def scheduler_config(**changes):
    return {
        "_class_name": "PNDMScheduler", "_diffusers_version": diffusers.__version__, "beta_start": 0.00085,
        "beta_end": 0.012, "beta_schedule": "scaled_linear", "num_train_timesteps": 1000,
        "prediction_type": "epsilon", "set_alpha_to_one": False, "skip_prk_steps": True, "steps_offset": 1,
        "clip_sample": False, "timestep_spacing": "leading", "trained_betas": None, **changes,
    }


MODEL_INDEX = {
    "_class_name": "StableDiffusionPipeline", "_diffusers_version": diffusers.__version__,
    "feature_extractor": [None, None], "image_encoder": [None, None], "requires_safety_checker": False,
    "safety_checker": [None, None], "scheduler": ["diffusers", "PNDMScheduler"],
    "text_encoder": ["transformers", "CLIPTextModel"], "tokenizer": ["transformers", "CLIPTokenizer"],
    "unet": ["diffusers", "UNet2DConditionModel"], "vae": ["diffusers", "AutoencoderKL"],
}


def text_config(vocab_size, bos, eos, pad, **sizes):
    return CLIPTextConfig(vocab_size=vocab_size, bos_token_id=bos, eos_token_id=eos, pad_token_id=pad,
                          max_position_embeddings=77, architectures=["CLIPTextModel"], **sizes)


def save_configs(folder, text, unet, vae, scheduler):
    """The small files of a diffusers folder: model_index.json and every part's config."""
    write_json(folder / "model_index.json", MODEL_INDEX)
    (folder / "scheduler").mkdir()
    write_json(folder / "scheduler" / "scheduler_config.json", scheduler)
    for name, part in (("text_encoder", text), ("unet", unet), ("vae", vae)):
        (folder / name).mkdir()
        config = part.config.to_dict() if name == "text_encoder" else dict(part.config)
        config = {k: v for k, v in config.items() if not k.startswith("_")}
        if name != "text_encoder":
            config = {"_class_name": type(part).__name__, "_diffusers_version": diffusers.__version__, **config}
        write_json(folder / name / "config.json", config)


def make_tiny_a(folder):
    """SD1.5's layout at small size: four levels, two layers, four heads, quick-GELU, VAE factor 8, everything F16."""
    size, vocab = save_tokenizer(folder / "tokenizer", learn_merges(300), "<|startoftext|>", "<|endoftext|>",
                                 "<|endoftext|>", specials_first=False)
    text = fill(CLIPTextModel(text_config(
        size, size - 2, size - 1, size - 1, hidden_size=32, intermediate_size=64, num_hidden_layers=3,
        num_attention_heads=4, hidden_act="quick_gelu", layer_norm_eps=1e-5)), 11)
    unet = fill(UNet2DConditionModel(
        sample_size=24, block_out_channels=(8, 16, 24, 24), layers_per_block=2, norm_num_groups=4,
        attention_head_dim=4, cross_attention_dim=32), 12, UNET_GAINS)
    vae = fill(AutoencoderKL(
        block_out_channels=(8, 16, 24, 24), layers_per_block=2, norm_num_groups=4, sample_size=96,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4), 13, VAE_GAINS)
    save_configs(folder, text, unet, vae, scheduler_config())
    state = {f"text_model.{k}": v for k, v in half(text.state_dict()).items()}
    # As older files carry it: a buffer that is no weight, in the wrong type.
    state["text_model.embeddings.position_ids"] = torch.arange(77)[None].half()
    save_file(state, folder / "text_encoder" / "model.safetensors", {"format": "pt"})
    save_file(half(unet.state_dict()), folder / "unet" / "diffusion_pytorch_model.safetensors", {"format": "pt"})
    save_file(half(vae.state_dict()), folder / "vae" / "diffusion_pytorch_model.safetensors", {"format": "pt"})


def make_tiny_b(folder):
    """Another shape: three levels, one layer, heads by level, linear projections, GELU, VAE factor 4, own specials.

    The UNet is BF16 in two shards, the VAE is named `.fp16`, the text encoder is F32 without `text_model.`.
    """
    size, vocab = save_tokenizer(folder / "tokenizer", learn_merges(120), "<|begin|>", "<|end|>", "<|pad|>",
                                 specials_first=True)
    text = fill(CLIPTextModel(text_config(
        size, vocab["<|begin|>"], vocab["<|end|>"], vocab["<|pad|>"], hidden_size=24, intermediate_size=80,
        num_hidden_layers=4, num_attention_heads=3, hidden_act="gelu", layer_norm_eps=1e-4)), 21)
    unet = fill(UNet2DConditionModel(
        sample_size=24, block_out_channels=(12, 24, 36), layers_per_block=1, norm_num_groups=6, norm_eps=1e-4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=[2, 4, 6], transformer_layers_per_block=[1, 2, 1], cross_attention_dim=24, act_fn="gelu",
        use_linear_projection=True, flip_sin_to_cos=False, freq_shift=1), 22, UNET_GAINS)
    vae = fill(AutoencoderKL(
        block_out_channels=(6, 12, 18), layers_per_block=1, norm_num_groups=3, sample_size=96, scaling_factor=0.25,
        down_block_types=("DownEncoderBlock2D",) * 3, up_block_types=("UpDecoderBlock2D",) * 3), 23, VAE_GAINS)
    save_configs(folder, text, unet, vae, scheduler_config(
        beta_start=0.001, beta_end=0.01, beta_schedule="linear", steps_offset=0, set_alpha_to_one=True))
    state = {k: v.contiguous() for k, v in text.state_dict().items()}
    save_file(state, folder / "text_encoder" / "model.safetensors", {"format": "pt"})
    save_file(half(vae.state_dict()), folder / "vae" / "diffusion_pytorch_model.fp16.safetensors", {"format": "pt"})
    state = {k: v.bfloat16().contiguous() for k, v in unet.state_dict().items()}
    names, index, total = sorted(state), {}, 0
    for shard in range(2):
        file = f"diffusion_pytorch_model-{shard + 1:05}-of-00002.safetensors"
        part = {k: state[k] for k in names[shard * len(names) // 2 : (shard + 1) * len(names) // 2]}
        save_file(part, folder / "unet" / file, {"format": "pt"})
        index |= {k: file for k in part}
        total += sum(v.numel() * 2 for v in part.values())
    write_json(folder / "unet" / "diffusion_pytorch_model.safetensors.index.json",
               {"metadata": {"total_size": total}, "weight_map": index})


def make_tiny_single(file, configs):
    """An SD1.5 single file (LDM names, F16) within what a single file fixes: 8 heads, 32 groups, CLIP's 49,408 tokens.

    The token embedding repeats 251 rows, so that it is next to nothing in the repository.
    """
    text = CLIPTextModel(text_config(
        49408, 49406, 49407, 49407, hidden_size=16, intermediate_size=64, num_hidden_layers=2, num_attention_heads=1,
        hidden_act="quick_gelu", layer_norm_eps=1e-5))
    fill(text, 31)
    rows = text.embeddings.token_embedding.weight
    rows.copy_(rows[:251].repeat(197, 1)[:49408])
    unet = fill(UNet2DConditionModel(
        sample_size=24, block_out_channels=(32,) * 4, layers_per_block=2, norm_num_groups=32, attention_head_dim=8,
        cross_attention_dim=16), 32, UNET_GAINS)
    vae = fill(AutoencoderKL(
        block_out_channels=(64, 32, 32, 32), layers_per_block=1, norm_num_groups=32, sample_size=96,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4), 33, VAE_GAINS)
    save_configs(configs, text, unet, vae, scheduler_config())

    ldm_vae = ldm_names.vae_to_ldm(vae.state_dict(), 4)
    state = half(ldm_names.text_to_ldm(text.state_dict()))
    state["cond_stage_model.transformer.text_model.embeddings.position_ids"] = torch.arange(77)[None]
    ldm_unet = ldm_names.unet_to_ldm(unet.state_dict(), 4, 2)
    state |= half({f"model.diffusion_model.{k}": v for k, v in ldm_unet.items()})
    state |= half({f"first_stage_model.{k}": v for k, v in ldm_vae.items()})
    # What training leaves behind in such files.
    alphas = alphas_cumprod(scheduler_config()).float()
    state |= {"alphas_cumprod": alphas, "sqrt_alphas_cumprod": alphas.sqrt(), "model_ema.decay": torch.tensor(0.9999),
              "model_ema.num_updates": torch.tensor(470000, dtype=torch.int32)}
    save_file(state, file, {"format": "pt"})

    # The same VAE as a file of its own, in the three namings met.
    save_file(half(ldm_names.vae_to_old_diffusers(vae.state_dict())), HERE / "vae-bare.safetensors", {"format": "pt"})
    strays = {"loss.logvar": torch.tensor(0.0), "model_ema.decay": torch.tensor(0.9999)}
    bare = {k: v.bfloat16().contiguous() for k, v in ldm_vae.items()}
    save_file(bare | strays, HERE / "vae-ldm.safetensors", {"format": "pt"})
    mixed = {}
    for name, value in ldm_vae.items():
        dtype = torch.float8_e4m3fn if value.ndim == 4 else torch.float32 if name.endswith("bias") else torch.float16
        stored = value.to(dtype)
        assert torch.equal(stored.float(), value), name
        mixed[f"first_stage_model.{name}"] = stored.contiguous()
    save_file(mixed | strays, HERE / "vae-prefixed.safetensors", {"format": "pt"})
    return text, unet, vae


# Gains that keep the tiny networks calm enough for 20 steps at CFG 7: `sensitivity` in the JSON is what remains.
UNET_GAINS = (("conv_out", 0.8), ("attn2.to_q", 1.5), ("attn2.to_k", 1.5), ("conv2", 0.7))
VAE_GAINS = (("conv_out", 0.7), ("conv2", 0.7))


# ------------------------------------------------------------------------------------------------------ sampling

def alphas_cumprod(config):
    """The table in f64, by diffusers' two beta schedules."""
    n, start, end = config["num_train_timesteps"], config["beta_start"], config["beta_end"]
    if config["beta_schedule"] == "linear":
        betas = torch.linspace(start, end, n, dtype=torch.float64)
    else:
        betas = torch.linspace(start**0.5, end**0.5, n, dtype=torch.float64) ** 2
    return (1 - betas).cumprod(0)


def normal_sigmas(table):
    """k-diffusion's `get_sigmas(n)` in f64: n timesteps evenly from 999 to 0, log-interpolated, then 0."""
    t = np.linspace(len(table) - 1, 0, STEPS)
    sigmas = np.exp(np.interp(t, np.arange(len(table)), table.log().numpy()))
    return torch.tensor([*sigmas, 0.0], dtype=torch.float64)


def karras_sigmas(table):
    """k-diffusion's `get_sigmas_karras` (rho 7) in f64 between the ends of the table, then 0."""
    low, high = table[0].item() ** (1 / 7), table[-1].item() ** (1 / 7)
    sigmas = torch.tensor([*((high + (low - high) * i / (STEPS - 1)) ** 7 for i in range(STEPS)), 0.0],
                          dtype=torch.float64)
    assert torch.allclose(sigmas, sampling.get_sigmas_karras(STEPS, table[0].item(), table[-1].item()).double(),
                          rtol=1e-5)
    return sigmas


class Guided:
    """The UNet with classifier-free guidance: out = uncond + cfg * (cond - uncond). Counts its calls."""

    def __init__(self, unet, cond, uncond):
        self.unet, self.context = unet, torch.cat([uncond, cond])
        self.calls = 0

    def __call__(self, x, t):
        self.calls += 1
        t = torch.as_tensor(t).float().reshape(-1)[:1].expand(2)
        out = self.unet(x.float().repeat(2, 1, 1, 1), t, self.context).sample.double()
        return out[:1] + CFG * (out[1:] - out[:1])


def k_run(function, guided, table_acp, sigmas, noise, gen, prediction="epsilon", **kwargs):
    """A sampler of k-diffusion with our sigmas; noise is drawn in order from `gen`, one full latent a draw."""
    wrapper = external.DiscreteEpsDDPMDenoiser if prediction == "epsilon" else external.DiscreteVDDPMDenoiser
    model = wrapper(guided, table_acp, quantize=False)
    draws = []

    def noise_sampler(*_):
        draws.append(torch.randn(noise.shape, generator=gen))
        return draws[-1].double()

    if function in (sampling.sample_euler_ancestral, sampling.sample_dpmpp_2m_sde, sampling.sample_dpmpp_sde):
        kwargs["noise_sampler"] = noise_sampler
    out = function(model, noise.double() * sigmas[0], sigmas, disable=True, **kwargs)
    timesteps = model.sigma_to_t(sigmas[:-1]).tolist()
    return out, {"timesteps": timesteps, "sigmas": sigmas.tolist(), "initial": "noise * sigmas[0]",
                 "initial_scale": sigmas[0].item(), "space": "x0 + sigma * noise", "noise_draws": len(draws)}


# diffusers draws in the latent's type, and torch's f64 draws are other numbers than its f32 ones: every run has the latter.
scheduling_lcm.randn_tensor = lambda shape, generator, device, dtype: torch.randn(shape, generator=generator).to(dtype)


def diffusers_run(scheduler, guided, noise, gen, handed=None):
    """A scheduler of diffusers; `handed` replaces its timesteps and sigmas by (floats, sigmas)."""
    scheduler.set_timesteps(STEPS)
    if handed:
        scheduler.timesteps = torch.tensor(handed[0], dtype=torch.float64)
        scheduler.sigmas = handed[1].clone()
    x = noise.double() * scheduler.init_noise_sigma
    state = gen.get_state()
    for t in scheduler.timesteps:
        kwargs = {"generator": gen} if isinstance(scheduler, LCMScheduler) else {}
        x = scheduler.step(guided(scheduler.scale_model_input(x, t), t), t, x, **kwargs).prev_sample
    drawn = STEPS - 1 if isinstance(scheduler, LCMScheduler) else 0
    assert drawn or torch.equal(state, gen.get_state())
    timesteps = scheduler.timesteps.tolist()
    if hasattr(scheduler, "sigmas"):
        sigmas = scheduler.sigmas.tolist()
    else:
        sigmas = [*((1 - a) / a for a in scheduler.alphas_cumprod[scheduler.timesteps].double())]
        sigmas = [float(s) ** 0.5 for s in sigmas]
    return x, {"timesteps": timesteps, "sigmas": sigmas, "initial": "noise", "initial_scale": 1.0,
               "space": "sqrt(acp) * x0 + sqrt(1 - acp) * noise", "noise_draws": drawn}


def runs_of(unet, config, cond, uncond, noise_shape, prediction="epsilon", only=None):
    """Every sampler once; returns {name: (final latent, facts)}."""
    acp = alphas_cumprod(config)
    table = ((1 - acp) / acp).sqrt()
    schedules = {"normal": normal_sigmas(table), "karras": karras_sigmas(table)}
    to_t = external.DiscreteEpsDDPMDenoiser(None, acp, quantize=False).sigma_to_t
    common = {k: config[k] for k in ("beta_start", "beta_end", "beta_schedule", "num_train_timesteps")}
    common["prediction_type"] = prediction
    jobs = {}
    for name, function in (("euler", sampling.sample_euler), ("euler-a", sampling.sample_euler_ancestral),
                           ("dpmpp-2m", sampling.sample_dpmpp_2m), ("dpmpp-2m-sde", sampling.sample_dpmpp_2m_sde),
                           ("dpmpp-sde", sampling.sample_dpmpp_sde), ("heun", sampling.sample_heun)):
        for schedule, sigmas in schedules.items():
            jobs[f"{name}.{schedule}"] = (
                f"k_diffusion.sampling.{function.__name__}",
                lambda g, n, r, f=function, s=sigmas: k_run(f, g, acp, s, n, r, prediction))

    def unipc(handed):
        scheduler = UniPCMultistepScheduler(**common, solver_order=2, solver_type="bh2", predict_x0=True,
                                            lower_order_final=True, timestep_spacing="linspace",
                                            final_sigmas_type="zero")
        return lambda g, n, r: diffusers_run(scheduler, g, n, r, handed)

    for schedule, sigmas in schedules.items():
        jobs[f"unipc.{schedule}"] = ("diffusers.UniPCMultistepScheduler, bh2, order 2, our sigmas and unrounded "
                                     "timesteps handed in", unipc((to_t(sigmas[:-1]).tolist(), sigmas)))
    jobs["unipc.diffusers-linspace"] = ("diffusers.UniPCMultistepScheduler, bh2, order 2, its own rounded linspace "
                                        "timesteps", unipc(None))
    jobs["ddim.leading"] = ("diffusers.DDIMScheduler, eta 0, leading, steps_offset and set_alpha_to_one as the "
                            "model's scheduler_config.json",
                            lambda g, n, r: diffusers_run(DDIMScheduler(
                                **common, clip_sample=False, timestep_spacing="leading",
                                set_alpha_to_one=config["set_alpha_to_one"],
                                steps_offset=config["steps_offset"]), g, n, r))
    jobs["lcm.lcm-origin"] = ("diffusers.LCMScheduler, original_inference_steps 50, clip_sample False; noise after "
                              "every step but the last",
                              lambda g, n, r: diffusers_run(LCMScheduler(**common), g, n, r))

    results = {}
    for name, (reference, job) in jobs.items():
        if only and name not in only:
            continue
        gen = randoms(SEED)
        noise = torch.randn(noise_shape, generator=gen)
        guided = Guided(unet, cond, uncond)
        latent, facts = job(guided, noise, gen)
        assert latent.isfinite().all(), name
        facts = {"reference": reference, "prediction": prediction, "steps": STEPS, "cfg": CFG, "seed": SEED,
                 "unet_calls": guided.calls, **facts}
        report = f"  {name:26} std {latent.std():8.3f}"
        if name in ("euler.karras", "dpmpp-2m.karras", "unipc.karras", "ddim.leading", "dpmpp-2m-sde.karras"):
            # How much the run magnifies an error: relative change of the result over that of the start, for 1e-5.
            gen = randoms(SEED)
            torch.randn(noise_shape, generator=gen)
            shaken = noise + 1e-5 * noise.std() * torch.randn(noise.shape, generator=randoms(7))
            other, _ = job(Guided(unet, cond, uncond), shaken, gen)
            facts["sensitivity"] = round(((other - latent).norm() / latent.norm() / 1e-5).item(), 3)
            report += f"  sensitivity {facts['sensitivity']:7.3f}"
            assert facts["sensitivity"] < 30, name
        if name == "euler.karras":
            # The prompt must matter, or the runs would prove nothing about guidance and context.
            other, _ = job(Guided(unet, uncond, uncond), noise, randoms(SEED))
            effect = ((other - latent).norm() / latent.norm()).item()
            report += f"  prompt {effect:6.3f}"
            assert effect > 0.05
        print(report, flush=True)
        results[name] = (latent.float().contiguous(), facts)
    return results


# ------------------------------------------------------------------------------------------------------- vectors

def chunked(tokenizer, ids):
    """Chunks of 75 between start and end, padded with the tokenizer's pad: [chunks, 77]."""
    pieces = [ids[i : i + 75] for i in range(0, max(len(ids), 1), 75)]
    rows = [[tokenizer.bos_token_id, *p, tokenizer.eos_token_id] for p in pieces]
    return torch.tensor([r + [tokenizer.pad_token_id] * (77 - len(r)) for r in rows])


def plain_ids(tokenizer, text):
    return tokenizer(text, add_special_tokens=False).input_ids


def text_vectors(pipe, tensors, facts):
    tokenizer, encoder = pipe.tokenizer, pipe.text_encoder
    facts["specials"] = {"bos": tokenizer.bos_token_id, "eos": tokenizer.eos_token_id, "pad": tokenizer.pad_token_id}
    facts["prompts"], rows = [], []
    for name, text in PROMPTS.items():
        ids = plain_ids(tokenizer, text)
        chunks = chunked(tokenizer, ids)
        if len(ids) <= 75:  # our padding is the tokenizer's own
            assert tokenizer(text, padding="max_length", max_length=77).input_ids == chunks[0].tolist(), name
        facts["prompts"].append({"name": name, "text": text, "ids": ids, "first_row": len(rows), "rows": len(chunks)})
        rows += list(chunks)
    assert facts["prompts"][-1]["rows"] > 1
    ids = torch.stack(rows)
    out = encoder(ids, output_hidden_states=True)
    assert torch.allclose(encoder.final_layer_norm(out.hidden_states[-1]), out.last_hidden_state, atol=1e-6)
    tensors["text.ids"] = ids.int()
    tensors["text.clip_skip_1"] = out.last_hidden_state
    tensors["text.clip_skip_2"] = encoder.final_layer_norm(out.hidden_states[-2])

    # A1111's emphasis: z *= weight per token, then the chunk is scaled so that its mean is what it was.
    parts = [("a", 1.0), ("red", 1.3), ("hat ,", 1.0), ("old", 1 / 1.1), ("garden", 1.0), ("light", 1.21)]
    token_ids, weights = [], []
    for text, weight in parts:
        ids = plain_ids(tokenizer, text)
        token_ids += ids
        weights += [weight] * len(ids)
    row = chunked(tokenizer, token_ids)
    weight_row = torch.tensor([[1.0, *weights, *[1.0] * (76 - len(weights))]], dtype=torch.float32)
    z = encoder(row).last_hidden_state.double()
    weighted = z * weight_row[..., None]
    factor = (z.mean() / weighted.mean()).item()
    assert 0.5 < factor < 2, factor
    tensors["emphasis.ids"] = row.int()
    tensors["emphasis.weights"] = weight_row
    tensors["emphasis.out"] = (weighted * factor).float()
    facts["emphasis"] = {"prompt": "a (red:1.3) hat , [old] garden ((light))", "mean_factor": factor, "clip_skip": 1}


def unet_vectors(pipe, tensors, facts):
    width, gen, facts["unet"] = pipe.unet.config.cross_attention_dim, randoms(101), []
    # Sizes that do not halve evenly, so that skips and upsampled maps differ; a float time step; one and two chunks.
    for i, (batch, h, w, t, tokens) in enumerate([(2, 20, 18, 519.3, 77), (1, 16, 21, 951, 154), (1, 17, 16, 0, 77)]):
        x = torch.randn(batch, 4, h, w, generator=gen)
        context = torch.randn(batch, tokens, width, generator=gen)
        out = pipe.unet(x, torch.tensor(float(t)), context).sample
        print(f"  unet {i} std {out.std():.3f}")
        tensors |= {f"unet.{i}.latent": x, f"unet.{i}.context": context, f"unet.{i}.out": out}
        facts["unet"].append({"timestep": t, "shape": list(x.shape), "tokens": tokens})
    return tensors


def vae_vectors(vae, tensors, facts):
    gen, scale = randoms(102), vae.config.scaling_factor
    factor = 2 ** (len(vae.config.block_out_channels) - 1)
    facts["vae"] = {"scaling_factor": scale, "factor": factor}
    for i, (h, w) in enumerate([(6, 4), (5, 7)]):
        z = torch.randn(1, 4, h, w, generator=gen)
        image = vae.decode(z / scale).sample
        print(f"  vae {i} std {image.std():.3f}")
        tensors |= {f"vae.{i}.latent": z, f"vae.{i}.image": image}
    image = torch.rand(1, 3, 4 * factor, 5 * factor, generator=gen) * 2 - 1
    tensors |= {"vae.encode.image": image, "vae.encode.latent": vae.encode(image).latent_dist.mean * scale}


def reference(name, pipe, config, latent_size):
    """Writes reference-<name>.safetensors and .json for a loaded pipeline."""
    print(name)
    tensors, facts = {}, {"versions": VERSIONS, "latent": list(latent_size), "tensors": {}}
    text_vectors(pipe, tensors, facts)
    tensors |= unet_vectors(pipe, {}, facts)
    vae_vectors(pipe.vae, tensors, facts)
    shape = (1, 4, *latent_size)
    cond, uncond = (pipe.text_encoder(chunked(pipe.tokenizer, plain_ids(pipe.tokenizer, text))).last_hidden_state
                    for text in (PROMPT, NEGATIVE))
    tensors |= {"run.cond": cond, "run.uncond": uncond, "run.noise": torch.randn(shape, generator=randoms(SEED))}
    facts |= {"prompt": PROMPT, "negative": NEGATIVE, "runs": {}}
    results = runs_of(pipe.unet, config, cond, uncond, shape)
    if name == "tiny-a":
        v = runs_of(pipe.unet, config, cond, uncond, shape, "v_prediction",
                    ("euler.normal", "dpmpp-2m.karras", "ddim.leading", "unipc.karras"))
        results |= {f"v.{k}": r for k, r in v.items()}
    for run, (latent, about) in results.items():
        tensors[f"run.{run}"] = latent
        facts["runs"][run] = about
    if name == "tiny-a":  # the start, then each draw in order; other models draw likewise at their own size
        gen = randoms(SEED)
        tensors["run.draws"] = torch.cat([torch.randn(shape, generator=gen) for _ in range(1 + 2 * (STEPS - 1))])
    facts["tensors"] = {k: list(v.shape) for k, v in sorted(tensors.items())}
    save_file({k: v.contiguous() for k, v in tensors.items()}, HERE / f"reference-{name}.safetensors")
    write_json(HERE / f"reference-{name}.json", facts, indent=None)


VERSIONS = {"torch": torch.__version__, "diffusers": diffusers.__version__, "transformers": transformers.__version__,
            "k-diffusion": "0.1.1.post1"}


def same(a, b, what):
    error = ((a - b).norm() / b.norm()).item()
    assert error < 1e-6, (what, error)


def check_single(pipe, originals):
    """What `from_single_file` loaded equals the models the file was written from."""
    for loaded, original in zip((pipe.text_encoder, pipe.unet, pipe.vae), originals):
        wanted = original.state_dict()
        got = {k.removeprefix("text_model."): v for k, v in loaded.state_dict().items()}
        assert {k: v.shape for k, v in got.items()} == {k: v.shape for k, v in wanted.items()}
        for k, v in wanted.items():
            assert torch.equal(got[k], v), k
    text, unet, vae = originals
    gen = randoms(5)
    ids = torch.randint(0, 49408, (1, 77), generator=gen)
    same(pipe.text_encoder(ids).last_hidden_state, text(ids).last_hidden_state, "text")
    x, c = torch.randn(1, 4, 16, 16, generator=gen), torch.randn(1, 77, 16, generator=gen)
    same(pipe.unet(x, 500.0, c).sample, unet(x, 500.0, c).sample, "unet")
    same(pipe.vae.decode(x).sample, vae.decode(x).sample, "vae")
    return x, vae.decode(x).sample


def main():
    torch.manual_seed(0)
    for name in ("tiny-a", "tiny-b", "tiny-single-config"):
        shutil.rmtree(HERE / name, ignore_errors=True)
        (HERE / name).mkdir()

    make_tiny_a(HERE / "tiny-a")
    pipe = StableDiffusionPipeline.from_pretrained(HERE / "tiny-a", torch_dtype=torch.float32)
    reference("tiny-a", pipe, scheduler_of("tiny-a"), (8, 12))

    make_tiny_b(HERE / "tiny-b")
    vae = AutoencoderKL.from_pretrained(HERE / "tiny-b", subfolder="vae", variant="fp16", torch_dtype=torch.float32)
    pipe = StableDiffusionPipeline.from_pretrained(HERE / "tiny-b", vae=vae, torch_dtype=torch.float32)
    reference("tiny-b", pipe, scheduler_of("tiny-b"), (16, 24))

    single, configs = HERE / "tiny-single.safetensors", HERE / "tiny-single-config"
    originals = make_tiny_single(single, configs)
    with tempfile.TemporaryDirectory() as temp:
        # diffusers wants the tokenizer beside the configs; ours is built in, so the committed folder has none.
        folder = Path(temp) / "config"
        shutil.copytree(configs, folder)
        save_tokenizer(folder / "tokenizer", clip_merges(), "<|startoftext|>", "<|endoftext|>", "<|endoftext|>", False)
        pipe = StableDiffusionPipeline.from_single_file(
            str(single), config=str(folder), safety_checker=None, local_files_only=True, torch_dtype=torch.float32)
    x, image = check_single(pipe, originals)
    for file in ("vae-ldm", "vae-prefixed"):
        vae = AutoencoderKL.from_single_file(str(HERE / f"{file}.safetensors"), config=str(configs), subfolder="vae",
                                             local_files_only=True, torch_dtype=torch.float32)
        same(vae.decode(x).sample, image, file)
    with tempfile.TemporaryDirectory() as temp:
        shutil.copy(configs / "vae" / "config.json", temp)
        shutil.copy(HERE / "vae-bare.safetensors", Path(temp) / "diffusion_pytorch_model.safetensors")
        vae = AutoencoderKL.from_pretrained(temp, torch_dtype=torch.float32)
        same(vae.decode(x).sample, image, "vae-bare")
    assert plain_ids(pipe.tokenizer, "a photo of a cat") == [320, 1125, 539, 320, 2368]
    reference("tiny-single", pipe, scheduler_of("tiny-single-config"), (16, 24))


def scheduler_of(folder):
    return json.loads((HERE / folder / "scheduler" / "scheduler_config.json").read_text())


if __name__ == "__main__":
    main()
