//! Philox4x32-10, the counter-based generator of Salmon et al. 2011 ("Parallel random numbers: as easy as 1, 2, 3"), laid
//! out as torch's CUDA `randn` and, after it, A1111's default noise: the seed is the key, the number of the call is the low
//! word of the counter, the place in the tensor is its third word, and two of the four words make one normal number.

const ROUNDS: u32 = 10;
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// What the key grows by each round: the golden ratio and √3 − 1 as 32-bit fractions.
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// 2⁻³² and 2π × 2⁻³², rounded to f32 as CUDA's Box-Muller has them.
const TO_UNIT: f32 = 2.328_306_4e-10;
const TO_ANGLE: f32 = 1.462_918_1e-9;

#[derive(Clone, Debug)]
pub(super) struct Philox {
    key: [u32; 2],
    /// How many calls came before.
    call: u32,
}

impl Philox {
    pub(super) fn new(seed: u64) -> Self {
        Philox { key: [seed as u32, (seed >> 32) as u32], call: 0 }
    }

    pub(super) fn fill(&mut self, out: &mut [f32]) {
        for (place, value) in out.iter_mut().enumerate() {
            let [a, b, ..] = block([self.call, 0, place as u32, 0], self.key);
            *value = box_muller(a, b);
        }
        self.call = self.call.wrapping_add(1);
    }
}

fn block(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..ROUNDS {
        if round > 0 {
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        let low = u64::from(counter[0]) * u64::from(MULTIPLIERS[0]);
        let high = u64::from(counter[2]) * u64::from(MULTIPLIERS[1]);
        counter = [
            (high >> 32) as u32 ^ counter[1] ^ key[0],
            high as u32,
            (low >> 32) as u32 ^ counter[3] ^ key[1],
            low as u32,
        ];
    }
    counter
}

/// The sine half of Box-Muller. Half a unit is added before the logarithm, so that it never sees 0.
fn box_muller(a: u32, b: u32) -> f32 {
    let (to_unit, to_angle) = (f64::from(TO_UNIT), f64::from(TO_ANGLE));
    let radius = (-2.0 * (f64::from(a) * to_unit + to_unit / 2.0).ln()).sqrt();
    let angle = f64::from(b) * to_angle + to_angle / 2.0;
    (radius * angle.sin()) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers published with the Random123 library.
    #[test]
    fn known_answers() {
        assert_eq!(block([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(block([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    }

    #[test]
    fn the_ends_of_the_range_stay_finite() {
        for a in [0, 1, u32::MAX] {
            for b in [0, u32::MAX] {
                assert!(box_muller(a, b).is_finite());
            }
        }
    }

    #[test]
    fn the_high_half_of_the_seed_counts() {
        let (mut a, mut b) = ([0.0; 4], [0.0; 4]);
        Philox::new(5).fill(&mut a);
        Philox::new(5 | 1 << 40).fill(&mut b);
        assert_ne!(a, b);
    }
}
