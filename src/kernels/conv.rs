//! Convolution in half precision with sums in f32.
//!
//! Without autotune burn takes its direct convolution, whose kernel sums in the type of its input (read in cubek-convolution
//! 0.3.1): in f16 over the 2,880 to 23,040 products behind one value of SD1.5's UNet. CubeK's implicit matrix product runs on
//! tensor cores and sums in f32. What the f16 sums alone would cost a picture was not measured.

use burn::tensor::ops::ConvOptions;
use burn::tensor::{DType, Tensor, module};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::conv::{ConvStrategy, conv_forward};

/// As burn's `conv2d`: `[n, in, h, w]` with a weight `[out, in, kh, kw]` to `[n, out, h', w']`.
pub fn conv2d(x: Tensor<4>, weight: Tensor<4>, bias: Option<Tensor<1>>, options: ConvOptions<2>) -> Tensor<4> {
    let dtype = x.dtype();
    if dtype == DType::F32 {
        return module::conv2d(x, weight, bias, options);
    }
    if let Some(y) = on_tensor_cores(&x, &weight, &bias, options.clone()) {
        return y;
    }
    // No tensor cores, or a shape they do not take: in f32 throughout.
    let wide = |x: Tensor<4>| x.cast(DType::F32);
    module::conv2d(wide(x), wide(weight), bias.map(|bias| bias.cast(DType::F32)), options).cast(dtype)
}

/// `None` where the device or the shape has no such kernel, or the tensors are not on a GPU.
fn on_tensor_cores(
    x: &Tensor<4>,
    weight: &Tensor<4>,
    bias: &Option<Tensor<1>>,
    options: ConvOptions<2>,
) -> Option<Tensor<4>> {
    let x = x.clone().try_into_primitive::<CubeBackend>().ok()?;
    let weight = weight.clone().try_into_primitive::<CubeBackend>().ok()?;
    let bias = match bias.clone() {
        Some(bias) => Some(bias.try_into_primitive::<CubeBackend>().ok()?),
        None => None,
    };
    // An error here means that no kernel fits, before anything was queued.
    let y = conv_forward::<2>(x, weight, bias, options, ConvStrategy::ImplicitGemm).ok()?;
    Some(Tensor::from_primitive::<CubeBackend>(y))
}
