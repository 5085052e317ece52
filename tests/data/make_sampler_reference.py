"""Writes samplers.json: what k-diffusion, diffusers and torch make of a toy model, for tests/diffusion/samplers.rs.

    pip install torch numpy diffusers==0.42.* scipy tqdm && pip install --no-deps k-diffusion==0.1.1.post1
    python tests/data/make_sampler_reference.py

CPU only, a few seconds. The toy model is a formula that the test repeats. References run in float64; their noise is torch's
float32 CPU noise, one `randn` a draw, which our `cpu` family has to reproduce. Where a reference rounds timesteps or steps
by T/n, our timesteps are handed in; each such place says so.
"""

import importlib.util
import json
import sys
import types
from pathlib import Path

import diffusers.schedulers.scheduling_lcm as lcm_module
import numpy as np
import torch
from diffusers import DDIMScheduler, LCMScheduler, UniPCMultistepScheduler

# k-diffusion's package pulls in its training tools. Two of its modules are needed; the rest, and what they lack, is left out.
package = types.ModuleType("k_diffusion")
package.__path__ = importlib.util.find_spec("k_diffusion").submodule_search_locations
sys.modules["k_diffusion"] = package
for name in ["k_diffusion.utils", "torchdiffeq", "torchsde"]:
    sys.modules[name] = types.ModuleType(name)
sys.modules["torchdiffeq"].odeint = None
sys.modules["k_diffusion.utils"].append_dims = lambda x, dims: x[(...,) + (None,) * (dims - x.ndim)]
from k_diffusion import sampling  # noqa: E402
from k_diffusion.external import DiscreteEpsDDPMDenoiser  # noqa: E402

