//! burn's tensors in, burn's tensors out. Each function gives `None` for tensors that are not f32 in host memory, or whose
//! shapes do not fit each other; plain burn operations then compute the same or say what is wrong.

use super::norm::Then;
use super::{attention as attend, conv, linear as product, norm, simd};
use burn::backend::DispatchDevice;
use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_flex::{Flex, FlexTensor};

fn in_host_memory(device: &Device, dtype: DType) -> bool {
    dtype == DType::F32 && matches!(device.as_dispatch(), DispatchDevice::Flex(_))
}

/// The tensor's values in a row; copied only if they do not lie so.
fn host<const D: usize>(x: &Tensor<D>) -> Option<FlexTensor> {
    if !in_host_memory(&x.device(), x.dtype()) {
        return None;
    }
    let x = x.clone().try_into_primitive::<Flex>().ok()?;
    Some(if x.is_contiguous() { x } else { x.to_contiguous() })
}

fn tensor<const D: usize>(values: Vec<f32>, shape: [usize; D]) -> Tensor<D> {
    Tensor::from_primitive::<Flex>(FlexTensor::from_data(TensorData::new(values, shape)))
}

/// `[n, in, h, w]` with a weight `[out, in, kh, kw]` and zeros around, for rows and columns, to `[n, out, h', w']`.
pub fn conv2d(
    x: &Tensor<4>,
    weight: &Tensor<4>,
    bias: Option<&Tensor<1>>,
    stride: usize,
    padding: [(usize, usize); 2],
) -> Option<Tensor<4>> {
    let ([n, channels, height, width], [out, inner, kh, kw]) = (x.dims(), weight.dims());
    if inner != channels || stride == 0 || bias.is_some_and(|bias| bias.dims() != [out]) {
        return None;
    }
    let shape = conv::Shape { n, channels, height, width, out, kernel: [kh, kw], stride, padding };
    let [rows, columns] = shape.output()?;
    let (x, weight) = (host(x)?, host(weight)?);
    let bias = bias.map(|bias| host(bias).ok_or(())).transpose().ok()?;
    let bias = match &bias {
        Some(bias) => Some(bias.as_slice::<f32>()?),
        None => None,
    };
    let y = conv::conv2d(simd::kind(), x.as_slice::<f32>()?, weight.as_slice::<f32>()?, bias, &shape)?;
    Some(tensor(y, [n, out, rows, columns]))
}

/// `[.., in]` times `[in, out]`, plus `[out]`.
pub fn linear<const D: usize>(x: &Tensor<D>, weight: &Tensor<2>, bias: Option<&Tensor<1>>) -> Option<Tensor<D>> {
    let mut shape = x.dims();
    let [d_in, d_out] = weight.dims();
    if shape[D - 1] != d_in || bias.is_some_and(|bias| bias.dims() != [d_out]) {
        return None;
    }
    let rows = shape[..D - 1].iter().product();
    let (x, weight) = (host(x)?, host(weight)?);
    let bias = bias.map(|bias| host(bias).ok_or(())).transpose().ok()?;
    let bias = match &bias {
        Some(bias) => Some(bias.as_slice::<f32>()?),
        None => None,
    };
    let y = product::linear(simd::kind(), x.as_slice::<f32>()?, weight.as_slice::<f32>()?, bias, rows, d_in, d_out);
    shape[D - 1] = d_out;
    Some(tensor(y, shape))
}

/// softmax(q · kᵀ / √d) · v of q `[n, heads, queries, d]` with k and v `[n, heads, keys, d]`.
pub fn attention(q: &Tensor<4>, k: &Tensor<4>, v: &Tensor<4>) -> Option<Tensor<4>> {
    let ([n, heads, queries, d], [_, _, keys, _]) = (q.dims(), k.dims());
    if k.dims() != [n, heads, keys, d] || v.dims() != k.dims() || d == 0 {
        return None;
    }
    let (q, k, v) = (host(q)?, host(k)?, host(v)?);
    let shape = attend::Shape { batch: n * heads, queries, keys, d };
    let y = attend::attention(simd::kind(), q.as_slice()?, k.as_slice()?, v.as_slice()?, shape);
    Some(tensor(y, [n, heads, queries, d]))
}

