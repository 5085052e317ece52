//! Pictures as files in memory: PNG, JPEG and WebP with the `parameters` text inside, and that text read back.
//!
//! PNG holds it in a text chunk. JPEG and WebP hold it in EXIF's UserComment, the way A1111-family tools write and read
//! it: "UNICODE", a zero, and UTF-16 in big-endian order. Called by `save`, and by whoever opens a picture.

use crate::base::{ImageFormat, Reason, RgbImage};
use image::codecs::jpeg::JpegEncoder;
use image::codecs::webp::WebPEncoder;
use image::{ExtendedColorType, ImageDecoder, ImageEncoder, ImageReader};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek};
use std::path::Path;

/// The PNG keyword that the tools agree on.
const KEYWORD: &str = "parameters";
/// At this quality JPEG's losses are not seen at the size they are made.
const JPEG_QUALITY: u8 = 95;
/// What an APP1 segment holds at most (65,535 bytes with its length and "Exif\0\0"), less the [`exif`] around the text,
/// in UTF-16 units.
const JPEG_UNITS: usize = (65_535 - 2 - 6 - EXIF_HEAD - UNICODE.len()) / 2;

/// The longest text that is unpacked: few bytes of a picture can stand for gigabytes of text.
const LONGEST_TEXT: usize = 4 << 20;

/// EXIF's names for what is written here: its own directory, the comment, the type of bytes without a type.
const EXIF_IFD: u16 = 0x8769;
const USER_COMMENT: u16 = 0x9286;
const LONG: u16 = 4;
const UNDEFINED: u16 = 7;
const UNICODE: &[u8; 8] = b"UNICODE\0";
const ASCII: &[u8; 8] = b"ASCII\0\0\0";
/// Bytes before the comment: header, and two directories of one entry each.
const EXIF_HEAD: usize = 8 + 18 + 18;

/// Why a picture could not be made a file.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EncodeError(String);

/// Why a file's settings could not be read. That it has none is no error.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("not a PNG, JPEG or WebP picture")]
    NotAPicture,
    #[error("the picture is damaged: {0}")]
    Damaged(String),
}

impl ReadError {
    /// The same for a person.
    pub fn reason(&self, file: &Path) -> Reason {
        match self {
            ReadError::Io(error) => Reason::io(file, error),
            ReadError::NotAPicture => Reason::NotAPicture,
            ReadError::Damaged(told) => Reason::PictureDamaged(told.clone()),
        }
    }
}

/// The whole file of a picture with its settings.
pub fn encode(image: &RgbImage, parameters: &str, format: ImageFormat) -> Result<Vec<u8>, EncodeError> {
    // No format holds a zero within a text, and none is lost by dropping it.
    let text = parameters.replace('\0', "");
    match format {
        ImageFormat::Png => png(image, text).map_err(|error| EncodeError(error.to_string())),
        ImageFormat::Jpeg => {
            let mut file = Vec::new();
            let encoder = JpegEncoder::new_with_quality(&mut file, JPEG_QUALITY);
            with_exif(encoder, image, &fitting(&text, JPEG_UNITS)).map(|()| file)
        }
        ImageFormat::Webp => {
            let mut file = Vec::new();
            with_exif(WebPEncoder::new_lossless(&mut file), image, &text).map(|()| file)
        }
    }
}

fn png(image: &RgbImage, text: String) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, image.width() as u32, image.height() as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    if !text.is_empty() {
        // tEXt is Latin-1, by its definition; whatever is not goes to iTXt, which is UTF-8.
        if text.chars().all(|c| u32::from(c) < 256) {
            encoder.add_text_chunk(KEYWORD.to_owned(), text)?;
        } else {
            encoder.add_itxt_chunk(KEYWORD.to_owned(), text)?;
        }
    }
    let mut writer = encoder.write_header()?;
    writer.write_image_data(image.pixels())?;
    writer.finish()?;
    Ok(file)
}

