//! The amdgpu driver's files under /sys and /proc on Linux.

use super::{CardId, DeviceFigures, PciAddress, Source};
use crate::base::{Bytes, Reason};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A card with less of its own is an integrated one with a carve-out: what it works in is mostly the system memory that
/// the driver maps for it (GTT), so both count.
const CARVE_OUT: Bytes = Bytes::gib(2);

/// Figures of one AMD card. Field names are those of the kernel's documentation of amdgpu and of DRM's fdinfo.
#[derive(Debug)]
pub struct AmdgpuSource {
    /// `/sys/class/drm/cardN/device`.
    folder: PathBuf,
    fdinfo: PathBuf,
    pci: Option<PciAddress>,
}

impl AmdgpuSource {
    /// Finds the card under /sys.
    ///
    /// # Errors
    /// No such card, or not amdgpu's.
    pub fn open(card: &CardId) -> Result<Self, Reason> {
        Self::open_from(Path::new("/sys/class/drm"), Path::new("/proc/self/fdinfo"), card)
    }

    /// Like [`open`](Self::open), with other folders in place of `/sys/class/drm` and `/proc/self/fdinfo`.
    pub fn open_from(drm: &Path, fdinfo: &Path, card: &CardId) -> Result<Self, Reason> {
        let entries = fs::read_dir(drm).map_err(|error| Reason::io(drm, &error))?;
        let mut found: Vec<(PathBuf, Option<PciAddress>)> = entries
            .flatten()
            .filter(|entry| {
                // "card0", not its connectors "card0-DP-1".
                let name = entry.file_name();
                let number = name.to_str().and_then(|n| n.strip_prefix("card"));
                number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
            })
            .map(|entry| entry.path().join("device"))
            .filter(|folder| folder.join("mem_info_vram_total").exists())
            .map(|folder| {
                let pci = pci_of(&folder);
                (folder, pci)
            })
            .collect();
        let count = found.len();
        let chosen = match card.pci {
            Some(_) => found.into_iter().find(|(_, pci)| *pci == card.pci),
            // A UUID is NVIDIA's: a card known by it is not looked for here. Without any key, only a single card is
            // sure.
            None if card.uuid.is_none() && count == 1 && card.name.as_deref().is_none_or(is_amd_name) => found.pop(),
            None => None,
        };
        let (folder, pci) = chosen.ok_or(Reason::NoAmdgpuCard)?;
        Ok(AmdgpuSource { folder, fdinfo: fdinfo.to_owned(), pci })
    }

    fn figure(&self, name: &str) -> Result<Bytes, Reason> {
        let path = self.folder.join(name);
        let text = fs::read_to_string(&path).map_err(|error| Reason::io(&path, &error))?;
        text.trim().parse().map(Bytes).map_err(|_| Reason::NotANumber(path))
    }

    /// What our own open files on the card hold. Several files may share one client, which counts once.
    fn ours(&self, with_gtt: bool) -> Option<Bytes> {
        let mut clients: BTreeMap<String, Bytes> = BTreeMap::new();
        for entry in fs::read_dir(&self.fdinfo).ok()?.flatten() {
            let Ok(text) = fs::read_to_string(entry.path()) else { continue };
            let field = |key: &str| {
                text.lines().filter_map(|line| line.split_once(':')).find(|(k, _)| *k == key).map(|(_, v)| v.trim())
            };
            if field("drm-driver") != Some("amdgpu") {
                continue;
            }
            let place: Option<PciAddress> = field("drm-pdev").and_then(|text| text.parse().ok());
            if self.pci.is_some() && place.is_some() && place != self.pci {
                continue;
            }
            // "drm-memory-" is the older name of what is now "drm-resident-".
            let held = |region: &str| {
                field(&format!("drm-memory-{region}")).or_else(|| field(&format!("drm-resident-{region}"))).map(amount)
            };
            let vram = held("vram").unwrap_or_default();
            let gtt = if with_gtt { held("gtt").unwrap_or_default() } else { Bytes::ZERO };
            let client = field("drm-client-id").map_or_else(|| format!("file {:?}", entry.file_name()), str::to_owned);
            clients.insert(client, vram + gtt);
        }
        Some(clients.into_values().sum())
    }
}

impl Source for AmdgpuSource {
    fn read(&mut self) -> DeviceFigures {
        let mut figures = self.glance();
        if let Some(total) = figures.total {
            let with_gtt = self.figure("mem_info_vram_total").is_ok_and(|vram| vram < total);
            figures.ours = self.ours(with_gtt);
            if figures.ours.is_none() {
                figures.unknown_because.push(Reason::Unreadable(self.fdinfo.clone()));
            }
        }
        figures
    }

