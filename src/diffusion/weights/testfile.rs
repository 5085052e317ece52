//! Builds small safetensors files for the tests of this folder.

use super::convert::DType;
use std::path::Path;

/// One tensor of a made file: name, type, shape, and the value repeated in it.
pub(crate) struct Made<'a>(pub &'a str, pub DType, pub &'a [usize], pub f32);

/// The bytes of a sound safetensors file.
pub(crate) fn bytes(tensors: &[Made]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut data: Vec<u8> = Vec::new();
    for Made(name, dtype, shape, value) in tensors {
        let n: usize = shape.iter().product();
        let begin = data.len();
        for _ in 0..n {
            match dtype {
                DType::F64 => data.extend(f64::from(*value).to_le_bytes()),
                DType::F32 => data.extend(value.to_le_bytes()),
                DType::F16 => data.extend(half::f16::from_f32(*value).to_le_bytes()),
                DType::Bf16 => data.extend(half::bf16::from_f32(*value).to_le_bytes()),
                other => data.extend(std::iter::repeat_n(0x38u8, (other.bits() / 8) as usize)),
            }
        }
        let entry = serde_json::json!({"dtype": dtype.name(), "shape": shape, "data_offsets": [begin, data.len()]});
        header.insert((*name).to_owned(), entry);
    }
    raw(&serde_json::Value::Object(header).to_string(), &data)
}

/// Length field, header and data, as given.
pub(crate) fn raw(header: &str, data: &[u8]) -> Vec<u8> {
    let mut out = (header.len() as u64).to_le_bytes().to_vec();
    out.extend(header.as_bytes());
    out.extend(data);
    out
}

/// Writes a file of tensors with these names and shapes, all of one type.
pub(crate) fn write(path: &Path, dtype: DType, tensors: &[(String, Vec<usize>)]) {
    let made: Vec<Made> = tensors.iter().map(|(name, shape)| Made(name, dtype, shape, 0.5)).collect();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes(&made)).unwrap();
}

/// Writes a header with the given entries over a hole of the right length: full-size files without their bytes.
pub(crate) fn write_sparse(path: &Path, dtype: DType, tensors: &[(String, Vec<usize>)]) {
    let mut header = serde_json::Map::new();
    let mut end = 0u64;
    for (name, shape) in tensors {
        let begin = end;
        end += shape.iter().map(|d| *d as u64).product::<u64>() * dtype.bits() / 8;
        let entry = serde_json::json!({"dtype": dtype.name(), "shape": shape, "data_offsets": [begin, end]});
        header.insert(name.clone(), entry);
    }
    let head = raw(&serde_json::Value::Object(header).to_string(), &[]);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, &head).unwrap();
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(head.len() as u64 + end).unwrap();
}