fn with_exif(mut encoder: impl ImageEncoder, image: &RgbImage, text: &str) -> Result<(), EncodeError> {
    if !text.is_empty() {
        encoder.set_exif_metadata(exif(text)).map_err(|error| EncodeError(error.to_string()))?;
    }
    let (width, height) = (image.width() as u32, image.height() as u32);
    let written = encoder.write_image(image.pixels(), width, height, ExtendedColorType::Rgb8);
    written.map_err(|error| EncodeError(error.to_string()))
}

/// A text that fits in so many UTF-16 units. What is over goes from the end of the prompts, not from the settings in the
/// last line.
fn fitting(text: &str, units: usize) -> Cow<'_, str> {
    let length = |text: &str| text.encode_utf16().count();
    if length(text) <= units {
        return Cow::Borrowed(text);
    }
    let (prompts, settings) = match text.rsplit_once('\n') {
        Some((prompts, settings)) if length(settings) < units / 2 => (prompts, settings),
        _ => (text, ""),
    };
    let mut left = units - length(settings) - 1;
    let kept = prompts.chars().take_while(|c| {
        let fits = c.len_utf16() <= left;
        left -= if fits { c.len_utf16() } else { left };
        fits
    });
    tracing::warn!("the prompts are too long for a JPEG's comment and were cut there");
    Cow::Owned(format!("{}\n{settings}", kept.collect::<String>()))
}

/// A TIFF block in big-endian order with one entry: the comment in EXIF's own directory.
fn exif(text: &str) -> Vec<u8> {
    let comment: Vec<u8> =
        UNICODE.iter().copied().chain(text.encode_utf16().flat_map(|unit| unit.to_be_bytes())).collect();
    let mut block = Vec::with_capacity(EXIF_HEAD + comment.len());
    block.extend_from_slice(b"MM\0\x2A");
    block.extend_from_slice(&8u32.to_be_bytes());
    let mut directory = |tag: u16, kind: u16, count: u32, value: u32| {
        block.extend_from_slice(&1u16.to_be_bytes());
        block.extend_from_slice(&tag.to_be_bytes());
        block.extend_from_slice(&kind.to_be_bytes());
        block.extend_from_slice(&count.to_be_bytes());
        block.extend_from_slice(&value.to_be_bytes());
        // No directory follows.
        block.extend_from_slice(&0u32.to_be_bytes());
    };
    directory(EXIF_IFD, LONG, 1, 26);
    directory(USER_COMMENT, UNDEFINED, u32::try_from(comment.len()).unwrap_or(u32::MAX), EXIF_HEAD as u32);
    block.extend_from_slice(&comment);
    block
}

/// The `parameters` text of a picture, told by content, whatever the file's ending. `None` if it carries none.
pub fn read_parameters(path: &Path) -> Result<Option<String>, ReadError> {
    // A pipe would keep its reader waiting for ever.
    if !std::fs::metadata(path)?.is_file() {
        return Err(ReadError::NotAPicture);
    }
    let mut file = BufReader::new(File::open(path)?);
    let start = file.fill_buf()?;
    let is_png = start.starts_with(b"\x89PNG\r\n\x1a\n");
    let is_exif = start.starts_with(b"\xFF\xD8") || (start.starts_with(b"RIFF") && start.get(8..12) == Some(b"WEBP"));
    match (is_png, is_exif) {
        (true, _) => from_png(file),
        (_, true) => from_exif(file),
        _ => Err(ReadError::NotAPicture),
    }
}

fn from_png<R: BufRead + Seek>(file: R) -> Result<Option<String>, ReadError> {
    let damaged = |error: png::DecodingError| ReadError::Damaged(error.to_string());
    let mut reader = png::Decoder::new(file).read_info().map_err(damaged)?;
    if let Some(text) = png_text(reader.info()) {
        return Ok(Some(text));
    }
    // Some tools write it behind the pixels.
    reader.finish().map_err(damaged)?;
    Ok(png_text(reader.info()))
}

