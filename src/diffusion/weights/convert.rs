//! Number types of safetensors files, and their conversion to the run's type.
//!
//! Everything is little-endian bytes. Rounding is to nearest, ties to even; f64 goes to f16 and bf16 in one rounding.
//! `archive` feeds it a block at a time, so the loops are plain and long enough to be vectorised.

use crate::base::Precision;
use half::{f16, slice::HalfFloatSliceExt};
use std::fmt;

/// Element type of a stored tensor. `F8_E4M3` is torch's `float8_e4m3fn` (no infinities).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DType {
    F64,
    F32,
    F16,
    Bf16,
    F8E4M3,
    F8E5M2,
    I64,
    I32,
    I16,
    I8,
    U64,
    U32,
    U16,
    U8,
    Bool,
    /// A type that safetensors defines and no SD1.5 file uses: its name, and its size in bits.
    Other(&'static str, u8),
}

/// Names as the format writes them.
const DTYPES: [(&str, DType); 23] = [
    ("F64", DType::F64),
    ("F32", DType::F32),
    ("F16", DType::F16),
    ("BF16", DType::Bf16),
    ("F8_E4M3", DType::F8E4M3),
    ("F8_E5M2", DType::F8E5M2),
    ("I64", DType::I64),
    ("I32", DType::I32),
    ("I16", DType::I16),
    ("I8", DType::I8),
    ("U64", DType::U64),
    ("U32", DType::U32),
    ("U16", DType::U16),
    ("U8", DType::U8),
    ("BOOL", DType::Bool),
    ("C64", DType::Other("C64", 64)),
    ("F8_E8M0", DType::Other("F8_E8M0", 8)),
    ("F8_E4M3FNUZ", DType::Other("F8_E4M3FNUZ", 8)),
    ("F8_E5M2FNUZ", DType::Other("F8_E5M2FNUZ", 8)),
    ("F6_E2M3", DType::Other("F6_E2M3", 6)),
    ("F6_E3M2", DType::Other("F6_E3M2", 6)),
    ("F4", DType::Other("F4", 4)),
    ("F4_E2M1", DType::Other("F4_E2M1", 4)),
];

impl DType {
    /// The type a header calls `name`.
    pub fn from_name(name: &str) -> Option<DType> {
        DTYPES.iter().find(|(known, _)| *known == name).map(|(_, dtype)| *dtype)
    }

