//! Which family of models a file belongs to, told by the names and shapes of its tensors.

use super::assemble::TensorFiles;
use super::shapes;
use std::fmt;

/// What a file or folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Stable Diffusion 1.x, text to image: the one that pictures are made with.
    Sd15,
    /// SD1.x whose UNet also takes a masked image (9 input channels).
    Sd15Inpainting,
    /// SD1.x whose UNet also takes an image to change (8 input channels).
    Sd15Edit,
    Sd2,
    Sdxl,
    SdxlRefiner,
    Sd3,
    Flux,
    ControlNet,
    /// T2I-Adapter or IP-Adapter.
    Adapter,
    Lora,
    MotionModule,
    /// A textual-inversion embedding.
    Embedding,
    /// SD1's VAE by itself.
    Vae,
    /// A VAE with another latent (SD3, Flux and later).
    OtherVae,
    TextEncoder,
    /// An image upscaler (ESRGAN and its like).
    Upscaler,
    Unknown,
}

impl Family {
    /// Its usual name.
    pub fn label(self) -> &'static str {
        match self {
            Family::Sd15 => "SD1.5 checkpoint",
            Family::Sd15Inpainting => "SD1.5 inpainting checkpoint (9 input channels)",
            Family::Sd15Edit => "SD1.5 image-editing checkpoint (8 input channels)",
            Family::Sd2 => "SD2 checkpoint",
            Family::Sdxl => "SDXL checkpoint",
            Family::SdxlRefiner => "SDXL refiner",
            Family::Sd3 => "SD3 checkpoint",
            Family::Flux => "Flux checkpoint",
            Family::ControlNet => "ControlNet",
            Family::Adapter => "adapter",
            Family::Lora => "LoRA",
            Family::MotionModule => "motion module",
            Family::Embedding => "textual-inversion embedding",
            Family::Vae => "VAE",
            Family::OtherVae => "VAE of another family",
            Family::TextEncoder => "text encoder",
            Family::Upscaler => "upscaler",
            Family::Unknown => "file of unknown kind",
        }
    }

    /// Whether it is a SD1 checkpoint, of whatever task.
    pub fn is_sd1(self) -> bool {
        matches!(self, Family::Sd15 | Family::Sd15Inpainting | Family::Sd15Edit)
    }

    /// Whether pictures can be made with it.
    pub fn is_supported(self) -> bool {
        self == Family::Sd15
    }

    /// The SD1 family of a UNet with so many input channels.
    pub(crate) fn of_channels(channels: usize) -> Family {
        match channels {
            4 => Family::Sd15,
            9 => Family::Sd15Inpainting,
            8 => Family::Sd15Edit,
            _ => Family::Unknown,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// Parts of names that only low-rank additions (LoRA, LoHa, LoKr, OFT, DoRA) have.
const LORA: [&str; 12] = [
    ".lora_up.",
    ".lora_down.",
    ".lora_A.",
    ".lora_B.",
    ".lora.up.",
    ".lora.down.",
    // diffusers' attention processors.
    "_lora.up.",
    "_lora.down.",
    ".lora_linear_layer.",
    "hada_w1",
    "lokr_w",
    ".oft_",
];
const CONTROLNET: [&str; 5] = ["control_model.", "input_hint_block.", "controlnet_", "controlnet.", "lllite_"];
const UPSCALER: [&str; 6] =
    ["conv_first.", "params_ema.", "model.1.sub.", "model.0.weight", "body.0.rdb1.", "layers.0.residual_group."];

/// Tells a file's family. Additions come first: some carry copies of what they add to.
pub fn classify(files: &TensorFiles) -> Family {
    let prefix = |p: &str| files.has_prefix(p);
    let any = |list: &[&str]| list.iter().any(|p| files.has_prefix(p));
    if files.is_empty() {
        return Family::Unknown;
    }
    if LORA.iter().any(|p| files.has_part(p)) || prefix("lora_unet_") || prefix("lora_te") {
        return Family::Lora;
    }
    if any(&CONTROLNET) {
        return Family::ControlNet;
    }
    if any(&["image_proj.", "ip_adapter.", "adapter.", "body.0.block1."]) {
        return Family::Adapter;
    }
    if files.has_part("double_blocks.") && files.has_part("single_blocks.") || prefix("single_transformer_blocks.") {
        return Family::Flux;
    }
    if files.has_part("joint_blocks.") || prefix("transformer_blocks.0.attn.add_q_proj.") {
        return Family::Sd3;
    }
    if prefix("conditioner.embedders.") || files.has_part("label_emb.0.0.") || prefix("add_embedding.linear_1.") {
        return sdxl(files);
    }
    let unet = shapes::unet_naming(files);
    if unet.is_none() && files.has_part("motion_modules.") {
        return Family::MotionModule;
    }
    if prefix("cond_stage_model.model.") {
        return Family::Sd2;
    }
    if let Some(naming) = unet {
        return of_unet(files, &naming);
    }
    if shapes::vae_naming(files).is_some() {
        let latent =
            ["first_stage_model.decoder.conv_in.weight", "decoder.conv_in.weight", "vae.decoder.conv_in.weight"];
        let channels = latent.iter().find_map(|n| files.shape(n)?.get(1).copied());
        return if channels == Some(4) { Family::Vae } else { Family::OtherVae };
    }
    // An embedding has a name or two for a few rows; told before text encoders, whose names are many.
    if prefix("string_to_param") || prefix("emb_params") || is_embedding(files) {
        return Family::Embedding;
    }
    if shapes::text_naming(files).is_some()
        || any(&["encoder.block.0.layer.0.SelfAttention.", "transformer.resblocks."])
    {
        return Family::TextEncoder;
    }
    if any(&UPSCALER) { Family::Upscaler } else { Family::Unknown }
}

/// SDXL, or its refiner, which has only the second text encoder and a narrower UNet.
fn sdxl(files: &TensorFiles) -> Family {
    let first = ["model.diffusion_model.input_blocks.0.0.weight", "input_blocks.0.0.weight", "conv_in.weight"];
    let width = first.iter().find_map(|n| files.shape(n)?.first().copied());
    let one_encoder =
        files.has_prefix("conditioner.embedders.0.model.") && !files.has_prefix("conditioner.embedders.1.");
    if width == Some(384) || one_encoder { Family::SdxlRefiner } else { Family::Sdxl }
}

/// Tells the families that share SD1's UNet by the width of the text it listens to.
///
/// A UNet as wide as the text encoder beside it is SD1's whatever the width, so that small models are told rightly;
/// except 1024, which is SD2's (whose text encoder may also be named as SD1's is).
fn of_unet(files: &TensorFiles, naming: &super::keys::UNetNaming) -> Family {
    let Ok(unet) = shapes::unet(files, naming) else {
        // Damaged rather than foreign where it listens to text as SD1 does: opening it names what is wrong.
        let listens = "mid_block.attentions.0.transformer_blocks.0.attn2.to_k.weight";
        return if files.find(naming, listens).is_some() { Family::Sd15 } else { Family::Unknown };
    };
    let text = shapes::text_naming(files).and_then(|n| shapes::text_encoder(files, &n).ok());
    let own = text.is_some_and(|t| t.hidden_size == unet.cross_attention_dim);
    match unet.cross_attention_dim {
        1024 => Family::Sd2,
        2048 if !own => Family::Sdxl,
        1280 if !own => Family::SdxlRefiner,
        _ => Family::of_channels(unet.in_channels),
    }
}

fn is_embedding(files: &TensorFiles) -> bool {
    const WIDTHS: [usize; 4] = [768, 1024, 1280, 2048];
    let row =
        |name: &str| files.shape(name).is_some_and(|s| s.len() <= 2 && s.last().is_some_and(|n| WIDTHS.contains(n)));
    files.len() <= 4 && files.names().all(row)
}
