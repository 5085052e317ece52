//! Emphasis on the text encoder's output.

/// Multiplies each token's embedding by its weight, then rescales the chunk so that its mean is what it was before.
///
/// `z` is one chunk, `[tokens, width]`, rows one after another; a token without a weight keeps its embedding. The rescaling
/// is A1111's "original" emphasis. It is left out where a mean so near zero, or not finite, would only amplify rounding.
pub fn apply_weights(z: &mut [f32], weights: &[f32], width: usize) {
    if width == 0 || weights.iter().all(|&weight| weight == 1.0) {
        return;
    }
    let before = mean(z);
    for (token, &weight) in z.chunks_mut(width).zip(weights) {
        token.iter_mut().for_each(|value| *value *= weight);
    }
    let after = mean(z);
    let magnitude = z.iter().map(|value| f64::from(value.abs())).sum::<f64>() / z.len().max(1) as f64;
    let scale = (before / after) as f32;
    if scale.is_finite() && after.abs() > 1e-7 * magnitude {
        z.iter_mut().for_each(|value| *value *= scale);
    }
}

/// In f64, since the mean of an embedding is small beside its values.
fn mean(z: &[f32]) -> f64 {
    z.iter().map(|&value| f64::from(value)).sum::<f64>() / z.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_stays_and_the_tokens_proportions_change() {
        let mut z = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        apply_weights(&mut z, &[1.0, 2.0, 0.5], 2);
        // Weighted: 1 2 6 8 2.5 3, whose mean 3.75 goes back to 3.5.
        let scale = 3.5 / 3.75;
        let expected = [1.0, 2.0, 6.0, 8.0, 2.5, 3.0].map(|value: f32| value * scale);
        assert!(z.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{z:?}");
        assert!((mean(&z) - 3.5).abs() < 1e-6);
    }

    #[test]
    fn equal_weights_change_nothing() {
        let start: Vec<f32> = (0..12).map(|i| (i as f32).sin()).collect();
        let mut z = start.clone();
        apply_weights(&mut z, &[1.0; 4], 3);
        assert_eq!(z, start);
    }

    #[test]
    fn means_that_cannot_be_kept_leave_finite_values() {
        let mut zero = [1.0, -1.0, 2.0, -2.0];
        apply_weights(&mut zero, &[1.5, 0.5], 2);
        assert_eq!(zero, [1.5, -1.5, 1.0, -1.0]);
        let mut gone = [1.0, 2.0];
        apply_weights(&mut gone, &[0.0], 2);
        assert_eq!(gone, [0.0, 0.0]);
        let mut short = [1.0, 2.0, 3.0];
        apply_weights(&mut short, &[2.0, 1.0, 1.0, 1.0], 0);
        apply_weights(&mut short, &[], 2);
        apply_weights(&mut [], &[2.0], 2);
        assert_eq!(short, [1.0, 2.0, 3.0]);
        let mut broken = [f32::NAN, 1.0];
        apply_weights(&mut broken, &[2.0], 2);
        assert_eq!(broken[1], 2.0);
    }
}