    pub fn name(self) -> &'static str {
        DTYPES.iter().find(|(_, dtype)| *dtype == self).map_or("?", |(name, _)| name)
    }

    pub fn bits(self) -> u64 {
        match self {
            DType::F64 | DType::I64 | DType::U64 => 64,
            DType::F32 | DType::I32 | DType::U32 => 32,
            DType::F16 | DType::Bf16 | DType::I16 | DType::U16 => 16,
            DType::F8E4M3 | DType::F8E5M2 | DType::I8 | DType::U8 | DType::Bool => 8,
            DType::Other(_, bits) => u64::from(bits),
        }
    }

    /// Whether `convert` takes it.
    pub fn is_weight(self) -> bool {
        matches!(self, DType::F64 | DType::F32 | DType::F16 | DType::Bf16 | DType::F8E4M3 | DType::F8E5M2)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Values handled at once: fits the first-level cache in every type.
const BLOCK: usize = 2048;

/// Appends `src`, elements of `from`, to `out` as elements of `to`.
///
/// Returns false, with nothing appended, where `from` is no weight type or `to` is `Auto`. Bytes past the last whole
/// element are ignored.
pub fn convert(src: &[u8], from: DType, to: Precision, out: &mut Vec<u8>) -> bool {
    if !from.is_weight() || to == Precision::Auto {
        return false;
    }
    let size = (from.bits() / 8) as usize;
    let src = src.get(..src.len() / size * size).unwrap_or(src);
    out.reserve(src.len() / size * to.size());
    match (from, to) {
        (DType::F32, Precision::F32) | (DType::F16, Precision::F16) | (DType::Bf16, Precision::Bf16) => {
            out.extend_from_slice(src)
        }
        (DType::F64, Precision::F16) => {
            each(src, out, |b| f16::from_f32(round_to_odd(f64::from_le_bytes(b))).to_le_bytes())
        }
        (DType::F64, Precision::Bf16) => {
            each(src, out, |b| round_to_bf16(round_to_odd(f64::from_le_bytes(b))).to_le_bytes())
        }
        (DType::F64, _) => each(src, out, |b| (f64::from_le_bytes(b) as f32).to_le_bytes()),
        (DType::Bf16, Precision::F32) => {
            each(src, out, |b: [u8; 2]| (u32::from(u16::from_le_bytes(b)) << 16).to_le_bytes())
        }
        (DType::F8E4M3 | DType::F8E5M2, _) => {
            let table = f8_table(from);
            let mut wide = [0f32; BLOCK];
            for block in src.chunks(BLOCK) {
                for (value, byte) in wide.iter_mut().zip(block) {
                    *value = table.get(usize::from(*byte)).copied().unwrap_or(f32::NAN);
                }
                push(wide.get(..block.len()).unwrap_or(&wide), to, out);
            }
        }
        _ => {
            let mut wide = [0f32; BLOCK];
            for block in src.chunks(BLOCK * size) {
                let n = widen(block, from, &mut wide);
                push(wide.get(..n).unwrap_or(&wide), to, out);
            }
        }
    }
    true
}

/// Converts element by element, `N` bytes to `M`.
fn each<const N: usize, const M: usize>(src: &[u8], out: &mut Vec<u8>, f: impl Fn([u8; N]) -> [u8; M]) {
    let items = src.as_chunks::<N>().0;
    let start = out.len();
    out.resize(start + items.len() * M, 0);
    if let Some(fresh) = out.get_mut(start..) {
        fresh.as_chunks_mut::<M>().0.iter_mut().zip(items).for_each(|(target, item)| *target = f(*item));
    }
}

/// Up to `BLOCK` stored f32, f16 or bf16 as f32; returns how many.
fn widen(block: &[u8], from: DType, wide: &mut [f32; BLOCK]) -> usize {
    match from {
        DType::F32 => {
            let items = block.as_chunks::<4>().0;
            wide.iter_mut().zip(items).for_each(|(v, b)| *v = f32::from_le_bytes(*b));
            items.len()
        }
        DType::F16 => {
            let items = block.as_chunks::<2>().0;
            let mut narrow = [f16::ZERO; BLOCK];
            narrow.iter_mut().zip(items).for_each(|(v, b)| *v = f16::from_le_bytes(*b));
            let n = items.len().min(BLOCK);
            if let (Some(narrow), Some(wide)) = (narrow.get(..n), wide.get_mut(..n)) {
                narrow.convert_to_f32_slice(wide);
            }
            n
        }
        _ => {
            let items = block.as_chunks::<2>().0;
            wide.iter_mut().zip(items).for_each(|(v, b)| *v = f32::from_bits(u32::from(u16::from_le_bytes(*b)) << 16));
            items.len()
        }
    }
}

/// Appends f32 values as elements of `to` (`Auto` as f32, which `convert` never asks for).
pub(crate) fn push(values: &[f32], to: Precision, out: &mut Vec<u8>) {
    let start = out.len();
    // Sized first and then written in place: appending value by value does not vectorise.
    out.resize(start + values.len() * to.size(), 0);
    let Some(fresh) = out.get_mut(start..) else { return };
    match to {
        Precision::F16 => {
            let mut narrow = [f16::ZERO; BLOCK];
            for (block, target) in values.chunks(BLOCK).zip(fresh.chunks_mut(BLOCK * 2)) {
                if let Some(narrow) = narrow.get_mut(..block.len()) {
                    narrow.convert_from_f32_slice(block);
                    target.as_chunks_mut::<2>().0.iter_mut().zip(narrow).for_each(|(t, v)| *t = v.to_le_bytes());
                }
            }
        }
        Precision::Bf16 => {
            fresh.as_chunks_mut::<2>().0.iter_mut().zip(values).for_each(|(t, v)| *t = round_to_bf16(*v).to_le_bytes())
        }
        Precision::F32 | Precision::Auto => {
            fresh.as_chunks_mut::<4>().0.iter_mut().zip(values).for_each(|(t, v)| *t = v.to_le_bytes());
        }
    }
}

/// f32 to bf16 bits, to nearest, ties to even; a NaN stays one. Without branches, so that the loop vectorises.
fn round_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7FFF + ((bits >> 16) & 1)) >> 16;
    let nan = (bits >> 16) | 0x40;
    (if value.is_nan() { nan } else { rounded }) as u16
}

/// f64 to the f32 next to it whose last bit is odd, unless it is one exactly.
///
/// Rounding that further, to 16 bits, gives what rounding the f64 at once would: an f32 on a tie of the shorter type is
/// even, so it only comes out where the f64 lay on the tie itself. (`half`'s own conversion drops the low 32 bits.)
fn round_to_odd(value: f64) -> f32 {
    let near = value as f32;
    let back = f64::from(near);
    if back == value || !near.is_finite() {
        return near;
    }
    let toward_zero = near.to_bits() - u32::from(back.abs() > value.abs());
    f32::from_bits(toward_zero | 1)
}