fn png_text(info: &png::Info) -> Option<String> {
    let unpacked_wide = |chunk: &png::text_metadata::ITXtChunk| {
        let mut chunk = chunk.clone();
        chunk.decompress_text_with_limit(LONGEST_TEXT).ok()?;
        chunk.get_text().ok()
    };
    let unpacked_latin = |chunk: &png::text_metadata::ZTXtChunk| {
        let mut chunk = chunk.clone();
        chunk.decompress_text_with_limit(LONGEST_TEXT).ok()?;
        chunk.get_text().ok()
    };
    let wide = info.utf8_text.iter().filter(|chunk| chunk.keyword == KEYWORD).find_map(unpacked_wide);
    let latin = || {
        let plain = info.uncompressed_latin1_text.iter().find(|chunk| chunk.keyword == KEYWORD);
        let packed = || info.compressed_latin1_text.iter().find(|chunk| chunk.keyword == KEYWORD);
        plain.map(|chunk| chunk.text.clone()).or_else(|| packed().and_then(unpacked_latin))
    };
    wide.or_else(latin)
}

fn from_exif<R: BufRead + Seek>(file: R) -> Result<Option<String>, ReadError> {
    let damaged = |error: image::ImageError| ReadError::Damaged(error.to_string());
    let reader = ImageReader::new(file).with_guessed_format()?;
    let block = reader.into_decoder().and_then(|mut decoder| decoder.exif_metadata()).map_err(damaged)?;
    Ok(block.as_deref().and_then(user_comment))
}

/// The comment in a TIFF block of either byte order, with or without "Exif\0\0" before it.
fn user_comment(block: &[u8]) -> Option<String> {
    let block = block.strip_prefix(b"Exif\0\0").unwrap_or(block);
    let big = match block.get(..4)? {
        b"MM\0\x2A" => true,
        b"II\x2A\0" => false,
        _ => return None,
    };
    let long = |at: usize| -> Option<usize> {
        let bytes: [u8; 4] = block.get(at..at.checked_add(4)?)?.try_into().ok()?;
        let value = if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
        usize::try_from(value).ok()
    };
    let short = |at: usize| -> Option<u16> {
        let bytes: [u8; 2] = block.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    };
    let entry = |directory: usize, tag: u16| -> Option<usize> {
        let count = usize::from(short(directory)?);
        let at = |index: usize| directory.checked_add(2 + 12 * index);
        (0..count).map_while(at).find(|&at| short(at) == Some(tag))
    };
    let directory = long(entry(long(4)?, EXIF_IFD)? + 8)?;
    let comment = entry(directory, USER_COMMENT)?;
    let (length, offset) = (long(comment + 4)?, long(comment + 8)?);
    let bytes = block.get(offset..offset.checked_add(length)?)?;
    let text = if let Some(wide) = bytes.strip_prefix(UNICODE) {
        utf16(wide)
    } else {
        let plain = bytes.strip_prefix(ASCII).or_else(|| bytes.strip_prefix(&[0; 8])).unwrap_or(bytes);
        String::from_utf8_lossy(plain).into_owned()
    };
    let text = text.trim_end_matches('\0').to_owned();
    (!text.is_empty()).then_some(text)
}

