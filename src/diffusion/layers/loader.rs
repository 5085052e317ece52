//! Takes tensors from a checkpoint to the device, dense and in the run's type.

use super::{Conv2d, Embedding, GroupNorm, LayerNorm, Linear};
use crate::base::Precision;
use crate::diffusion::weights::{HostTensor, TensorSource};
use crate::diffusion::{DiffusionError, Watch};
use burn::backend::DispatchDevice;
use burn::tensor::{DType, Device, Tensor, TensorData};
use std::cell::Cell;
use std::rc::Rc;

/// The device type of a precision. `Auto` is decided before anything is loaded, and counts as f32 here.
pub fn float_type(precision: Precision) -> DType {
    match precision {
        Precision::F16 => DType::F16,
        Precision::Bf16 => DType::BF16,
        Precision::F32 | Precision::Auto => DType::F32,
    }
}

/// A place in a checkpoint's tree of names, from which layers are loaded by their diffusers names.
#[derive(Clone)]
pub struct Loader<'a> {
    source: &'a dyn TensorSource,
    device: &'a Device,
    precision: Precision,
    watch: Watch<'a>,
    path: String,
    /// Bytes handed to the device's queue since it was last waited for.
    queued: Rc<Cell<usize>>,
}

/// How much may be on its way to the device. Until it has arrived, it takes host memory as well.
const MOST_QUEUED: usize = 32 << 20;

impl<'a> Loader<'a> {
    pub fn new(source: &'a dyn TensorSource, device: &'a Device, precision: Precision, watch: Watch<'a>) -> Self {
        Loader { source, device, precision, watch, path: String::new(), queued: Rc::default() }
    }

    /// The loader for `name` below this one.
    pub fn at(&self, name: impl std::fmt::Display) -> Self {
        Loader { path: self.full(&name.to_string()), ..self.clone() }
    }

