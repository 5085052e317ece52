//! Which parts of the model lie on the device. The only place that loads or drops weights.

use super::MemoryError;
use super::account::{Account, Hold};
use super::forecast::{Part, weight_bytes};
use super::model::Model;
use crate::base::{Bytes, Precision};
use crate::diffusion::layers::Loader;
use crate::diffusion::text_encoder::TextEncoder;
use crate::diffusion::unet::UNet;
use crate::diffusion::vae::VaeDecoder;
use crate::diffusion::{DiffusionError, Watch};
use burn::tensor::Device;
use std::sync::Arc;

/// A part that was asked for did not come.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Diffusion(#[from] DiffusionError),
}

/// A part on the device.
struct Held<T> {
    part: Arc<T>,
    precision: Precision,
    /// Gives the bytes back to the account when the part goes.
    _hold: Hold,
    bytes: Bytes,
}

/// The parts that are loaded. A part given out lives on with whoever holds it; dropping it here gives it back once they
/// let go as well.
#[derive(Default)]
pub struct Residency {
    text_encoder: Option<Held<TextEncoder>>,
    unet: Option<Held<UNet>>,
    vae: Option<Held<VaeDecoder>>,
}

/// Where parts are loaded to.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub device: &'a Device,
    pub precision: Precision,
    pub account: &'a Account,
    pub watch: Watch<'a>,
}

impl Residency {
    pub fn text_encoder(&mut self, model: &Model, place: Place) -> Result<Arc<TextEncoder>, PartError> {
        let part = model.checkpoint().text_encoder();
        get(&mut self.text_encoder, Part::TextEncoder, part.tensors.values(), place, || {
            TextEncoder::load(&part.config, &place.loader(&part.tensors))
        })
    }

    pub fn unet(&mut self, model: &Model, place: Place) -> Result<Arc<UNet>, PartError> {
        let part = model.checkpoint().unet();
        get(&mut self.unet, Part::Unet, part.tensors.values(), place, || {
            UNet::load(&part.config, &place.loader(&part.tensors))
        })
    }

    pub fn vae(&mut self, model: &Model, place: Place) -> Result<Arc<VaeDecoder>, PartError> {
        let part = model.checkpoint().vae().map_err(DiffusionError::from)?;
        get(&mut self.vae, Part::VaeDecoder, part.tensors.values(), place, || {
            VaeDecoder::load(&part.config, &place.loader(&part.tensors))
        })
    }

    /// Whether a part is loaded in this type.
    pub fn has(&self, part: Part, precision: Precision) -> bool {
        let held = match part {
            Part::TextEncoder => self.text_encoder.as_ref().map(|held| held.precision),
            Part::Unet => self.unet.as_ref().map(|held| held.precision),
            Part::VaeDecoder => self.vae.as_ref().map(|held| held.precision),
        };
        held == Some(precision)
    }

    /// Lets a part go. True if it was there.
    pub fn drop_part(&mut self, part: Part) -> bool {
        match part {
            Part::TextEncoder => self.text_encoder.take().is_some(),
            Part::Unet => self.unet.take().is_some(),
            Part::VaeDecoder => self.vae.take().is_some(),
        }
    }

    pub fn drop_all(&mut self) {
        *self = Residency::default();
    }

    /// The loaded parts and what their weights take.
    pub fn loaded(&self) -> Vec<(Part, Bytes)> {
        let text_encoder = self.text_encoder.as_ref().map(|held| (Part::TextEncoder, held.bytes));
        let unet = self.unet.as_ref().map(|held| (Part::Unet, held.bytes));
        let vae = self.vae.as_ref().map(|held| (Part::VaeDecoder, held.bytes));
        [text_encoder, unet, vae].into_iter().flatten().collect()
    }
}

impl<'a> Place<'a> {
    fn loader(&self, tensors: &'a crate::diffusion::weights::PartTensors) -> Loader<'a> {
        Loader::new(tensors, self.device, self.precision, self.watch)
    }
}

/// The part in `slot`, loaded first if it is not there in the type that is wanted.
fn get<T>(
    slot: &mut Option<Held<T>>,
    part: Part,
    values: u64,
    place: Place,
    load: impl FnOnce() -> Result<T, DiffusionError>,
) -> Result<Arc<T>, PartError> {
    if let Some(held) = slot.as_ref().filter(|held| held.precision == place.precision) {
        return Ok(held.part.clone());
    }
    // The old one goes first: two of a kind are never wanted.
    *slot = None;
    let bytes = weight_bytes(values, place.precision);
    let hold = place.account.take(part.label(), bytes)?;
    let loaded = Arc::new(load()?);
    // Uploads are queued; an error of theirs belongs here and not to the first step.
    place.device.sync().map_err(DiffusionError::from)?;
    *slot = Some(Held { part: loaded.clone(), precision: place.precision, _hold: hold, bytes });
    Ok(loaded)
}
