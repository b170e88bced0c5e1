//! What an estimator says of itself, for all that have to know it: the plan, the outcome, Python, tables of the docs.

use crate::estimators::Estimator;

/// A column of a policy that an estimator reads beside the reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// ρ_t, as logged or as a quotient of probabilities.
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
    /// Always, if the logged probabilities are right.
    Always,
    /// If the model's values are right.
    WithRightModel,
    /// If P̂/P is logged, or the model's transitions are right.
    WithTransitionRatio,
    /// In the limit of many trajectories: the estimate is consistent.
    InTheLimit,
}

/// What an estimator takes from a model, and so what a wrong model does to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelUse {
    /// Nothing.
    None,
    /// A control variate, whose mean is 0 if V̂ is the mean of Q̂ under the target policy: a wrong model costs variance.
    ControlVariate,
    /// The transitions, which are taken for the true ones where P̂/P is not logged.
    Transitions,
    /// A share of the value, which the log decides.
    Blend,
    /// The value.
    Value,
}

/// How bounds on rewards, ratios and model values bound the value of one trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// It is a discounted return.
    Return,
    /// It is a discounted return times ρ_{1:H}.
    WeightedReturn,
    /// It is a discounted sum of rewards, each times ρ_{1:t}.
    WeightedRewards,
    /// It is a sum of weighted rewards less a control variate of Q̂.
    LessControlVariate,
    /// The same with the guess that is made of the baseline.
    LessBaseline,
    /// It is V̂(s_1).
    FirstValue,
    /// Nothing is known of it, or a trajectory has no value of its own.
    Unknown,
}

/// A sum over trajectories for each step, which the first pass keeps for a later one.
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

/// What an estimator is, what it needs, and what may be expected of it.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its public name.
    pub id: &'static str,
    /// What it is, in a few words.
    pub name: &'static str,
    /// Its defining equation in Unicode.
    pub equation: &'static str,
    /// Where it is from.
    pub reference: &'static str,
    /// Columns that it cannot do without.
    pub needs: &'static [Column],
    /// Columns that it reads where the log has them.
    pub reads: &'static [Column],
    /// How often the log is read before value and standard error are known.
    pub passes: u8,
    /// How often it is read before the value is known.
    pub value_pass: u8,
    /// When its expectation is the value.
    pub unbiased: Unbiased,
    /// A ratio of sums over trajectories, or a blend of such, and no mean of values of trajectories.
    pub weighted: bool,
    /// Its value of a trajectory is never further from 0 than that of an unbiased estimator, and of the same sign: with
    /// rewards that are never negative it does not overestimate.
    pub shrinks: bool,
    /// Values all rewards of a trajectory by the one weight ρ_{1:H}, and so reads the trajectory's return.
    pub weights_returns: bool,
    /// Estimates the value of the behaviour policy, whatever the target: its value of a trajectory is the return.
    pub of_behavior: bool,
    /// Needs the constant `baseline`, of which it makes a table over the horizon: the horizon must be known.
    pub needs_baseline: bool,
    /// Its value of a trajectory is V̂(s_1) and a weighted correction.
    pub corrects_first_value: bool,
    /// What it takes from a model.
    pub model: ModelUse,
    /// What is left of it without its control variate.
    pub without_control: Option<Estimator>,
    /// The same with the constant `baseline` as its control variate.
    pub with_baseline: Option<Estimator>,
    /// How the value of a trajectory is bounded.
    pub range: Range,
    /// Sums for each step that it needs of the first pass.
    pub step_sums: &'static [StepSum],
    /// Computed where it is named, and not among all that the columns allow.
    pub only_when_asked: bool,
}

impl About {
    /// A mean of values of trajectories that one pass computes, made of importance ratios and rewards alone. An
    /// estimator names what is different: `About { id: "…", ..About::MEAN }`.
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

    /// A ratio of sums over trajectories. Its value is known after one pass, and its standard error after two.
    pub const RATIO: Self = Self { passes: 2, unbiased: Unbiased::InTheLimit, weighted: true, ..Self::MEAN };

    /// True for a blend of estimators: it has no values of single trajectories, not even influence values.
    pub const fn is_blend(&self) -> bool {
        matches!(self.model, ModelUse::Blend)
    }

    /// True where the estimator reads or needs a column.
    pub fn uses(&self, column: Column) -> bool {
        self.needs.contains(&column) || self.reads.contains(&column)
    }

    /// True where the first pass keeps a sum for each step for it.
    pub fn sums_by_step(&self) -> bool {
        !self.step_sums.is_empty()
    }
}

impl Column {
    /// The role of the column in Python.
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
    /// The condition in Python.
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
    /// The use of a model in Python.
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
    /// The kind of range in Python.
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
    /// In the order in which a pass computes them.
    pub const ALL: [Self; 6] =
        [Self::Weight, Self::SquaredWeight, Self::AbsoluteReward, Self::Reward, Self::Residual, Self::Value];

    /// The sum in Python.
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
