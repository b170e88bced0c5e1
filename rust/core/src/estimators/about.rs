//! The description that an estimator gives of itself, which the plan, the outcome, Python and the documentation read.

use crate::estimators::Estimator;

/// A column of a policy that an estimator reads beside the reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// ρ_t, either logged or a quotient of probabilities.
    Ratio,
    /// Q̂(s_t, a_t)
    QHat,
    /// V̂(s_t)
    VHat,
    /// R̂(s_t, a_t)
    RHat,
    /// P̂/P of the transition from step t to t+1.
    TransitionRatio,
}

/// When the expectation of an estimate is the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unbiased {
    /// Always, provided that the logged probabilities are right.
    Always,
    /// If the model's values are right.
    WithRightModel,
    /// If P̂/P is logged, or the model's transitions are right.
    WithTransitionRatio,
    /// In the limit of many trajectories: the estimate is consistent.
    InTheLimit,
}

/// What an estimator takes from a model, which decides what a wrong model does to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelUse {
    /// Nothing.
    None,
    /// A control variate. Its mean is 0 if V̂ is the mean of Q̂ under the target policy, so a wrong model costs
    /// variance.
    ControlVariate,
    /// The transitions, which are taken for the true ones if P̂/P is not logged.
    Transitions,
    /// A share of the value; the log decides how large the share is.
    Blend,
    /// The whole value.
    Value,
}

/// What the value of one trajectory is made of, which decides how bounds on rewards, ratios and model values bound it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// A discounted return.
    Return,
    /// A discounted return times ρ_{1:H}.
    WeightedReturn,
    /// A discounted sum of rewards, each times ρ_{1:t}.
    WeightedRewards,
    /// A discounted sum of weighted rewards, less a control variate made of Q̂.
    LessControlVariate,
    /// A discounted sum of weighted rewards, less a control variate made of the baseline.
    LessBaseline,
    /// V̂(s_1)
    FirstValue,
    /// Something that the bounds do not limit; this includes estimators that have no values of single trajectories.
    Unknown,
}

/// A kind of sum over trajectories, one per step, which the first pass keeps for the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepSum {
    /// Σ c_t
    Weight,
    /// Σ c_t²
    SquaredWeight,
    /// Σ c_t |r_t|
    AbsoluteReward,
    /// Σ c_t r_t
    Reward,
    /// Σ c_t (r_t − Q̂_t)
    Residual,
    /// Σ c_{t−1} V̂_t
    Value,
}

/// The description of an estimator: what it is, what it needs, and what may be expected of it.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The public name, such as `step-is`.
    pub id: &'static str,
    /// A few words that say what the estimator is.
    pub name: &'static str,
    /// The defining equation in Unicode.
    pub equation: &'static str,
    /// The publication that it is from.
    pub reference: &'static str,
    /// The columns that it must have.
    pub needs: &'static [Column],
    /// The columns that it reads if the log has them.
    pub reads: &'static [Column],
    /// How often the log is read before value and standard error are known.
    pub passes: u8,
    /// How often the log is read before the value is known.
    pub value_pass: u8,
    /// When its expectation is the value.
    pub unbiased: Unbiased,
    /// True if it is a ratio of sums over trajectories or a blend of such, and not a mean of values of trajectories.
    pub weighted: bool,
    /// True if its value of a trajectory has the same sign as that of an unbiased estimator and is never further from
    /// 0. Where no reward is negative, it then does not overestimate.
    pub shrinks: bool,
    /// True if all rewards of a trajectory are multiplied by the one weight ρ_{1:H}, so that it reads the return.
    pub weights_returns: bool,
    /// True if it estimates the value of the behaviour policy, whatever the target policy is. Its value of a trajectory
    /// is the return.
    pub of_behavior: bool,
    /// True if it needs the constant `baseline`, from which a table over the horizon is made once the horizon is known.
    pub needs_baseline: bool,
    /// True if its value of a trajectory is V̂(s_1) plus a weighted correction.
    pub corrects_first_value: bool,
    /// What it takes from a model.
    pub model: ModelUse,
    /// The estimator that remains if its control variate is left out.
    pub without_control: Option<Estimator>,
    /// The estimator that adds the constant `baseline` to it as a control variate.
    pub with_baseline: Option<Estimator>,
    /// What the value of a trajectory is made of, from which its bounds follow.
    pub range: Range,
    /// The sums per step that it needs from the first pass.
    pub step_sums: &'static [StepSum],
    /// True if it is computed only where it is named, and not among all that the columns allow.
    pub only_when_asked: bool,
}

