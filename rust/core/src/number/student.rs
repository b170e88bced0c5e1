//! Quantiles of Student's t by inverting its distribution function:
//!
//!     P(T ≤ x) = 1 − I_{ν/(ν+x²)}(ν/2, 1/2) / 2   for x ≥ 0.
//!
//! The regularised incomplete beta function I is computed by its continued fraction (Abramowitz & Stegun 26.5.8), and x
//! by bisection on P(T > x), which needs no derivative and cannot diverge.

/// Returns the p-quantile of Student's t with ν degrees of freedom, 0 < p < 1, to 1e-12 for ν up to 10^5.
pub fn quantile(p: f64, df: f64) -> f64 {
    if p == 0.5 {
        return 0.0;
    }
    if p < 0.5 {
        return -quantile(1.0 - p, df).abs();
    }
    let tail = 1.0 - p;
    let (mut low, mut high) = (0.0, 1.0);
    while upper_tail(high, df) > tail {
        (low, high) = (high, 2.0 * high);
    }
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if upper_tail(middle, df) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// Returns P(T > x) for x > 0.
fn upper_tail(x: f64, df: f64) -> f64 {
    let (a, b, square) = (0.5 * df, 0.5, x * x);
    let (near, far) = (df / (df + square), square / (df + square));
    // This is x^a y^b / B(a, b). The logarithm of a number near 1 is taken from its small difference to 1.
    let front = (-a * (square / df).ln_1p() - b * (df / square).ln_1p() - ln_beta(a, b)).exp();
    // Of the two complementary fractions, the one that converges fast is taken.
    if near <= (a + 1.0) / (a + b + 2.0) {
        0.5 * front / a * continued_fraction(a, b, near)
    } else {
        0.5 - 0.5 * front / b * continued_fraction(b, a, far)
    }
}

/// Returns the continued fraction of I_x(a, b) by Lentz's method.
fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let guard = |z: f64| if z.abs() < TINY { TINY } else { z };
    let (mut c, mut d) = (1.0, 1.0 / guard(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..10_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for coefficient in [even, odd] {
            d = 1.0 / guard(1.0 + coefficient * d);
            c = guard(1.0 + coefficient / c);
            change = d * c;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-16 {
            break;
        }
    }
    fraction
}

fn ln_beta(a: f64, b: f64) -> f64 {
    // For a large argument lnΓ(a) − lnΓ(a+b) loses digits as a difference, so the asymptotic series of the difference
    // is used.
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    if large > 1e3 && small == 0.5 {
        // Γ(z)/Γ(z+½) ~ z^{-½} (1 + 1/(8z) + 1/(128z²) − 5/(1024z³) − 21/(32768z⁴) + …)
        let z = 1.0 / large;
        let series = 1.0 + z * (0.125 + z * (1.0 / 128.0 - z * (5.0 / 1024.0 + z * 21.0 / 32768.0)));
        return 0.5 * std::f64::consts::PI.ln() - 0.5 * large.ln() + series.ln();
    }
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// Returns ln Γ(z) for z > 0 by Stirling's series, after shifting z above 15.
fn ln_gamma(z: f64) -> f64 {
    let (mut shift, mut z) = (1.0, z);
    while z < 15.0 {
        shift *= z;
        z += 1.0;
    }
    let w = 1.0 / (z * z);
    let series = (1.0 / 12.0
        - w * (1.0 / 360.0 - w * (1.0 / 1260.0 - w * (1.0 / 1680.0 - w * (1.0 / 1188.0 - w * 691.0 / 360_360.0)))))
        / z;
    (z - 0.5) * z.ln() - z + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - shift.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns P(|T| < t) for whole ν, a finite sum: Abramowitz & Stegun 26.7.3 and 26.7.4.
    fn within(t: f64, nu: u32) -> f64 {
        let theta = (t / f64::from(nu).sqrt()).atan();
        let (sin, cos) = theta.sin_cos();
        let odd = nu % 2 == 1;
        // cos + (2/3) cos³ + (2·4)/(3·5) cos⁵ + …, or 1 + (1/2) cos² + (1·3)/(2·4) cos⁴ + …, up to cos^(ν−2)
        let (mut term, mut sum, mut power) = if odd { (cos, 0.0, 1) } else { (1.0, 0.0, 0) };
        while power + 2 <= nu {
            sum += term;
            power += 2;
            term *= cos * cos * f64::from(power - 1) / f64::from(power);
        }
        if odd { (theta + sin * sum) * std::f64::consts::FRAC_2_PI } else { sin * sum }
    }

    fn close(found: f64, exact: f64) {
        assert!((found / exact - 1.0).abs() < 1e-11, "{found} against {exact}");
    }

    #[test]
    fn closed_forms() {
        // ν = 1 is the Cauchy distribution, and ν = 2 has x = (2p−1) √(2 / (4p(1−p))).
        for p in [0.6, 0.9, 0.975, 0.9995, 1.0 - 2f64.powi(-30)] {
            close(quantile(p, 1.0), 1.0 / (std::f64::consts::PI * (1.0 - p)).tan());
            close(quantile(p, 2.0), (2.0 * p - 1.0) * (2.0 / (4.0 * p * (1.0 - p))).sqrt());
        }
        assert_eq!(quantile(0.5, 7.0), 0.0);
        assert_eq!(quantile(0.025, 7.0), -quantile(0.975, 7.0));
    }

    #[test]
    fn tends_to_the_normal() {
        // Cornish & Fisher: z + (z³+z)/4ν + (5z⁵+16z³+3z)/96ν² + …
        let z = 1.959_963_984_540_054f64;
        for nu in [1e5, 1e6] {
            let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * nu * nu);
            close(quantile(0.975, nu), z + (z.powi(3) + z) / (4.0 * nu) + second);
        }
    }

    proptest! {
        #[test]
        fn inverts_the_distribution_function(p in 0.001..0.999f64, nu in prop_oneof![1..40u32, 1..5000u32]) {
            let t = quantile(p, f64::from(nu));
            prop_assert!((t.signum() * within(t.abs(), nu) - (2.0 * p - 1.0)).abs() < 1e-11, "{t}");
        }
    }
}
