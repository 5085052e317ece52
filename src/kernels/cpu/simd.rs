//! Vectors of f32 as the processor has them: 16 lanes (AVX-512), 8 lanes (AVX2 with FMA), or arrays that the compiler makes of
//! them what it can. A kernel is written once, generic over [`Simd`], and [`dispatch!`] calls it with the widest kind there is.

/// One kind of vector.
///
/// # Safety
/// Every method may only be called on a processor that has the kind's instructions; pointers must be valid for `LANES` values.
pub trait Simd: Copy {
    /// Values in a vector.
    const LANES: usize;
    type V: Copy;
    unsafe fn splat(x: f32) -> Self::V;
    unsafe fn load(at: *const f32) -> Self::V;
    unsafe fn store(at: *mut f32, v: Self::V);
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V;
    /// a · b + c, rounded once where the processor can.
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// 2 to the power of x, for whole x in -126 ..= 127.
    unsafe fn exp2_whole(x: Self::V) -> Self::V;
    /// To the nearest whole number.
    unsafe fn round(x: Self::V) -> Self::V;

    /// e to the power of x, to 2 units in the last place; 0 below -87.3, never more than about 1.7e38.
    ///
    /// x = n·ln 2 + r with r in ±ln 2 / 2; the polynomial for e^r is that of Cephes' `expf` (S. Moshier).
    #[inline(always)]
    unsafe fn exp(x: Self::V) -> Self::V {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let x = Self::min(Self::max(x, Self::splat(-87.336_55)), Self::splat(88.0));
            let n = Self::round(Self::mul(x, Self::splat(std::f32::consts::LOG2_E)));
            // ln 2 in two parts, the first with few digits, so that n · ln 2 is exact.
            let r = Self::fma(n, Self::splat(-0.693_359_4), x);
            let r = Self::fma(n, Self::splat(2.121_944_4e-4), r);
            let mut p = Self::splat(1.987_569_1e-4);
            for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5e-1] {
                p = Self::fma(p, r, Self::splat(c));
            }
            let e = Self::add(Self::fma(p, Self::mul(r, r), r), Self::splat(1.0));
            Self::mul(e, Self::exp2_whole(n))
        }
    }

    /// The sum of a vector's values.
    #[inline(always)]
    unsafe fn sum(v: Self::V) -> f32 {
        let mut parts = [0.0f32; 16];
        // SAFETY: no vector has more than 16 lanes.
        unsafe { Self::store(parts.as_mut_ptr(), v) };
        parts[..Self::LANES].iter().sum()
    }

    /// The largest of a vector's values.
    #[inline(always)]
    unsafe fn largest(v: Self::V) -> f32 {
        let mut parts = [f32::NEG_INFINITY; 16];
        // SAFETY: no vector has more than 16 lanes.
        unsafe { Self::store(parts.as_mut_ptr(), v) };
        parts[..Self::LANES].iter().copied().fold(f32::NEG_INFINITY, f32::max)
    }
}

/// Eight values in an array, for processors without a kind of their own here.
#[derive(Clone, Copy)]
pub struct Portable;

macro_rules! lanewise {
    ($a:expr, $b:expr, $f:expr) => {{
        let (a, b) = ($a, $b);
        std::array::from_fn(|i| $f(a[i], b[i]))
    }};
}