impl About {
    /// The description of a mean of values of trajectories that are computed in one pass from importance ratios and
    /// rewards alone. An estimator names what is different: `About { id: "…", ..About::MEAN }`.
    pub const MEAN: Self = Self {
        id: "",
        name: "",
        equation: "",
        reference: "",
        needs: &[Column::Ratio],
        reads: &[],
        passes: 1,
        value_pass: 1,
        unbiased: Unbiased::Always,
        weighted: false,
        shrinks: false,
        weights_returns: false,
        of_behavior: false,
        needs_baseline: false,
        corrects_first_value: false,
        model: ModelUse::None,
        without_control: None,
        with_baseline: None,
        range: Range::Unknown,
        step_sums: &[],
        only_when_asked: false,
    };

    /// The description of a ratio of sums over trajectories. Its value is known after one pass, its standard error
    /// after two.
    pub const RATIO: Self = Self { passes: 2, unbiased: Unbiased::InTheLimit, weighted: true, ..Self::MEAN };

    /// Returns true for a blend of estimators, which has neither values nor influence values of single trajectories.
    pub const fn is_blend(&self) -> bool {
        matches!(self.model, ModelUse::Blend)
    }

    /// Returns true if the estimator needs a column, or reads it if the log has it.
    pub fn uses(&self, column: Column) -> bool {
        self.needs.contains(&column) || self.reads.contains(&column)
    }

    /// Returns true if the first pass keeps sums per step for the estimator.
    pub fn sums_by_step(&self) -> bool {
        !self.step_sums.is_empty()
    }
}

impl Column {
    /// Returns the name of the column's role in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::QHat => "q_hat",
            Self::VHat => "v_hat",
            Self::RHat => "r_hat",
            Self::TransitionRatio => "transition_ratio",
        }
    }
}

impl Unbiased {
    /// Returns the name of the condition in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::WithRightModel => "with-right-model",
            Self::WithTransitionRatio => "with-transition-ratio",
            Self::InTheLimit => "in-the-limit",
        }
    }
}

impl ModelUse {
    /// Returns the name of the use in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ControlVariate => "control-variate",
            Self::Transitions => "transitions",
            Self::Blend => "blend",
            Self::Value => "value",
        }
    }
}

impl Range {
    /// Returns the name of the range in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Return => "return",
            Self::WeightedReturn => "weighted-return",
            Self::WeightedRewards => "weighted-rewards",
            Self::LessControlVariate => "less-control-variate",
            Self::LessBaseline => "less-baseline",
            Self::FirstValue => "first-value",
            Self::Unknown => "unknown",
        }
    }
}

impl StepSum {
    /// All sums, in the order in which a pass computes them.
    pub const ALL: [Self; 6] =
        [Self::Weight, Self::SquaredWeight, Self::AbsoluteReward, Self::Reward, Self::Residual, Self::Value];

    /// Returns the name of the sum in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weight => "weight",
            Self::SquaredWeight => "squared-weight",
            Self::AbsoluteReward => "absolute-reward",
            Self::Reward => "reward",
            Self::Residual => "residual",
            Self::Value => "value",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_estimator_says_what_it_is() {
        for (index, estimator) in Estimator::ALL.iter().enumerate() {
            let about = estimator.about();
            let words = [about.id, about.name, about.equation, about.reference];
            assert!(words.iter().all(|words| !words.is_empty()), "{estimator:?}");
            assert!(about.id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
            assert_eq!(
                Estimator::IDS.iter().position(|&id| id == about.id),
                Some(index),
                "{} is there twice",
                about.id
            );
        }
    }

    #[test]
    fn what_estimators_say_of_themselves_fits_together() {
        for estimator in Estimator::ALL {
            let about = estimator.about();
            assert!((1..=2).contains(&about.passes) && (1..=about.passes).contains(&about.value_pass));
            assert!(!about.weighted || about.unbiased == Unbiased::InTheLimit);
            assert!(!about.sums_by_step() || about.weighted && about.step_sums.contains(&StepSum::Weight));
            assert!(!about.is_blend() || about.value_pass == 2);
            assert_eq!(about.of_behavior, about.range == Range::Return);
            for other in [about.without_control, about.with_baseline].into_iter().flatten() {
                assert_eq!((other.about().passes, other.about().weighted), (about.passes, about.weighted));
            }
        }
        assert_eq!(Estimator::ALL.iter().filter(|estimator| estimator.about().of_behavior).count(), 1);
    }

    #[test]
    fn ids_are_what_travels() {
        for estimator in Estimator::ALL {
            let bytes = postcard::to_stdvec(estimator).unwrap();
            assert_eq!(bytes, postcard::to_stdvec(estimator.about().id).unwrap());
            assert_eq!(postcard::from_bytes::<Estimator>(&bytes).unwrap(), *estimator);
        }
        assert!(postcard::from_bytes::<Estimator>(&postcard::to_stdvec("drr").unwrap()).is_err());
    }
}
