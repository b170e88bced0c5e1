//! Weighted importance sampling over whole trajectories, Jiang & Li (2016), eq. (6), with c = ρ_{1:H} and the return G:
//!
//!     θ = Σ c G / Σ c,    ψ_i = c_i (G_i − θ) / D,    D = Σ c / n,    SE² = Σ ψ² / (n (n−1))
//!
//! One pass suffices, because Σψ²·D² = Σc²G² − 2θ Σc²G + θ² Σc². The sums are exact, so that nothing is lost where they
//! cancel: equal returns give SE = 0 and not a number near 0.

use serde::{Deserialize, Serialize};

use crate::estimators::formula::{Ended, Estimated, WholeLog};
use crate::estimators::{About, Formula};
use crate::number::scaled::Scaled;
use crate::number::sum::{Exact, Sum, product};
use crate::pass::accumulators::PolicySums;
use crate::pass::plan::Pass;

/// The estimator.
pub struct Wis;

impl Formula for Wis {
    const ABOUT: About = About {
        id: "wis",
        name: "weighted importance sampling of whole trajectories",
        equation: "Σ_i ρ_{1:H} Σ_t γ^{t−1} r_t / Σ_i ρ_{1:H}",
        reference: "Jiang & Li (2016), eq. (6)",
        passes: 1,
        weights_returns: true,
        ..About::RATIO
    };

    /// Returns c G / D, whose mean is θ, or the influence value c (G − θ) / D. The first pass only adds to the sums.
    #[inline(always)]
    fn value(ended: &Ended, into: &mut PolicySums) -> Option<Scaled> {
        let (over_mean, theta) = ended.tables.wis;
        match ended.pass {
            Pass::First => {
                into.wis.add(ended.weight, ended.returns);
                None
            }
            Pass::Values => Some(ended.weight * ended.returns * over_mean),
            Pass::Second | Pass::Influence => Some(ended.weight * (ended.returns - theta) * over_mean),
        }
    }

    fn estimate(found: &WholeLog) -> Option<Estimated> {
        let (sums, n) = (&found.first.wis, found.episodes);
        Some(Estimated::new(sums.value().unwrap_or_default(), (n > 1).then(|| sums.std_error(n))))
    }
}

/// If cancellation leaves less than 2 to this power of the largest part of Σψ², the standard error is taken as 0.
const SMALLEST_SHARE: i64 = -380;

/// The five sums of WIS: Σc, Σcg, Σc², Σc²g and Σc²g².
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WisSums {
    c: Sum,
    c_g: Sum,
    cc: Sum,
    cc_g: Sum,
    cc_gg: Sum,
}

impl WisSums {
    /// Adds a trajectory with weight c and return g.
    pub fn add(&mut self, c: Scaled, g: Scaled) {
        self.c.add(c);
        self.c_g.add_product(c, g);
        let cc = c * c;
        self.cc.add(cc);
        for part in product(cc, g) {
            self.cc_g.add(part);
            self.cc_gg.add_product(part, g);
        }
    }

    /// Adds all of another set of sums.
    pub fn merge(&mut self, other: &Self) {
        self.c.merge(&other.c);
        self.c_g.merge(&other.c_g);
        self.cc.merge(&other.cc);
        self.cc_g.merge(&other.cc_g);
        self.cc_gg.merge(&other.cc_gg);
    }

    /// Returns θ, or None if every weight is zero.
    pub fn value(&self) -> Option<Scaled> {
        let c = self.c.exact();
        (!self.c.value().is_zero()).then(|| self.c_g.exact().divide(&c))
    }

    /// Returns SE of θ for n > 1 trajectories, Σψ² = (C² Σc²g² − 2 C Σcg Σc²g + (Σcg)² Σc²) n² / C⁴ with C = Σc.
    ///
    /// A sum loses what is below 2^-448 of its largest term, so an error below 2^-190 of θ is returned as 0.
    pub fn std_error(&self, n: u64) -> Scaled {
        let (c, c_g) = (self.c.exact(), self.c_g.exact());
        let (cc, cc_g, cc_gg) = (self.cc.exact(), self.cc_g.exact(), self.cc_gg.exact());
        let cross = c.times(&c_g).times(&cc_g);
        let largest = c.times(&c).times(&cc_gg);
        let squares = largest.minus(&cross).minus(&cross.minus(&c_g.times(&c_g).times(&cc)));
        if squares.round().mantissa() <= 0.0 || squares.divide(&largest).exponent() < SMALLEST_SHARE {
            return Scaled::ZERO;
        }
        let c4 = c.times(&c).times(&c).times(&c);
        squares.times(&Exact::integer(n)).divide(&c4.times(&Exact::integer(n - 1))).sqrt()
    }

    /// Returns n / Σc, the factor that turns c·g into a value whose mean is θ.
    pub fn normaliser(&self, n: u64) -> Scaled {
        Exact::integer(n).divide(&self.c.exact())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_returns_have_no_error() {
        let mut sums = WisSums::default();
        for c in [0.1, 3.7, 1e-30, 2.0] {
            sums.add(c.into(), 0.19.into());
        }
        assert_eq!(sums.value().unwrap().to_f64(), Some(0.19));
        assert!(sums.std_error(4).is_zero());
    }

    #[test]
    fn by_hand() {
        let mut sums = WisSums::default();
        sums.add(1.0.into(), 0.0.into());
        sums.add(3.0.into(), 4.0.into());
        assert_eq!(sums.value().unwrap().to_f64(), Some(3.0));
        // ψ = 1·(0−3)/2, 3·(4−3)/2; Σψ² = 4.5; SE² = 4.5/2
        assert_eq!(sums.std_error(2).to_f64(), Some(1.5));
    }
}