    fn glance(&mut self) -> DeviceFigures {
        let both = || Ok((self.figure("mem_info_vram_total")?, self.figure("mem_info_vram_used")?));
        let (mut total, mut used) = match both() {
            Ok(figures) => figures,
            Err::<_, Reason>(why) => return DeviceFigures::unknown(why),
        };
        if total < CARVE_OUT
            && let (Ok(more), Ok(more_used)) = (self.figure("mem_info_gtt_total"), self.figure("mem_info_gtt_used"))
        {
            total += more;
            used += more_used;
        }
        DeviceFigures {
            total: Some(total),
            free: Some(total - used),
            reserved: Some(Bytes::ZERO),
            ..DeviceFigures::default()
        }
    }
}

/// The card's place on the bus: from its `uevent`, else from where its folder really is.
fn pci_of(folder: &Path) -> Option<PciAddress> {
    let slot = fs::read_to_string(folder.join("uevent"))
        .ok()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("PCI_SLOT_NAME=")?.parse().ok()));
    slot.or_else(|| folder.canonicalize().ok()?.file_name()?.to_str()?.parse().ok())
}

fn is_amd_name(name: &str) -> bool {
    ["AMD", "Radeon"].iter().any(|word| name.contains(word))
}

/// "1234 KiB", "12 MiB", or bare bytes, as fdinfo writes them. What cannot be read holds nothing.
fn amount(text: &str) -> Bytes {
    let mut words = text.split_whitespace();
    let number: u64 = words.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let factor = match words.next() {
        Some("KiB") => 1 << 10,
        Some("MiB") => 1 << 20,
        _ => 1,
    };
    Bytes(number.saturating_mul(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with one discrete card, one integrated one and a card of another driver.
    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("drm/card0/device/uevent", "DRIVER=i915\nPCI_SLOT_NAME=0000:00:02.0\n");
        put("drm/card0-DP-1/status", "connected\n");
        put("drm/card1/device/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n");
        put("drm/card1/device/mem_info_vram_total", "17163091968\n");
        put("drm/card1/device/mem_info_vram_used", "1073741824\n");
        put("drm/card2/device/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:0c:00.0\n");
        put("drm/card2/device/mem_info_vram_total", "536870912\n");
        put("drm/card2/device/mem_info_vram_used", "268435456\n");
        put("drm/card2/device/mem_info_gtt_total", "8589934592\n");
        put("drm/card2/device/mem_info_gtt_used", "1073741824\n");
        let client = "drm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t2048 KiB\n";
        put("fdinfo/3", client);
        put("fdinfo/4", client);
        put("fdinfo/5", "drm-driver:\tamdgpu\ndrm-client-id:\t8\ndrm-pdev:\t0000:0c:00.0\ndrm-resident-gtt:\t3 MiB\n");
        put("fdinfo/6", "pos:\t0\nflags:\t02\n");
        root
    }

    fn source(root: &Path, pci: &str) -> Result<AmdgpuSource, Reason> {
        let card = CardId { pci: pci.parse().ok(), ..CardId::default() };
        AmdgpuSource::open_from(&root.join("drm"), &root.join("fdinfo"), &card)
    }

    #[test]
    fn a_discrete_card_counts_its_own_memory_and_each_client_once() {
        let root = tree();
        let figures = source(root.path(), "0000:03:00.0").unwrap().read();
        assert_eq!(figures.total, Some(Bytes(17_163_091_968)));
        assert_eq!(figures.used(), Some(Bytes::gib(1)));
        assert_eq!(figures.ours, Some(Bytes::mib(2)));
        assert_eq!(figures.unknown_because, Vec::new());
    }

    #[test]
    fn an_integrated_card_counts_what_it_borrows() {
        let root = tree();
        let figures = source(root.path(), "0000:0c:00.0").unwrap().read();
        assert_eq!(figures.total, Some(Bytes::mib(512) + Bytes::gib(8)));
        assert_eq!(figures.used(), Some(Bytes::mib(256) + Bytes::gib(1)));
        assert_eq!(figures.ours, Some(Bytes::mib(3)));
    }

    #[test]
    fn what_is_missing_or_broken_is_unknown_with_a_reason() {
        let root = tree();
        assert!(source(root.path(), "0000:00:02.0").is_err(), "not amdgpu's");
        assert!(source(root.path(), "not an address").is_err(), "two cards, no key");
        let mut found = source(root.path(), "0000:03:00.0").unwrap();
        fs::write(root.path().join("drm/card1/device/mem_info_vram_used"), "soon\n").unwrap();
        let figures = found.read();
        assert_eq!((figures.total, figures.ours), (None, None));
        let broken = root.path().join("drm/card1/device/mem_info_vram_used");
        assert_eq!(figures.unknown_because, [Reason::NotANumber(broken)]);
        fs::remove_dir_all(root.path().join("fdinfo")).unwrap();
        fs::write(root.path().join("drm/card1/device/mem_info_vram_used"), "0\n").unwrap();
        assert!(found.read().ours.is_none());
    }
}
