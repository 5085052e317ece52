//! An amount of memory.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

/// A number of bytes. Prints in binary units with one decimal ("7.2 GiB"); subtraction stops at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    pub const ZERO: Bytes = Bytes(0);

    pub const fn mib(n: u64) -> Self {
        Bytes(n << 20)
    }

    pub const fn gib(n: u64) -> Self {
        Bytes(n << 30)
    }

    pub fn as_mib(self) -> f64 {
        self.0 as f64 / (1u64 << 20) as f64
    }

    pub fn as_gib(self) -> f64 {
        self.0 as f64 / (1u64 << 30) as f64
    }

    /// `self / whole`, and 0 where the whole is nothing.
    pub fn share_of(self, whole: Bytes) -> f64 {
        if whole.0 == 0 { 0.0 } else { self.0 as f64 / whole.0 as f64 }
    }

    /// `share × self`, for shares between 0 and 1.
    pub fn portion(self, share: f64) -> Bytes {
        Bytes((self.0 as f64 * share).max(0.0) as u64)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const STEPS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        for (unit, size) in STEPS {
            // Switching a little early keeps "1024.0 MiB" from ever being shown.
            if self.0 as f64 >= size as f64 * 0.9995 {
                let n = self.0 as f64 / size as f64;
                return if n >= 100.0 { write!(f, "{n:.0} {unit}") } else { write!(f, "{n:.1} {unit}") };
            }
        }
        write!(f, "{} B", self.0)
    }
}

/// Why a text is not an amount of memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not an amount of memory; write it like 4GiB, 3500MiB or 4G")]
pub struct ParseBytesError(pub String);

impl FromStr for Bytes {
    type Err = ParseBytesError;

    /// Reads "4GiB", "4 GB", "3.5g", "512M", or a bare number of bytes. All units are binary, as drivers count.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseBytesError(text.to_owned());
        let trimmed = text.trim().to_ascii_lowercase();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let factor = match unit.trim() {
            "" | "b" => 1u64,
            "k" | "kb" | "kib" => 1 << 10,
            "m" | "mb" | "mib" => 1 << 20,
            "g" | "gb" | "gib" => 1 << 30,
            "t" | "tb" | "tib" => 1 << 40,
            _ => return Err(wrong()),
        };
        let bytes = number * factor as f64;
        if bytes.is_finite() && bytes < u64::MAX as f64 { Ok(Bytes(bytes.round() as u64)) } else { Err(wrong()) }
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        iter.fold(Bytes::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_a_person_would_write_it() {
        for (n, text) in
            [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 << 30, "3.0 GiB"), ((1 << 30) - 1, "1.0 GiB")]
        {
            assert_eq!(Bytes(n).to_string(), text);
        }
        assert_eq!(Bytes::gib(139).to_string(), "139 GiB");
    }

    #[test]
    fn reads_what_people_type_and_refuses_the_rest() {
        for (text, n) in [("4GiB", 4 << 30), (" 4 gb ", 4 << 30), ("512M", 512 << 20), ("1.5k", 1536), ("77", 77)] {
            assert_eq!(text.parse(), Ok(Bytes(n)), "{text}");
        }
        for text in ["", "GiB", "4 parsecs", "-1", "1e400g", "1.2.3"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }
}
