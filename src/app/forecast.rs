//! Whether the draft would fit, before it is sent: the memory folder's formulas, asked with what the window knows.
//!
//! The effects read off a model what it costs when they inspect it; the studio calls the rest after every change. The engine
//! asks the same formulas again before a run, with the card as it is then.

use crate::base::{Bytes, DeviceChoice, Latest, ModelChoice, Precision, Size, VaeChoice};
use crate::engine::protocol::DeviceStatus;
use crate::memory::{self, Model, ModelKey, ModelShape, PerPart, RunShape, nearest_fit};
use crate::studio::{Draft, Forecast, ForecastFn, Memory};
use std::cell::RefCell;

/// Values of SD1.5's VAE decoder, for a checkpoint that has yet to be given a VAE.
const VAE_VALUES: u64 = 49_490_199;

/// What of a checkpoint decides what its runs take.
pub struct Cost {
    model: ModelChoice,
    shape: ModelShape,
    values: PerPart<u64>,
}

impl Cost {
    /// Reads headers and configurations. `None` where they do not hold, which inspection says better.
    pub fn of(choice: &ModelChoice) -> Option<Self> {
        let model = Model::open(ModelKey {
            model: choice.clone(),
            vae: VaeChoice::Automatic,
            ema: false,
            v_prediction: None,
            precision: Precision::F32,
        });
        let model = model.ok()?;
        let (mut shape, mut values) = (model.shape(), model.values());
        if values.vae == 0 {
            let usual = ModelShape::sd15();
            (shape.vae_channels, shape.vae_attention) = (usual.vae_channels, usual.vae_attention);
            values.vae = VAE_VALUES;
        }
        Some(Cost { model: choice.clone(), shape, values })
    }

    /// What a run of the draft at this size would take.
    fn run(&self, draft: &Draft, size: Size, precision: Precision, gpu: bool) -> memory::Forecast {
        let longest = draft.prompt.len().max(draft.negative.len());
        let run = RunShape::new(size, draft.cfg, longest, precision);
        memory::Forecast::of_run(&self.shape, self.values, &run, gpu)
    }
}

/// The studio's forecast, fed with models through `costs`.
pub fn forecaster(costs: Latest<Cost>) -> Box<ForecastFn> {
    let known: RefCell<Option<Cost>> = RefCell::new(None);
    Box::new(move |draft, memory, device| {
        let mut known = known.borrow_mut();
        if let Some(cost) = costs.take() {
            *known = Some(cost);
        }
        let cost = known.as_ref().filter(|cost| draft.model.as_ref() == Some(&cost.model))?;
        forecast(cost, draft, memory, device?)
    })
}

fn forecast(cost: &Cost, draft: &Draft, memory: &Memory, device: &DeviceStatus) -> Option<Forecast> {
    let reading = memory.latest()?;
    let (total, used) = (reading.total?, reading.used()?);
    let ours = reading.ours_in_use.unwrap_or_default() + reading.ours_pooled.unwrap_or_default();
    // Ours can make room for ours; the rest stays, our own context too.
    let rest = used - ours;
    let limits = memory.limits();
    let room = total.portion(limits.pause_at) - rest;
    let room = limits.budget.map_or(room, |budget| budget.min(room));
    let precision = if draft.precision == Precision::Auto { device.precision } else { draft.precision };
    let gpu = device.choice != DeviceChoice::Cpu;
    let run = cost.run(draft, draft.size, precision, gpu);
    if run.least() <= room {
        // Parts stay loaded while there is room.
        let peak = if run.comfortable() <= room { run.comfortable() } else { run.least() };
        return Some(Forecast::Fits { peak: rest + peak, total });
    }
    let need = |size| -> Bytes { cost.run(draft, size, precision, gpu).least() };
    Some(Forecast::DoesNotFit { largest: nearest_fit(need, draft.size, room) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::MemoryReading;
    use crate::base::choice::MemoryLimits;
    use crate::studio::Stage;

    fn device(choice: DeviceChoice) -> DeviceStatus {
        let (name, total, passed_over) = ("a card".to_owned(), None, vec![]);
        DeviceStatus { choice, name, total, precision: Precision::F16, passed_over }
    }

    fn memory(total: Bytes, others: Bytes) -> Memory {
        let mut memory = Memory::new(MemoryLimits::default());
        let reading = MemoryReading { total: Some(total), free: Some(total - others), ..MemoryReading::default() };
        memory.take_reading(reading, Stage::Idle);
        memory
    }

    #[test]
    fn a_full_size_model_fits_a_usual_card_and_a_size_is_offered_where_it_does_not() {
        let costs = Latest::new();
        let ask = forecaster(costs.clone());
        let mut draft = Draft { model: Some(ModelChoice::RandomSd15), ..Draft::default() };
        let cuda = device(DeviceChoice::Cuda(0));
        let roomy = memory(Bytes::gib(8), Bytes::gib(1));
        assert_eq!(ask(&draft, &roomy, Some(&cuda)), None, "no model was inspected yet");
        costs.put(Cost::of(&ModelChoice::RandomSd15).unwrap());
        let Some(Forecast::Fits { peak, total }) = ask(&draft, &roomy, Some(&cuda)) else { panic!("512×768 fits") };
        assert!(total == Bytes::gib(8) && peak > Bytes::gib(3) && peak < Bytes::gib(6), "{peak}");
        assert_eq!(ask(&draft, &roomy, None), None);

        let tight = memory(Bytes::gib(8), Bytes::gib(5));
        draft.size = Size::nearest(4096, 4096);
        let Some(Forecast::DoesNotFit { largest: Some(size) }) = ask(&draft, &tight, Some(&cuda)) else {
            panic!("4096×4096 does not fit")
        };
        draft.size = size;
        assert!(size.width() >= 256 && size.width() == size.height());
        assert!(matches!(ask(&draft, &tight, Some(&cuda)), Some(Forecast::Fits { .. })), "what is offered fits");
        let none = memory(Bytes::gib(8), Bytes::mib(7300));
        assert_eq!(ask(&draft, &none, Some(&cuda)), Some(Forecast::DoesNotFit { largest: None }));
        draft.model = Some(ModelChoice::Path("other".into()));
        assert_eq!(ask(&draft, &roomy, Some(&cuda)), None, "another model than the one that was read");
    }
}