impl Simd for Portable {
    const LANES: usize = 8;
    type V = [f32; 8];
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::V {
        [x; 8]
    }
    #[inline(always)]
    unsafe fn load(at: *const f32) -> Self::V {
        // SAFETY: the caller vouches for eight values.
        unsafe { at.cast::<[f32; 8]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(at: *mut f32, v: Self::V) {
        // SAFETY: the caller vouches for eight values.
        unsafe { at.cast::<[f32; 8]>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        lanewise!(a, b, |a: f32, b: f32| a + b)
    }
    #[inline(always)]
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V {
        lanewise!(a, b, |a: f32, b: f32| a - b)
    }
    #[inline(always)]
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V {
        lanewise!(a, b, |a: f32, b: f32| a * b)
    }
    #[inline(always)]
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V {
        lanewise!(a, b, |a: f32, b: f32| a / b)
    }
    #[inline(always)]
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V {
        lanewise!(a, b, f32::max)
    }
    #[inline(always)]
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V {
        lanewise!(a, b, f32::min)
    }
    #[inline(always)]
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // Not `mul_add`: without the instruction it is a slow function.
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    unsafe fn exp2_whole(x: Self::V) -> Self::V {
        x.map(|x| f32::from_bits(((x as i32 + 127) as u32) << 23))
    }
    #[inline(always)]
    unsafe fn round(x: Self::V) -> Self::V {
        x.map(f32::round_ties_even)
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    // SAFETY, for the whole module: each method is one instruction or two of its kind, whose presence the caller vouches for.
    use super::Simd;
    use std::arch::x86_64::*;

    /// AVX2 and FMA.
    #[derive(Clone, Copy)]
    pub struct Avx2;

    /// AVX-512F.
    #[derive(Clone, Copy)]
    pub struct Avx512;

    macro_rules! intrinsics {
        ($kind:ty, $lanes:literal, $v:ty, load $load:ident, store $store:ident, splat $splat:ident, fma $fma:ident,
         binary { $($name:ident $binary:ident)* }, exp2_whole |$x:ident| $exp2:expr, round |$y:ident| $round:expr) => {
            impl Simd for $kind {
                const LANES: usize = $lanes;
                type V = $v;
                #[inline(always)]
                unsafe fn splat(x: f32) -> $v {
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                unsafe fn load(at: *const f32) -> $v {
                    unsafe { $load(at) }
                }
                #[inline(always)]
                unsafe fn store(at: *mut f32, v: $v) {
                    unsafe { $store(at, v) }
                }
                #[inline(always)]
                unsafe fn fma(a: $v, b: $v, c: $v) -> $v {
                    unsafe { $fma(a, b, c) }
                }
                $(
                    #[inline(always)]
                    unsafe fn $name(a: $v, b: $v) -> $v {
                        unsafe { $binary(a, b) }
                    }
                )*
                #[inline(always)]
                unsafe fn exp2_whole($x: $v) -> $v {
                    unsafe { $exp2 }
                }
                #[inline(always)]
                unsafe fn round($y: $v) -> $v {
                    unsafe { $round }
                }
            }
        };
    }

    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

    // 2 to a whole power: the power, plus 127, is the exponent's field.
    intrinsics!(
        Avx2, 8, __m256, load _mm256_loadu_ps, store _mm256_storeu_ps, splat _mm256_set1_ps, fma _mm256_fmadd_ps,
        binary { add _mm256_add_ps sub _mm256_sub_ps mul _mm256_mul_ps div _mm256_div_ps max _mm256_max_ps min _mm256_min_ps },
        exp2_whole |x| _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(_mm256_cvtps_epi32(x), _mm256_set1_epi32(127)))),
        round |x| _mm256_round_ps::<NEAREST>(x)
    );
    intrinsics!(
        Avx512, 16, __m512, load _mm512_loadu_ps, store _mm512_storeu_ps, splat _mm512_set1_ps, fma _mm512_fmadd_ps,
        binary { add _mm512_add_ps sub _mm512_sub_ps mul _mm512_mul_ps div _mm512_div_ps max _mm512_max_ps min _mm512_min_ps },
        exp2_whole |x| _mm512_castsi512_ps(_mm512_slli_epi32::<23>(_mm512_add_epi32(_mm512_cvtps_epi32(x), _mm512_set1_epi32(127)))),
        round |x| _mm512_roundscale_ps::<NEAREST>(x)
    );
}

/// Which kind this processor has; the same for the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Avx512,
    Avx2,
    Portable,
}

/// The widest kind of this processor.
pub fn kind() -> Kind {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            return Kind::Avx512;
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            return Kind::Avx2;
        }
    }
    Kind::Portable
}

/// Makes `fn $name($args)` of a kernel `unsafe fn $kernel<S: Simd>($args)`: calls it as compiled for the given [`Kind`].
macro_rules! dispatch {
    ($(#[$meta:meta])* $visibility:vis unsafe fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $out:ty)? = $kernel:ident) => {
        $(#[$meta])*
        $visibility unsafe fn $name(kind: $crate::kernels::cpu::simd::Kind, $($arg: $type),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f")]
            unsafe fn wide($($arg: $type),*) $(-> $out)? {
                // SAFETY: as the caller's; the instructions are enabled here.
                unsafe { $kernel::<$crate::kernels::cpu::simd::Avx512>($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            unsafe fn middle($($arg: $type),*) $(-> $out)? {
                // SAFETY: as the caller's; the instructions are enabled here.
                unsafe { $kernel::<$crate::kernels::cpu::simd::Avx2>($($arg),*) }
            }
            // SAFETY: as the caller's, who also vouches for `kind`.
            unsafe {
                match kind {
                    #[cfg(target_arch = "x86_64")]
                    $crate::kernels::cpu::simd::Kind::Avx512 => wide($($arg),*),
                    #[cfg(target_arch = "x86_64")]
                    $crate::kernels::cpu::simd::Kind::Avx2 => middle($($arg),*),
                    _ => $kernel::<$crate::kernels::cpu::simd::Portable>($($arg),*),
                }
            }
        }
    };
}
pub(super) use dispatch;

/// All kinds that this processor has, for tests.
#[cfg(test)]
pub fn kinds() -> Vec<Kind> {
    let all = [Kind::Avx512, Kind::Avx2, Kind::Portable];
    let widest = all.iter().position(|k| *k == kind()).unwrap_or(2);
    all[widest..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    dispatch! { unsafe fn exps(x: &mut [f32]) = exps_of }

    unsafe fn exps_of<S: Simd>(x: &mut [f32]) {
        for part in x.chunks_exact_mut(S::LANES) {
            unsafe { S::store(part.as_mut_ptr(), S::exp(S::load(part.as_ptr()))) };
        }
    }

    #[test]
    fn exponentials_are_right_to_the_last_places_on_every_kind() {
        for kind in kinds() {
            let x: Vec<f32> = (0..16_000).map(|i| -87.0 + i as f32 * 174.0 / 16_000.0).collect();
            let mut y = x.clone();
            unsafe { exps(kind, &mut y) };
            for (x, y) in x.iter().zip(&y) {
                let truth = f64::from(*x).exp();
                assert!((f64::from(*y) / truth - 1.0).abs() < 3e-7, "{kind:?} exp({x}) = {y}");
            }
            let mut extreme = vec![f32::NEG_INFINITY; 16];
            unsafe { exps(kind, &mut extreme) };
            assert!(extreme.iter().all(|y| *y < 1.3e-38), "{extreme:?}");
        }
    }
}
