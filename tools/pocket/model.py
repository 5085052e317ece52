"""The three networks at their small width, in exactly Stable Diffusion 1.5's architecture, and its noise schedule.

VAE and UNet are diffusers' own classes. The text encoder is written out here, with the names that CLIP's checkpoints have
(`text_model.…`): it compiles as one graph and does not depend on a version of transformers. `export.py` holds it against
transformers' `CLIPTextModel`.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from diffusers import AutoencoderKL, UNet2DConditionModel
from torch import nn

from tokenizer import LENGTH

VAE = {
    "in_channels": 3,
    "out_channels": 3,
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
    "block_out_channels": (32, 48, 64, 96),
    "layers_per_block": 1,
    "norm_num_groups": 8,
    "latent_channels": 4,
    "sample_size": 256,
    # Training ends by whitening the latents, so that they need no further scale.
    "scaling_factor": 1.0,
}

UNET = {
    "sample_size": 32,
    "in_channels": 4,
    "out_channels": 4,
    "down_block_types": ("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
    "block_out_channels": (64, 96, 128, 96),
    "layers_per_block": 1,
    # A number of heads, in spite of its name: as SD1.5 has it.
    "attention_head_dim": 4,
    "cross_attention_dim": 128,
    "norm_num_groups": 16,
}

TEXT = {
    "hidden_size": 128,
    "intermediate_size": 512,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "max_position_embeddings": LENGTH,
    "hidden_act": "quick_gelu",
    "layer_norm_eps": 1e-5,
}

# stable-diffusion-v1-5's scheduler_config.json.
SCHEDULER = {
    "_class_name": "PNDMScheduler",
    "beta_start": 0.00085,
    "beta_end": 0.012,
    "beta_schedule": "scaled_linear",
    "num_train_timesteps": 1000,
    "prediction_type": "epsilon",
    "set_alpha_to_one": False,
    "skip_prk_steps": True,
    "steps_offset": 1,
    "clip_sample": False,
    "trained_betas": None,
}

PIXELS_PER_CELL = 8


def alphas_cumprod() -> torch.Tensor:
    """ᾱ of the 1000 timesteps, f64: betas linear in the square root from 0.00085 to 0.012."""
    betas = torch.linspace(SCHEDULER["beta_start"] ** 0.5, SCHEDULER["beta_end"] ** 0.5, 1000, dtype=torch.float64) ** 2
    return torch.cumprod(1.0 - betas, 0)


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.k_proj = nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)
        self.q_proj = nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, length, width = x.shape
        q, k, v = (p(x).view(n, length, self.heads, -1).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(mixed.transpose(1, 2).reshape(n, length, width))


class _Mlp(nn.Module):
    def __init__(self, width: int, inner: int):
        super().__init__()
        self.fc1 = nn.Linear(width, inner)
        self.fc2 = nn.Linear(inner, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc1(x)
        return self.fc2(x * torch.sigmoid(1.702 * x))


class _Layer(nn.Module):
    def __init__(self, width: int, inner: int, heads: int, eps: float):
        super().__init__()
        self.self_attn = _Attention(width, heads)
        self.layer_norm1 = nn.LayerNorm(width, eps)
        self.mlp = _Mlp(width, inner)
        self.layer_norm2 = nn.LayerNorm(width, eps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.self_attn(self.layer_norm1(x))
        return x + self.mlp(self.layer_norm2(x))


class _Embeddings(nn.Module):
    def __init__(self, vocabulary: int, width: int):
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.position_embedding = nn.Embedding(LENGTH, width)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.token_embedding(ids) + self.position_embedding.weight[: ids.shape[1]]


class _Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = TEXT["hidden_size"], TEXT["intermediate_size"], TEXT["num_attention_heads"], TEXT["layer_norm_eps"]
        self.layers = nn.ModuleList(_Layer(*sizes) for _ in range(TEXT["num_hidden_layers"]))


class _TextModel(nn.Module):
    def __init__(self, vocabulary: int):
        super().__init__()
        self.embeddings = _Embeddings(vocabulary, TEXT["hidden_size"])
        self.encoder = _Encoder()
        self.final_layer_norm = nn.LayerNorm(TEXT["hidden_size"], TEXT["layer_norm_eps"])


class TextEncoder(nn.Module):
    """CLIP's text encoder: causal, pre-norm, quick-GELU. Ids `[n, 77]` to states `[n, 77, 128]`."""

    def __init__(self, vocabulary: int):
        super().__init__()
        self.text_model = _TextModel(vocabulary)
        self._start()

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.text_model.embeddings(ids)
        for layer in self.text_model.encoder.layers:
            x = layer(x)
        return self.text_model.final_layer_norm(x)

    def _start(self) -> None:
        """Starting weights as CLIP chose them (Radford et al. 2021): narrower where layers add up."""
        width, layers = TEXT["hidden_size"], TEXT["num_hidden_layers"]
        inner = width**-0.5 * (2 * layers) ** -0.5
        nn.init.normal_(self.text_model.embeddings.token_embedding.weight, std=0.02)
        nn.init.normal_(self.text_model.embeddings.position_embedding.weight, std=0.01)
        for layer in self.text_model.encoder.layers:
            for linear, std in (
                (layer.self_attn.q_proj, width**-0.5),
                (layer.self_attn.k_proj, width**-0.5),
                (layer.self_attn.v_proj, width**-0.5),
                (layer.self_attn.out_proj, inner),
                (layer.mlp.fc1, (2 * width) ** -0.5),
                (layer.mlp.fc2, inner),
            ):
                nn.init.normal_(linear.weight, std=std)
                nn.init.zeros_(linear.bias)


def build_vae(seed: int) -> AutoencoderKL:
    """A VAE with starting weights from a seed."""
    torch.manual_seed(seed)
    return AutoencoderKL(**VAE)


def build_unet(seed: int) -> UNet2DConditionModel:
    """A UNet with starting weights from a seed; it starts by predicting no noise, which steadies the first steps."""
    torch.manual_seed(seed)
    unet = UNet2DConditionModel(**UNET)
    nn.init.zeros_(unet.conv_out.weight)
    nn.init.zeros_(unet.conv_out.bias)
    return unet


def build_text_encoder(seed: int, vocabulary: int) -> TextEncoder:
    """A text encoder with starting weights from a seed."""
    torch.manual_seed(seed)
    return TextEncoder(vocabulary)


class Generator(nn.Module):
    """Text encoder and UNet as one module: what is trained together and saved together."""

    def __init__(self, seed: int, vocabulary: int):
        super().__init__()
        self.text_encoder = build_text_encoder(seed, vocabulary)
        self.unet = build_unet(seed + 1)

    def forward(self, latents: torch.Tensor, timesteps: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """The noise predicted in `latents` `[n, 4, h, w]`."""
        states = self.text_encoder(ids)
        return self.unet(latents, timesteps, encoder_hidden_states=states, return_dict=False)[0]


def count(module: nn.Module) -> int:
    """Number of parameters."""
    return sum(p.numel() for p in module.parameters())
