"""Names of the original Stable Diffusion files ("LDM" names) for tensors of the diffusers classes.

Used by make_reference.py only. diffusers reads these files but has no writer for them, so the maps stand here; the
script proves them by loading the written file through `StableDiffusionPipeline.from_single_file`.
"""

RESNET = {
    "norm1": "in_layers.0",
    "conv1": "in_layers.2",
    "time_emb_proj": "emb_layers.1",
    "norm2": "out_layers.0",
    "conv2": "out_layers.3",
    "conv_shortcut": "skip_connection",
}


def _moved(source, target, state, prefix, new_prefix, renames=None):
    """Moves every tensor under `prefix` to `new_prefix`, renaming the first segment after it by `renames`."""
    for name in [n for n in source if n.startswith(prefix + ".")]:
        segment, rest = name[len(prefix) + 1 :].split(".", 1)
        if renames:
            segment = renames.get(segment, segment)
        target[f"{new_prefix}.{segment}.{rest}"] = state[name]
        source.remove(name)


def unet_to_ldm(state, levels, layers_per_block):
    """UNet2DConditionModel names to `model.diffusion_model.*` names (without that prefix)."""
    left, out = list(state), {}
    has = lambda prefix: any(n.startswith(prefix + ".") for n in left)

    for old, new in {
        "conv_in": "input_blocks.0.0",
        "time_embedding.linear_1": "time_embed.0",
        "time_embedding.linear_2": "time_embed.2",
        "conv_norm_out": "out.0",
        "conv_out": "out.2",
    }.items():
        for leaf in ("weight", "bias"):
            out[f"{new}.{leaf}"] = state[f"{old}.{leaf}"]
            left.remove(f"{old}.{leaf}")

    index = 1
    for level in range(levels):
        for layer in range(layers_per_block):
            block = f"down_blocks.{level}"
            _moved(left, out, state, f"{block}.resnets.{layer}", f"input_blocks.{index}.0", RESNET)
            _moved(left, out, state, f"{block}.attentions.{layer}", f"input_blocks.{index}.1")
            index += 1
        if has(f"down_blocks.{level}.downsamplers"):
            _moved(left, out, state, f"down_blocks.{level}.downsamplers.0", f"input_blocks.{index}.0", {"conv": "op"})
            index += 1

    _moved(left, out, state, "mid_block.resnets.0", "middle_block.0", RESNET)
    _moved(left, out, state, "mid_block.attentions.0", "middle_block.1")
    _moved(left, out, state, "mid_block.resnets.1", "middle_block.2", RESNET)

    index = 0
    for level in range(levels):
        block = f"up_blocks.{level}"
        for layer in range(layers_per_block + 1):
            slot = 2 if has(f"{block}.attentions.{layer}") else 1
            _moved(left, out, state, f"{block}.resnets.{layer}", f"output_blocks.{index}.0", RESNET)
            _moved(left, out, state, f"{block}.attentions.{layer}", f"output_blocks.{index}.1")
            if layer == layers_per_block:
                # The upsampler is the last module of the level's last block: after the attention where there is one.
                _moved(left, out, state, f"{block}.upsamplers.0", f"output_blocks.{index}.{slot}")
            index += 1

    assert not left, left
    return out


def vae_to_ldm(state, levels):
    """AutoencoderKL names to `first_stage_model.*` names (without that prefix)."""
    out = {}
    for name, tensor in state.items():
        new = name.replace("conv_shortcut", "nin_shortcut").replace("conv_norm_out", "norm_out")
        new = new.replace("mid_block.resnets.0", "mid.block_1").replace("mid_block.resnets.1", "mid.block_2")
        new = new.replace("mid_block.attentions.0", "mid.attn_1").replace("group_norm", "norm")
        new = new.replace("downsamplers.0", "downsample").replace("upsamplers.0", "upsample")
        for i in range(levels):
            new = new.replace(f"down_blocks.{i}.", f"down.{i}.")
            new = new.replace(f"up_blocks.{i}.", f"up.{levels - 1 - i}.")
        new = new.replace(".resnets.", ".block.")
        for old, short in (("to_q", "q"), ("to_k", "k"), ("to_v", "v"), ("to_out.0", "proj_out")):
            new = new.replace(f"attn_1.{old}", f"attn_1.{short}")
        if ".attn_1." in new and new.endswith(".weight") and ".norm." not in new:
            tensor = tensor[:, :, None, None]  # the original attention is made of 1x1 convolutions
        out[new] = tensor
    return out


def vae_to_old_diffusers(state):
    """The attention names that diffusers wrote before 0.17: query, key, value, proj_attn, all of rank 2."""
    out = {}
    for name, tensor in state.items():
        for new, old in (("to_q", "query"), ("to_k", "key"), ("to_v", "value"), ("to_out.0", "proj_attn")):
            name = name.replace(f"attentions.0.{new}.", f"attentions.0.{old}.")
        out[name] = tensor
    return out


def text_to_ldm(state):
    """Text-encoder names (without `text_model.`) to the names of an original file."""
    return {f"cond_stage_model.transformer.text_model.{name}": tensor for name, tensor in state.items()}
