//! How strongly a series swings at each frequency.

use std::f64::consts::PI;

/// The power of a series at the frequencies 0, 1/n, 2/n … below 1/2, where n, a power of two, is
/// what zeros fill the series up to. Cooley and Tukey, 1965.
pub fn power(series: &[f64], n: usize) -> Vec<f64> {
    let mut re = vec![0.0; n];
    let bits = n.trailing_zeros();
    for (at, value) in series.iter().enumerate() {
        re[at.reverse_bits() >> (usize::BITS - bits)] = *value;
    }
    let mut im = vec![0.0; n];
    let turns: Vec<(f64, f64)> = (0..n / 2).map(|it| turn(it, n)).collect();
    let mut half = 1;
    while half < n {
        let stride = n / (2 * half);
        for start in (0..n).step_by(2 * half) {
            for at in 0..half {
                let (cos, sin) = turns[at * stride];
                let (low, high) = (start + at, start + at + half);
                let (x, y) = (
                    re[high] * cos - im[high] * sin,
                    re[high] * sin + im[high] * cos,
                );
                (re[high], im[high]) = (re[low] - x, im[low] - y);
                (re[low], im[low]) = (re[low] + x, im[low] + y);
            }
        }
        half *= 2;
    }
    re.iter()
        .zip(&im)
        .take(n / 2)
        .map(|(re, im)| re * re + im * im)
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn turn(step: usize, of: usize) -> (f64, f64) {
    let angle = -2.0 * PI * step as f64 / of as f64;
    (angle.cos(), angle.sin())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the sum that defines it.
    #[test]
    fn it_is_the_fourier_transform() {
        let series = [1.0, -2.0, 0.5, 3.0, 0.0];
        let fast = power(&series, 8);
        for (frequency, fast) in fast.iter().enumerate() {
            let (mut re, mut im) = (0.0, 0.0);
            for (at, value) in series.iter().enumerate() {
                let (cos, sin) = turn(frequency * at, 8);
                re += value * cos;
                im += value * sin;
            }
            assert!((fast - (re * re + im * im)).abs() < 1e-12);
        }
    }
}