    pub fn device(&self) -> &'a Device {
        self.device
    }

    pub fn has(&self, name: &str) -> bool {
        self.source.shape(&self.full(name)).is_some()
    }

    /// A linear layer with a bias if the checkpoint has one.
    pub fn linear(&self, name: &str) -> Result<Linear, DiffusionError> {
        let at = self.at(name);
        let host = at.host("weight", self.precision)?;
        let shape = <[usize; 2]>::try_from(host.shape.as_slice())
            .map_err(|_| at.wrong_shape("weight", &host.shape, "2 dimensions"))?;
        Ok(Linear { weight: self.turned(host.bytes, host.precision, shape), bias: at.vector("bias")? })
    }

    /// A linear layer whose outputs are `parts` equal groups, as that many layers: GEGLU's value and gate. Splitting here
    /// saves copying slices of the activation at every call.
    pub fn linear_parts<const PARTS: usize>(&self, name: &str) -> Result<[Linear; PARTS], DiffusionError> {
        let at = self.at(name);
        let weight = at.host("weight", self.precision)?;
        let bias = if at.has("bias") { Some(at.host("bias", self.precision)?) } else { None };
        let (d_out, d_in) = match weight.shape.as_slice() {
            &[d_out, d_in] if d_out % PARTS == 0 => (d_out / PARTS, d_in),
            _ => return Err(at.wrong_shape("weight", &weight.shape, &format!("a multiple of {PARTS} rows"))),
        };
        let rows = |host: &HostTensor, part: usize| {
            let bytes = host.bytes.len() / PARTS;
            host.bytes[part * bytes..(part + 1) * bytes].to_vec()
        };
        Ok(std::array::from_fn(|part| Linear {
            weight: self.turned(rows(&weight, part), weight.precision, [d_out, d_in]),
            bias: bias.as_ref().map(|bias| self.upload(rows(bias, part), bias.precision)),
        }))
    }

    /// A convolution with a bias if the checkpoint has one.
    pub fn conv2d(&self, name: &str, stride: usize, padding: [(usize, usize); 2]) -> Result<Conv2d, DiffusionError> {
        let at = self.at(name);
        let host = at.host("weight", self.precision)?;
        let &[d_out, d_in, kh, kw] = host.shape.as_slice() else {
            return Err(at.wrong_shape("weight", &host.shape, "four dimensions"));
        };
        let size = host.precision.size();
        let weight = if self.channels_last() && kh * kw > 1 {
            // GPU convolutions want the input channel innermost, and a last dimension of 3 would be padded to 8 elements.
            let bytes = match size {
                2 => rows_to_columns::<2>(&host.bytes, d_out, d_in, kh * kw),
                _ => rows_to_columns::<4>(&host.bytes, d_out, d_in, kh * kw),
            };
            self.upload(bytes, host.precision).reshape([d_out, kh, kw, d_in]).permute([0, 3, 1, 2])
        } else {
            self.upload(host.bytes, host.precision).reshape([d_out, d_in, kh, kw])
        };
        Ok(Conv2d { weight, bias: at.vector("bias")?, stride, padding })
    }

    pub fn group_norm(&self, name: &str, groups: usize, eps: f64) -> Result<GroupNorm, DiffusionError> {
        let at = self.at(name);
        let (gamma, beta) = at.affine()?;
        let [channels] = gamma.dims();
        if groups == 0 || channels % groups != 0 {
            return Err(at.wrong_shape("weight", &[channels], &format!("a multiple of {groups} groups")));
        }
        Ok(GroupNorm { gamma, beta, groups, eps })
    }

    pub fn layer_norm(&self, name: &str, eps: f64) -> Result<LayerNorm, DiffusionError> {
        let (gamma, beta) = self.at(name).affine()?;
        Ok(LayerNorm { gamma, beta, eps })
    }

    pub fn embedding(&self, name: &str) -> Result<Embedding, DiffusionError> {
        let (table, [rows, width]) = self.at(name).flat::<2>("weight", self.precision)?;
        Ok(Embedding { table: table.reshape([rows, width]) })
    }

    /// Scale and shift of a norm, always in f32: they are small, and the statistics they meet are f32.
    fn affine(&self) -> Result<(Tensor<1>, Tensor<1>), DiffusionError> {
        let (gamma, [n]) = self.flat::<1>("weight", Precision::F32)?;
        let (beta, [m]) = self.flat::<1>("bias", Precision::F32)?;
        if n != m {
            return Err(self.wrong_shape("bias", &[m], &format!("[{n}]")));
        }
        Ok((gamma, beta))
    }

    fn vector(&self, name: &str) -> Result<Option<Tensor<1>>, DiffusionError> {
        if !self.has(name) {
            return Ok(None);
        }
        Ok(Some(self.flat::<1>(name, self.precision)?.0))
    }

    /// A tensor of `D` dimensions, uploaded as one row so that no dimension is padded, with its shape.
    fn flat<const D: usize>(
        &self,
        name: &str,
        precision: Precision,
    ) -> Result<(Tensor<1>, [usize; D]), DiffusionError> {
        let host = self.host(name, precision)?;
        let shape = <[usize; D]>::try_from(host.shape.as_slice())
            .map_err(|_| self.wrong_shape(name, &host.shape, &format!("{D} dimensions")))?;
        Ok((self.upload(host.bytes, host.precision), shape))
    }

    fn host(&self, name: &str, precision: Precision) -> Result<HostTensor, DiffusionError> {
        self.watch.check()?;
        if self.queued.get() > MOST_QUEUED {
            self.device.sync()?;
            self.queued.set(0);
        }
        Ok(self.source.read(&self.full(name), precision)?)
    }

    /// A matrix stored as `[out, in]`, as `[in, out]`. The CPU reads its lines one after the other, so there it is turned once in
    /// memory; a GPU takes the view.
    fn turned(&self, bytes: Vec<u8>, precision: Precision, [d_out, d_in]: [usize; 2]) -> Tensor<2> {
        if self.channels_last() || precision.size() != 4 {
            return self.upload(bytes, precision).reshape([d_out, d_in]).swap_dims(0, 1);
        }
        self.upload(rows_to_columns::<4>(&bytes, 1, d_out, d_in), precision).reshape([d_in, d_out])
    }

    fn upload(&self, bytes: Vec<u8>, precision: Precision) -> Tensor<1> {
        let dtype = float_type(precision);
        self.queued.set(self.queued.get() + bytes.len());
        let elements = bytes.len() / precision.size();
        Tensor::from_data(TensorData::from_bytes_vec(bytes, [elements], dtype), (self.device, dtype))
    }

    fn channels_last(&self) -> bool {
        matches!(self.device.as_dispatch(), DispatchDevice::Cube(_))
    }

    fn full(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn wrong_shape(&self, name: &str, found: &[usize], expected: &str) -> DiffusionError {
        DiffusionError::Shape { name: self.full(name), found: found.to_vec(), expected: expected.to_owned() }
    }
}

/// `[blocks, rows, columns]` to `[blocks, columns, rows]` of elements of `SIZE` bytes: OIHW to OHWI for a convolution.
pub(super) fn rows_to_columns<const SIZE: usize>(bytes: &[u8], blocks: usize, rows: usize, columns: usize) -> Vec<u8> {
    let (source, _) = bytes.as_chunks::<SIZE>();
    let mut turned = vec![[0u8; SIZE]; source.len()];
    let block = rows * columns;
    // In squares, so that lines of both sides stay in the cache.
    const SQUARE: usize = 32;
    for (from, to) in source.chunks_exact(block).zip(turned.chunks_exact_mut(block)).take(blocks) {
        for first in (0..rows).step_by(SQUARE) {
            for left in (0..columns).step_by(SQUARE) {
                for row in first..(first + SQUARE).min(rows) {
                    for column in left..(left + SQUARE).min(columns) {
                        to[column * rows + row] = from[row * columns + column];
                    }
                }
            }
        }
    }
    turned.into_flattened()
}