/// Group norm of `[n, channels, h, w]`, and what follows.
pub fn group_norm(
    x: &Tensor<4>,
    gamma: &Tensor<1>,
    beta: &Tensor<1>,
    groups: usize,
    eps: f64,
    then: Then,
) -> Option<Tensor<4>> {
    let [n, channels, h, w] = x.dims();
    if groups == 0 || channels % groups != 0 || gamma.dims() != [channels] || beta.dims() != [channels] {
        return None;
    }
    let (values, gamma, beta) = (host(x)?, host(gamma)?, host(beta)?);
    let layout = norm::Layout { n, pixels: h * w, groups };
    let y = norm::group_norm(simd::kind(), values.as_slice()?, gamma.as_slice()?, beta.as_slice()?, layout, eps, then);
    Some(tensor(y, [n, channels, h, w]))
}

/// Layer norm over the last dimension.
pub fn layer_norm<const D: usize>(x: &Tensor<D>, gamma: &Tensor<1>, beta: &Tensor<1>, eps: f64) -> Option<Tensor<D>> {
    let shape = x.dims();
    let width = shape[D - 1];
    if width == 0 || gamma.dims() != [width] || beta.dims() != [width] {
        return None;
    }
    let (x, gamma, beta) = (host(x)?, host(gamma)?, host(beta)?);
    Some(tensor(norm::layer_norm(simd::kind(), x.as_slice()?, gamma.as_slice()?, beta.as_slice()?, eps), shape))
}

/// Values times gelu of their gates.
pub fn gated<const D: usize>(values: &Tensor<D>, gates: &Tensor<D>) -> Option<Tensor<D>> {
    let shape = values.dims();
    if gates.dims() != shape {
        return None;
    }
    let (values, gates) = (host(values)?, host(gates)?);
    Some(tensor(norm::gated(simd::kind(), values.as_slice()?, gates.as_slice()?), shape))
}

/// x / (1 + e⁻ˣ).
pub fn silu<const D: usize>(x: &Tensor<D>) -> Option<Tensor<D>> {
    let values = host(x)?;
    Some(tensor(norm::silu(simd::kind(), values.as_slice()?), x.dims()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Distribution, activation, module};

    fn random<const D: usize>(shape: [usize; D]) -> Tensor<D> {
        Tensor::random(shape, Distribution::Normal(0.0, 1.0), (&Device::flex(), DType::F32))
    }

    fn same<const D: usize>(a: Tensor<D>, b: Tensor<D>) {
        assert_eq!(a.dims(), b.dims());
        let [a, b] = [a, b].map(|x| x.into_data().try_into_vec::<f32>().unwrap());
        for (a, b) in a.iter().zip(&b) {
            assert!((a - b).abs() < 2e-5 * (1.0 + b.abs()), "{a} {b}");
        }
    }

    #[test]
    fn views_give_what_burn_gives() {
        // Turned and cut tensors lie otherwise in memory.
        let x = random([2, 5, 7, 6]).permute([0, 3, 1, 2]).narrow(2, 1, 4);
        let (w, b) = (random([8, 6, 3, 3]), random([8]));
        let options = burn::tensor::ops::ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
        same(conv2d(&x, &w, Some(&b), 1, [(1, 1); 2]).unwrap(), module::conv2d(x, w, Some(b), options));
        let x = random([3, 9, 12]).swap_dims(1, 2);
        let (w, b) = (random([14, 9]).swap_dims(0, 1), random([14]));
        same(linear(&x, &w, Some(&b)).unwrap(), module::linear(x, w, Some(b)));
        let [q, k, v] = [11, 13, 13].map(|tokens| random([2, tokens, 3, 8]).swap_dims(1, 2));
        let stock = module::attention(q.clone(), k.clone(), v.clone(), None, None, Default::default());
        same(attention(&q, &k, &v).unwrap(), stock);
        let x = random([2, 6, 8]).swap_dims(1, 2);
        let (gamma, beta) = (random([6]), random([6]));
        same(layer_norm(&x, &gamma, &beta, 1e-5).unwrap(), module::layer_norm(x.clone(), gamma, Some(beta), 1e-5));
        same(silu(&x).unwrap(), activation::silu(x.clone()));
        let gates = random([2, 8, 6]);
        same(gated(&x, &gates).unwrap(), x * activation::gelu(gates));
    }

    #[test]
    fn what_does_not_fit_is_left_to_burn() {
        let (x, w) = (random([1, 3, 4, 4]), random([2, 4, 3, 3]));
        assert!(conv2d(&x, &w, None, 1, [(1, 1); 2]).is_none());
        assert!(conv2d(&x, &random([2, 3, 9, 9]), None, 1, [(1, 1); 2]).is_none());
        assert!(linear(&random([2, 3]), &random([4, 5]), None).is_none());
        assert!(group_norm(&x, &random([3]), &random([3]), 2, 1e-5, Then::Nothing).is_none());
        assert!(silu(&x.cast(DType::F64)).is_none());
    }
}
