//! Every way in which a file can fail to be a sound safetensors file.

use super::*;
use crate::diffusion::weights::testfile::{Made, bytes, raw};
use std::sync::atomic::{AtomicU32, Ordering};

/// Writes `content` under a fresh name and opens it.
fn open(content: &[u8]) -> Result<Archive, WeightError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("softbox-archive-{}-{}.safetensors", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, content).unwrap();
    let archive = Archive::open(&path);
    std::fs::remove_file(&path).unwrap();
    archive
}

fn fault(content: &[u8]) -> WeightError {
    open(content).expect_err("the file does not hold")
}

macro_rules! assert_fault {
    ($content:expr, $pattern:pat $(if $guard:expr)?) => {
        let error = fault($content);
        assert!(matches!(error, $pattern $(if $guard)?), "{error:?}");
        assert!(error.to_string().contains("softbox-archive-"), "{error} names no file");
    };
}

#[test]
fn headers_that_do_not_hold() {
    assert_fault!(b"", WeightError::HeaderTooSmall { have: 0, .. });
    assert_fault!(&[1, 2, 3], WeightError::HeaderTooSmall { have: 3, .. });
    assert_fault!(&[0x3C, 0, 0, 0, 0, 0, 0, 0], WeightError::InvalidHeaderLength { have: 8, need: 68, .. });
    assert_fault!(&100_000_001u64.to_le_bytes(), WeightError::HeaderTooLarge { length: 100_000_001, .. });
    assert_fault!(&u64::MAX.to_le_bytes(), WeightError::HeaderTooLarge { .. });
    assert_fault!(&[1, 0, 0, 0, 0, 0, 0, 0, 0xFF], WeightError::HeaderUtf8 { .. });
    assert_fault!(&[1, 0, 0, 0, 0, 0, 0, 0, b'{'], WeightError::HeaderJson { .. });
    assert_fault!(&[0; 8], WeightError::HeaderJson { .. });
    assert_fault!(&raw("[1]", &[]), WeightError::HeaderJson { .. });
    assert_fault!(&raw(r#"{"__metadata__":{"a":1}}"#, &[]), WeightError::HeaderJson { .. });
}

#[test]
fn entries_that_do_not_hold() {
    let one = |entry: &str, data: &[u8]| raw(&format!("{{\"t\":{entry}}}"), data);
    for entry in [
        "1",
        r#"{"shape":[1],"data_offsets":[0,4]}"#,
        r#"{"dtype":"F33","shape":[1],"data_offsets":[0,4]}"#,
        r#"{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}"#,
        r#"{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}"#,
        r#"{"dtype":"F32","shape":[1],"data_offsets":[0]}"#,
        r#"{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}"#,
    ] {
        assert_fault!(&one(entry, &[0; 4]), WeightError::TensorEntry { ref tensor, .. } if tensor == "t");
    }
    let size = r#"{"dtype":"F32","shape":[2],"data_offsets":[0,4]}"#;
    assert_fault!(&one(size, &[0; 4]), WeightError::OffsetMismatch { need: 8, have: 4, .. });
    let backwards = r#"{"dtype":"F32","shape":[0],"data_offsets":[4,0]}"#;
    assert_fault!(&one(backwards, &[0; 4]), WeightError::OffsetMismatch { .. });
    let nibble = r#"{"dtype":"F4","shape":[3],"data_offsets":[0,2]}"#;
    assert_fault!(&one(nibble, &[0; 2]), WeightError::OffsetMismatch { .. });
    for shape in ["[4294967296,4294967296,2]", "[9223372036854775807,2]", "[4611686018427387904]"] {
        let entry = format!(r#"{{"dtype":"F32","shape":{shape},"data_offsets":[0,4]}}"#);
        assert_fault!(&one(&entry, &[0; 4]), WeightError::Overflow { ref tensor, .. } if tensor == "t");
    }
    let twice =
        r#"{"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
    assert_fault!(&raw(twice, &[0]), WeightError::Duplicate { .. });
}

#[test]
fn data_that_does_not_cover_the_file() {
    let two = |a: [u64; 2], b: [u64; 2]| {
        let entry =
            |o: [u64; 2]| format!(r#"{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}}"#, o[1] - o[0], o[0], o[1]);
        format!(r#"{{"a":{},"b":{}}}"#, entry(a), entry(b))
    };
    assert_fault!(&raw(&two([0, 4], [2, 6]), &[0; 6]), WeightError::Overlap { ref tensor, .. } if tensor == "b");
    assert_fault!(&raw(&two([0, 4], [6, 8]), &[0; 8]), WeightError::Gap { gap: 2, .. });
    assert_fault!(&raw(&two([0, 4], [4, 8]), &[0; 9]), WeightError::ExtraBytes { extra: 1, .. });
    let header = two([0, 4], [4, 8]);
    let whole = 8 + header.len() as u64 + 8;
    assert_fault!(&raw(&header, &[0; 7]), WeightError::Incomplete { ref tensor, have, need, .. }
        if tensor == "b" && have == whole - 1 && need == whole);
    assert_fault!(&raw(&header, &[]), WeightError::Incomplete { ref tensor, .. } if tensor == "a");
    assert_fault!(&raw("{}", &[0; 3]), WeightError::ExtraBytes { extra: 3, .. });
}

#[test]
fn odd_but_valid_files_open() {
    assert!(open(&raw("{}\r \t\n", &[])).unwrap().tensors().is_empty());
    let empty = open(&raw(r#"{"e":{"dtype":"F32","shape":[2,0],"data_offsets":[0,0]}}"#, &[])).unwrap();
    assert_eq!(empty.get("e").unwrap().shape, [2, 0]);
    let scalar = r#"{"__metadata__":{"k":"v"},"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}"#;
    let scalar = open(&raw(scalar, &1f32.to_le_bytes())).unwrap();
    assert_eq!(scalar.get("s").unwrap().elements(), 1);
    assert_eq!(scalar.metadata().get("k").unwrap(), "v");
    // A header of 640 bytes: its length field begins like a pickle.
    let header = format!("{{{}}}", " ".repeat(638));
    assert!(open(&raw(&header, &[])).unwrap().tensors().is_empty());
    // The crate that defines the format agrees on what is valid.
    let made = bytes(&[Made("x", DType::F16, &[2, 3], 1.0), Made("y", DType::F8E5M2, &[1], 1.0)]);
    assert_eq!(safetensors::SafeTensors::deserialize(&made).unwrap().len(), open(&made).unwrap().tensors().len());
}

#[test]
fn other_formats_are_told_by_name() {
    let lfs = b"version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 4265146304\n";
    for (content, format) in [
        (&lfs[..], ForeignFormat::GitLfsPointer { size: Some(4_265_146_304) }),
        (b"<!DOCTYPE html><html><body>Sign in</body></html>", ForeignFormat::Html),
        (b"\n\n  <html lang=en>", ForeignFormat::Html),
        (b"{\"error\":\"Invalid credentials\"}", ForeignFormat::Json),
        (b"PK\x03\x04\x00\x00\x08\x08\x00\x00\x00\x00archive/data.pkl", ForeignFormat::Zip),
        (b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.", ForeignFormat::Pickle),
        (b"\x80\x02}q\x00X\x05\x00\x00\x00", ForeignFormat::Pickle),
        (b"GGUF\x03\x00\x00\x00\x00\x00\x00\x00", ForeignFormat::Gguf),
        (b"\x89PNG\r\n\x1a\n0000", ForeignFormat::Picture),
        (b"<html>", ForeignFormat::Html),
    ] {
        match fault(content) {
            WeightError::Foreign { format: found, .. } => assert_eq!(found, format),
            other => panic!("{other:?}"),
        }
    }
    assert!(fault(lfs).to_string().contains("4265146304"));
}

#[test]
fn no_cut_and_no_flipped_byte_of_a_header_panics() {
    let made = bytes(&[
        Made("a.weight", DType::F32, &[3, 2], 1.0),
        Made("a.bias", DType::F16, &[3], 2.0),
        Made("b", DType::F8E4M3, &[5], 1.0),
    ]);
    assert!(open(&made).is_ok());
    for len in 0..made.len() {
        let error = fault(&made[..len]);
        let header = u64::from_le_bytes(made[..8].try_into().unwrap()) as usize + 8;
        let right = match &error {
            WeightError::HeaderTooSmall { .. } => len < 8,
            WeightError::InvalidHeaderLength { .. } => (8..header).contains(&len),
            WeightError::Incomplete { have, need, .. } => {
                len >= header && *have == len as u64 && *need == made.len() as u64
            }
            _ => false,
        };
        assert!(right, "{len}: {error:?}");
    }
    let header = u64::from_le_bytes(made[..8].try_into().unwrap()) as usize + 8;
    for at in 0..header {
        for flip in [0x01, 0x02, 0x10, 0x20, 0x80, 0xFF] {
            let mut broken = made.clone();
            broken[at] ^= flip;
            // What still opens must be readable to the last byte.
            if let Ok(archive) = open(&broken) {
                assert!(archive.tensors().values().all(|t| t.end <= made.len() as u64), "{at} {flip}");
            }
        }
    }
}

#[test]
fn tensors_are_read_and_converted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mixed.safetensors");
    let all = [DType::F64, DType::F32, DType::F16, DType::Bf16, DType::F8E4M3];
    let names: Vec<String> = all.iter().map(|d| d.to_string()).collect();
    // 0x38 is 1 in E4M3, which the maker writes for 8-bit types.
    let made: Vec<Made> = all.iter().zip(&names).map(|(d, n)| Made(n, *d, &[700_000], 1.0)).collect();
    std::fs::write(&path, bytes(&made)).unwrap();
    let archive = Archive::open(&path).unwrap();
    for name in &names {
        for (precision, one) in [
            (Precision::F32, &1f32.to_le_bytes()[..]),
            (Precision::F16, &0x3C00u16.to_le_bytes()),
            (Precision::Bf16, &0x3F80u16.to_le_bytes()),
        ] {
            let mut out = vec![7; 3];
            archive.read_as(name, precision, &mut out).unwrap();
            assert_eq!(out.len(), 700_000 * one.len());
            assert!(out.chunks(one.len()).all(|v| v == one), "{name} {precision:?}");
        }
    }
    assert_eq!(archive.read("F32").unwrap().len(), 2_800_000);
    let mut out = Vec::new();
    assert!(matches!(archive.read("nothing"), Err(WeightError::NoTensor { .. })));
    assert!(matches!(archive.read_as("F32", Precision::Auto, &mut out), Err(WeightError::PrecisionUndecided)));
}

#[test]
fn a_file_changed_during_a_run_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.safetensors");
    let content = bytes(&[Made("a", DType::F32, &[64], 1.0), Made("b", DType::I32, &[1], 1.0)]);
    let fresh = || {
        std::fs::write(&path, &content).unwrap();
        Archive::open(&path).unwrap()
    };
    let changed = |archive: &Archive, how: &str| {
        let error = archive.read("a").expect_err(how);
        assert!(matches!(error, WeightError::Changed { .. }), "{how}: {error:?}");
    };
    let archive = fresh();
    assert!(archive.read("a").is_ok());
    let mut out = Vec::new();
    assert!(matches!(archive.read_as("b", Precision::F32, &mut out), Err(WeightError::NotFloat { .. })));

    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(content.len() as u64 - 100).unwrap();
    changed(&archive, "cut short");

    let archive = fresh();
    let other = dir.path().join("other");
    std::fs::write(&other, &content).unwrap();
    let time = std::fs::metadata(&path).unwrap().modified().unwrap();
    std::fs::File::options().write(true).open(&other).unwrap().set_modified(time).unwrap();
    std::fs::rename(&other, &path).unwrap();
    #[cfg(unix)]
    changed(&archive, "replaced by a file of the same length and time");

    let archive = fresh();
    std::fs::remove_file(&path).unwrap();
    changed(&archive, "removed");

    // The same length and time, another header.
    let archive = fresh();
    let time = std::fs::metadata(&path).unwrap().modified().unwrap();
    let mut rewritten = content.clone();
    rewritten[9] = b' ';
    std::fs::write(&path, &rewritten).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    changed(&archive, "another header");
}

#[test]
fn folders_and_missing_files() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(Archive::open(dir.path()), Err(WeightError::Io { .. })));
    assert!(matches!(Archive::open(&dir.path().join("no")), Err(WeightError::NotFound { .. })));
}