/// All 256 values of an 8-bit float.
///
/// E4M3 ("fn"): bias 7, S.1111.111 is NaN, no infinities, largest 448. E5M2: bias 15, as IEEE. Source: the OCP 8-bit
/// floating point specification, revision 1.0.
fn f8_table(dtype: DType) -> [f32; 256] {
    let (mantissa_bits, bias) = if dtype == DType::F8E4M3 { (3u32, 7i32) } else { (2, 15) };
    let mut table = [0f32; 256];
    for (code, slot) in (0u32..).zip(table.iter_mut()) {
        let mantissa = code & ((1 << mantissa_bits) - 1);
        let exponent = ((code & 0x7F) >> mantissa_bits) as i32;
        let top = 0x7F >> mantissa_bits;
        let fraction = mantissa as f32 / (1 << mantissa_bits) as f32;
        let magnitude = match (exponent == top, dtype) {
            (true, DType::F8E5M2) if mantissa == 0 => f32::INFINITY,
            (true, DType::F8E5M2) => f32::NAN,
            (true, _) if mantissa == 7 => f32::NAN,
            _ if exponent == 0 => fraction * 2f32.powi(1 - bias),
            _ => (1.0 + fraction) * 2f32.powi(exponent - bias),
        };
        *slot = if code & 0x80 != 0 { -magnitude } else { magnitude };
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::bf16;

    fn to_f32(src: &[u8], from: DType) -> Vec<f32> {
        let mut out = Vec::new();
        assert!(convert(src, from, Precision::F32, &mut out));
        out.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
    }

    fn bits16(values: &[f32], to: Precision) -> Vec<u16> {
        let src: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut out = Vec::new();
        assert!(convert(&src, DType::F32, to, &mut out));
        out.as_chunks::<2>().0.iter().map(|b| u16::from_le_bytes(*b)).collect()
    }

    #[test]
    fn e4m3_has_its_published_values() {
        let codes = [0x00, 0x80, 0x01, 0x07, 0x08, 0x38, 0x39, 0xB8, 0x7E, 0xFE, 0x7F, 0xFF];
        let v = to_f32(&codes, DType::F8E4M3);
        let want = [0.0, -0.0, 0.001953125, 0.013671875, 0.015625, 1.0, 1.125, -1.0, 448.0, -448.0];
        assert_eq!(v.get(..10), Some(&want[..]));
        assert!(v[1].is_sign_negative() && v[10].is_nan() && v[11].is_nan());
    }

    #[test]
    fn e5m2_has_its_published_values() {
        let codes = [0x00, 0x01, 0x03, 0x04, 0x3C, 0x3D, 0xBC, 0x7B, 0xFB, 0x7C, 0xFC, 0x7D, 0x7F, 0xFE];
        let v = to_f32(&codes, DType::F8E5M2);
        let want = [0.0, 2f32.powi(-16), 3.0 * 2f32.powi(-16), 2f32.powi(-14), 1.0, 1.25, -1.0, 57344.0, -57344.0];
        assert_eq!(v.get(..9), Some(&want[..]));
        assert_eq!((v[9], v[10]), (f32::INFINITY, f32::NEG_INFINITY));
        assert!(v[11].is_nan() && v[12].is_nan() && v[13].is_nan());
    }

    #[test]
    fn f32_to_f16_rounds_ties_to_even_and_keeps_subnormals() {
        let ulp = 1.0 / 1024.0;
        let values = [1.0, 1.0 + ulp / 2.0, 1.0 + ulp * 1.5, 65504.0, 65519.0, 65520.0, 5.96e-8, 2.9e-8, -0.0];
        let want = [0x3C00, 0x3C00, 0x3C02, 0x7BFF, 0x7BFF, 0x7C00, 0x0001, 0x0000, 0x8000];
        assert_eq!(bits16(&values, Precision::F16), want);
        assert!(f16::from_bits(bits16(&[f32::NAN], Precision::F16)[0]).is_nan());
        assert_eq!(bits16(&[f32::NEG_INFINITY], Precision::F16), [0xFC00]);
    }

    #[test]
    fn f32_to_bf16_agrees_with_the_definition() {
        let values = [1.0, 1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0, f32::MAX, f32::INFINITY, -0.0, 1e-40];
        let want: Vec<u16> = values.iter().map(|v| bf16::from_f32(*v).to_bits()).collect();
        assert_eq!(bits16(&values, Precision::Bf16), want);
        assert_eq!(want.get(..4), Some(&[0x3F80, 0x3F80, 0x3F82, 0x7F80][..]));
        let nan = f32::from_bits(0x7F80_0001);
        assert!(bf16::from_bits(bits16(&[nan], Precision::Bf16)[0]).is_nan());
    }

    #[test]
    fn every_half_survives_the_way_through_f32() {
        for (dtype, precision) in [(DType::F16, Precision::F16), (DType::Bf16, Precision::Bf16)] {
            let all: Vec<u8> = (0..=u16::MAX).flat_map(|c| c.to_le_bytes()).collect();
            let wide = to_f32(&all, dtype);
            let back = bits16(&wide, precision);
            for (code, (wide, back)) in (0..=u16::MAX).zip(wide.iter().zip(&back)) {
                assert!(wide.is_nan() || code == *back, "{dtype} {code:04x} {back:04x}");
            }
            let mut same = Vec::new();
            assert!(convert(&all, dtype, precision, &mut same));
            assert_eq!(same, all);
        }
        // bf16 → f16 and back go through f32.
        let mut out = Vec::new();
        assert!(convert(&0x3FC0u16.to_le_bytes(), DType::Bf16, Precision::F16, &mut out));
        assert_eq!(out, 0x3E00u16.to_le_bytes());
        out.clear();
        assert!(convert(&0x3E00u16.to_le_bytes(), DType::F16, Precision::Bf16, &mut out));
        assert_eq!(out, 0x3FC0u16.to_le_bytes());
    }

    #[test]
    fn f64_is_rounded_once() {
        // Just above the tie between 1 and the next f16; through f32 it would fall back to the tie and then to 1.
        let value = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        let mut out = Vec::new();
        assert!(convert(&value.to_le_bytes(), DType::F64, Precision::F16, &mut out));
        assert_eq!(out, 0x3C01u16.to_le_bytes());
        let value = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
        out.clear();
        assert!(convert(&value.to_le_bytes(), DType::F64, Precision::Bf16, &mut out));
        assert_eq!(out, 0x3F81u16.to_le_bytes());
        // A little below a tie, on either side of zero; and what neither type can hold.
        for (value, code) in [(2f64.powi(-11) * 3.0 - 2f64.powi(-40), 0x3C01u16), (f64::MAX, 0x7C00), (1e-300, 0)] {
            for sign in [1.0, -1.0] {
                let value = if value < 1.0 && value > 1e-9 { 1.0 + value } else { value } * sign;
                out.clear();
                assert!(convert(&value.to_le_bytes(), DType::F64, Precision::F16, &mut out));
                assert_eq!(out, (code | if sign < 0.0 { 0x8000 } else { 0 }).to_le_bytes(), "{value}");
            }
        }
        assert_eq!(to_f32(&(-2.5f64).to_le_bytes(), DType::F64), [-2.5]);
    }

    #[test]
    fn long_runs_keep_their_order_and_length() {
        let values: Vec<f32> = (0..BLOCK * 2 + 17).map(|i| i as f32).collect();
        let src: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut half = Vec::new();
        assert!(convert(&src, DType::F32, Precision::Bf16, &mut half));
        let back = to_f32(&half, DType::Bf16);
        assert_eq!(back.len(), values.len());
        assert!(back.iter().zip(&values).all(|(a, b)| (a - b).abs() <= b / 256.0));
    }

    /// `cargo test --release -- --ignored --nocapture conversion_keeps_up`.
    #[test]
    #[ignore = "prints how fast a disk is kept up with"]
    fn conversion_keeps_up_with_a_disk() {
        let src = vec![0x3Cu8; 256 << 20];
        for (from, to) in [
            (DType::F16, Precision::F16),
            (DType::F32, Precision::F16),
            (DType::F32, Precision::Bf16),
            (DType::F16, Precision::F32),
            (DType::Bf16, Precision::F16),
            (DType::F8E4M3, Precision::F16),
        ] {
            let mut out = Vec::with_capacity(src.len() * 4);
            let start = std::time::Instant::now();
            assert!(convert(&src, from, to, &mut out));
            println!("{from} to {to:?}: {:.2} GB/s read", src.len() as f64 / 1e9 / start.elapsed().as_secs_f64());
        }
    }

    #[test]
    fn integers_and_an_undecided_precision_are_no_weights() {
        let mut out = Vec::new();
        assert!(!convert(&[1, 2, 3, 4], DType::I32, Precision::F32, &mut out));
        assert!(!convert(&[1, 2, 3, 4], DType::F32, Precision::Auto, &mut out));
        assert!(out.is_empty());
        for (name, dtype) in DTYPES {
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
            assert_eq!(dtype.to_string(), name);
        }
        assert_eq!(DType::from_name("F128"), None);
    }
}
