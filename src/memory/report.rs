//! The report of a clean-up.

use super::Part;
use crate::base::{Bytes, CleanReport, MemoryReading};

/// The report of a clean-up, from readings just before and just after it.
///
/// What was given back is told by the driver's count of this program where both readings have it, since others move in
/// the meantime; else by what became free on the device; else by our pools. What stays are the `kept` parts, and the
/// context, which lives as long as the program does.
pub fn clean_report(before: MemoryReading, after: MemoryReading, kept: &[(Part, Bytes)]) -> CleanReport {
    let fallen = |before: Option<Bytes>, after: Option<Bytes>| Some(before? - after?);
    let pools = |reading: &MemoryReading| Some(reading.ours_in_use? + reading.ours_pooled?);
    let freed = fallen(before.ours(), after.ours())
        .or_else(|| fallen(before.used(), after.used()))
        .or_else(|| fallen(pools(&before), pools(&after)));
    let context = after.ours_context.filter(|bytes| *bytes > Bytes::ZERO);
    let kept = kept
        .iter()
        .map(|(part, bytes)| (part.label().to_owned(), *bytes))
        .chain(context.map(|bytes| ("context".to_owned(), bytes)))
        .collect();
    CleanReport { before, after, kept, freed }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn reading(ours: Option<u64>, others: u64) -> MemoryReading {
        let ours = ours.map(Bytes::gib);
        MemoryReading {
            total: Some(Bytes::gib(24)),
            ours_in_use: ours,
            ours_pooled: ours.map(|_| Bytes::gib(1)),
            ours_context: ours.map(|_| Bytes::mib(300)),
            others: Some(Bytes::gib(others)),
            free: Some(Bytes::gib(24) - ours.unwrap_or(Bytes::gib(4)) - Bytes::gib(others)),
            ..MemoryReading::default()
        }
    }

    #[test]
    fn what_was_freed_is_ours_where_it_is_counted() {
        let kept = [(Part::Unet, Bytes::gib(2))];
        // Another program takes 3 GiB meanwhile: it does not count.
        let report = clean_report(reading(Some(6), 2), reading(Some(2), 5), &kept);
        assert_eq!(report.freed, Some(Bytes::gib(4)));
        assert_eq!(report.kept, [("UNet".to_owned(), Bytes::gib(2)), ("context".to_owned(), Bytes::mib(300))]);
        // Not counted by program: what became free on the device.
        assert_eq!(clean_report(reading(None, 5), reading(None, 4), &kept).freed, Some(Bytes::gib(1)));
        // Nothing known but our pools.
        let pools = |in_use, pooled| MemoryReading {
            ours_in_use: Some(Bytes::gib(in_use)),
            ours_pooled: Some(Bytes::gib(pooled)),
            ..MemoryReading::default()
        };
        assert_eq!(clean_report(pools(2, 1), pools(1, 0), &[]).freed, Some(Bytes::gib(2)));
        assert_eq!(clean_report(MemoryReading::default(), MemoryReading::default(), &[]), CleanReport::default());
    }
}