torch.set_default_dtype(torch.float64)
SHAPE, SEED, STEPS = (1, 4, 2, 3), 42, [1, 2, 3, 20, 50]
BETAS = dict(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear")


def toy(z, t):
    flat = z.flatten().double()
    place = torch.arange(flat.numel(), dtype=torch.float64)
    t = torch.as_tensor(t, dtype=torch.float64).flatten()[0]
    epsilon = 0.9 * flat + 0.2 * torch.sin(1.7 * flat.roll(-1)) + 0.1 * torch.cos(0.01 * t + place)
    return epsilon.reshape(z.shape)


class Noise:
    """Unit noise, draw after draw, from one torch CPU generator."""

    def __init__(self):
        self.generator = torch.Generator().manual_seed(SEED)

    def __call__(self, *_, **__):
        return torch.randn(SHAPE, generator=self.generator, dtype=torch.float32).double()


betas = torch.linspace(BETAS["beta_start"] ** 0.5, BETAS["beta_end"] ** 0.5, 1000) ** 2
denoiser = DiscreteEpsDDPMDenoiser(toy, torch.cumprod(1 - betas, 0), quantize=False)
low, high = float(denoiser.sigma_min), float(denoiser.sigma_max)


def trailing(n):
    return np.round(1000 - np.arange(n) * (1000 / n)) - 1


def sgm(n):
    return torch.linspace(999, 0, n + 1)[:-1]


def from_t(t):
    return sampling.append_zero(denoiser.t_to_sigma(torch.as_tensor(t)).double())


SIGMAS = {
    "normal": lambda n: denoiser.get_sigmas(n).double(),
    "karras": lambda n: sampling.get_sigmas_karras(n, low, high),
    "exponential": lambda n: sampling.get_sigmas_exponential(n, low, high),
    "sgm-uniform": lambda n: from_t(sgm(n)),
    "trailing": lambda n: from_t(trailing(n)),
}

K_DIFFUSION = {
    "euler": sampling.sample_euler,
    "euler-a": sampling.sample_euler_ancestral,
    "heun": sampling.sample_heun,
    "dpmpp-2m": sampling.sample_dpmpp_2m,
    "dpmpp-2m-sde": sampling.sample_dpmpp_2m_sde,
    "dpmpp-sde": sampling.sample_dpmpp_sde,
}


def k_diffusion(sampler, schedule, n):
    noise, sigmas = Noise(), SIGMAS[schedule](n)
    if (sampler, n) == ("dpmpp-2m-sde", 1):
        sampler = "euler"  # the same single step to sigma 0, at which k-diffusion's function fails
    # Fresh noise a step instead of a Brownian path.
    more = {"noise_sampler": noise} if sampler in ("euler-a", "dpmpp-2m-sde", "dpmpp-sde") else {}
    return K_DIFFUSION[sampler](denoiser, noise() * sigmas[0], sigmas, disable=True, **more)


def unipc(schedule, n):
    scheduler = UniPCMultistepScheduler(**BETAS, solver_order=2, solver_type="bh2", lower_order_final=True)
    scheduler.set_timesteps(n)
    # Our sigmas, and float timesteps where UniPCMultistepScheduler rounds them.
    scheduler.sigmas = SIGMAS[schedule](n)
    scheduler.timesteps = denoiser.sigma_to_t(scheduler.sigmas[:-1])
    scheduler.set_begin_index(0)
    x = Noise()()
    for t in scheduler.timesteps:
        x = scheduler.step(toy(x, t), t, x).prev_sample
    return x


def ddim(schedule, n):
    scheduler = DDIMScheduler(**BETAS, clip_sample=False, set_alpha_to_one=False, steps_offset=1, timestep_spacing="leading")
    if schedule == "normal":
        scheduler.set_timesteps(n)
        steps = [int(t) for t in scheduler.timesteps]
    else:
        steps = [int(t) for t in (trailing(n) if schedule == "trailing" else np.round(sgm(n).numpy()))]
    x = Noise()()
    for t, after in zip(steps, steps[1:] + [-1]):
        # DDIMScheduler goes T // n timesteps back; this makes it go to the next entry of the list.
        scheduler.num_inference_steps = 1
        scheduler.register_to_config(num_train_timesteps=t - after)
        x = scheduler.step(toy(x, t), t, x).prev_sample
    return x


def lcm(schedule, n):
    scheduler = LCMScheduler(**BETAS, original_inference_steps=50)
    if schedule == "normal":
        scheduler.set_timesteps(n)
    else:
        steps = trailing(n) if schedule == "trailing" else np.round(sgm(n).numpy())
        scheduler.set_timesteps(timesteps=[int(t) for t in steps])
    noise = Noise()
    lcm_module.randn_tensor = noise
    x = noise()
    for t in scheduler.timesteps:
        x = scheduler.step(toy(x, t), t, x).prev_sample
    return x


def rounded(values, digits=8):
    return [float(f"{v:.{digits}g}") for v in np.asarray(values).flatten()]


def runs():
    for sampler in K_DIFFUSION:
        for schedule in SIGMAS:
            for n in STEPS:
                yield sampler, schedule, n, k_diffusion(sampler, schedule, n)
    for schedule in SIGMAS:
        for n in STEPS:
            yield "unipc", schedule, n, unipc(schedule, n)
    for schedule in ["normal", "sgm-uniform", "trailing"]:
        for n in STEPS:
            if (schedule, n) != ("normal", 1):  # not offered: it starts at t = 1
                yield "ddim", schedule, n, ddim(schedule, n)
            yield "lcm", schedule, n, lcm(schedule, n)


def torch_noise():
    """One generator, call after call: sizes on both sides of torch's two ways of making normal numbers."""
    seed = 2**40 + 123
    generator = torch.Generator().manual_seed(seed)
    calls = []
    for size in [5, 16, 17, 100, 3, 3, 15, 4 * 64 * 96, 4 * 65 * 65]:
        drawn = torch.randn(size, generator=generator, dtype=torch.float32)
        every = 1 if size <= 100 else 1021
        calls.append({"size": size, "every": every, "values": rounded(drawn[::every], 9), "tail": rounded(drawn[-3:], 9)})
    return {"seed": seed, "calls": calls}


reference = {
    "seed": SEED,
    "size": int(np.prod(SHAPE)),
    "runs": [
        {"sampler": sampler, "schedule": schedule, "steps": n, "latent": rounded(x)} for sampler, schedule, n, x in runs()
    ],
    "torch_noise": torch_noise(),
}
target = Path(__file__).with_name("samplers.json")
text = json.dumps(reference, separators=(",", ":")).replace('{"sampler"', '\n{"sampler"').replace('{"size"', '\n{"size"')
target.write_text(text + "\n")
print(target, target.stat().st_size, "bytes,", len(reference["runs"]), "runs, torch", torch.__version__)