/// UTF-16 in the order that its plain letters tell: EXIF does not say it, and tools differ.
fn utf16(bytes: &[u8]) -> String {
    let pairs: Vec<[u8; 2]> = bytes.as_chunks().0.to_vec();
    let big = pairs.iter().filter(|pair| pair[0] == 0).count() >= pairs.iter().filter(|pair| pair[1] == 0).count();
    let units = pairs.iter().map(|&pair| if big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) });
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a (cat:1.2), \"quoted\"\nNegative prompt: blurry\nSteps: 25, Sampler: DPM++ 2M, CFG scale: 7";

    fn picture() -> RgbImage {
        RgbImage::new(16, 8, (0..16 * 8 * 3).map(|n| (n * 5 % 256) as u8).collect()).unwrap()
    }

    fn round_trip(text: &str, format: ImageFormat) -> (Vec<u8>, Option<String>) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("anything.bin");
        let bytes = encode(&picture(), text, format).unwrap();
        std::fs::write(&file, &bytes).unwrap();
        (bytes, read_parameters(&file).unwrap())
    }

    #[test]
    fn settings_come_back_from_every_format() {
        let texts = [TEXT.to_owned(), "café ½ ÿ".to_owned(), format!("一只猫 🙂\n{TEXT}"), "x".repeat(20_000)];
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Webp] {
            for text in &texts {
                assert_eq!(round_trip(text, format).1.as_deref(), Some(text.as_str()), "{format:?}");
            }
            assert_eq!(round_trip("", format).1, None, "{format:?}");
        }
    }

    #[test]
    fn png_takes_text_for_latin_and_itxt_for_the_rest() {
        let has = |bytes: &[u8], kind: &[u8]| bytes.windows(4).any(|window| window == kind);
        let latin = round_trip("café, a\nb", ImageFormat::Png).0;
        assert!(has(&latin, b"tEXt") && !has(&latin, b"iTXt"));
        assert!(latin.windows(4).any(|window| window == b"caf\xE9"), "Latin-1, not UTF-8");
        let wide = round_trip("中文", ImageFormat::Png).0;
        assert!(has(&wide, b"iTXt") && !has(&wide, b"tEXt"));
        assert!(wide.windows(6).any(|window| window == "中文".as_bytes()), "uncompressed");
    }

    #[test]
    fn lossless_formats_keep_every_pixel() {
        for format in [ImageFormat::Png, ImageFormat::Webp] {
            let bytes = encode(&picture(), TEXT, format).unwrap();
            assert_eq!(image::load_from_memory(&bytes).unwrap().to_rgb8().as_raw(), picture().pixels(), "{format:?}");
        }
    }

    #[test]
    fn a_prompt_longer_than_a_jpeg_segment_loses_words_but_neither_picture_nor_settings() {
        let text = format!("{}\nSteps: 25, Seed: 1", "中🙂 ".repeat(20_000));
        let read = round_trip(&text, ImageFormat::Jpeg).1.unwrap();
        assert!(read.starts_with("中🙂 中🙂") && read.ends_with("\nSteps: 25, Seed: 1"));
        assert!(read.encode_utf16().count() > JPEG_UNITS - 4);
        assert_eq!(round_trip(&text, ImageFormat::Webp).1.as_deref(), Some(text.as_str()));
    }

    #[test]
    fn comments_of_other_tools_are_read_and_broken_blocks_are_none() {
        let little = |comment: &[u8]| {
            let mut block =
                b"II\x2A\0\x08\0\0\0\x01\0\x69\x87\x04\0\x01\0\0\0\x1A\0\0\0\0\0\0\0\x01\0\x86\x92\x07\0".to_vec();
            block.extend_from_slice(&(comment.len() as u32).to_le_bytes());
            block.extend_from_slice(&[44, 0, 0, 0, 0, 0, 0, 0]);
            block.extend_from_slice(comment);
            block
        };
        let wide: Vec<u8> = "cat 猫".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(user_comment(&little(&[UNICODE.as_slice(), &wide].concat())).as_deref(), Some("cat 猫"));
        assert_eq!(user_comment(&little(b"ASCII\0\0\0cat\0")).as_deref(), Some("cat"));
        let whole = exif(TEXT);
        for length in 0..whole.len() {
            assert_eq!(user_comment(&whole[..length]), None, "{length}");
        }
        let mut far = whole.clone();
        far[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(user_comment(&far), None);
    }

    #[test]
    fn other_files_are_named_not_decoded() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.png");
        std::fs::write(&file, "hello").unwrap();
        assert!(matches!(read_parameters(&file), Err(ReadError::NotAPicture)));
        std::fs::write(&file, b"\x89PNG\r\n\x1a\nrubbish").unwrap();
        assert!(matches!(read_parameters(&file), Err(ReadError::Damaged(_))));
        std::fs::write(&file, "").unwrap();
        assert!(matches!(read_parameters(&file), Err(ReadError::NotAPicture)));
        assert!(matches!(read_parameters(&dir.path().join("none.png")), Err(ReadError::Io(_))));
    }
}
