//! A macro that turns the lines of the registry into an enum that calls each estimator's own functions. The calls are
//! resolved when the crate is compiled, so that the fold over the rows of a log is as fast as one written by hand.

/// Declares the module of each estimator and the enum of all of them, in the order of the registry.
macro_rules! estimators {
    ($($name:ident = $module:ident,)*) => {
        $(pub mod $module;)*

        /// The estimators. [`Estimator::about`] gives the public id and the description of each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Estimator {
            $(
                #[doc = concat!("The estimator of the module [`", stringify!($module), "`].")]
                $name,
            )*
        }

        impl Estimator {
            /// All estimators, in the order of the registry.
            pub const ALL: &[Self] = &[$(Self::$name),*];
            /// The ids of all estimators, in the same order.
            pub const IDS: &[&str] = &[$($module::$name::ABOUT.id),*];

            /// Returns the description that the estimator gives of itself.
            #[inline(always)]
            pub const fn about(self) -> &'static About {
                match self {
                    $(Self::$name => const { &$module::$name::ABOUT },)*
                }
            }

            /// Returns the number of running sums that the estimator keeps of a trajectory.
            #[inline(always)]
            pub const fn sums(self) -> usize {
                match self {
                    $(Self::$name => $module::$name::SUMS,)*
                }
            }

            /// Calls [`Formula::fold`] of the estimator.
            #[inline(always)]
            pub fn fold(self, rows: &$crate::pass::engine::Fold, sums: &mut [$crate::number::running_sum::Lanes]) {
                match self {
                    $(Self::$name => $module::$name::fold(rows, sums),)*
                }
            }

            /// Calls [`Formula::value`] of the estimator.
            #[inline]
            pub fn value(
                self,
                ended: &formula::Ended,
                into: &mut $crate::pass::accumulators::PolicySums,
            ) -> Option<$crate::number::scaled::Scaled> {
                match self {
                    $(Self::$name => $module::$name::value(ended, into),)*
                }
            }

            /// Calls [`Formula::owed`] of the estimator.
            pub fn owed(self, means: &$crate::pass::normalisers::WeightedMeans, over: &$crate::pass::normalisers::Over)
            -> Vec<$crate::number::scaled::Scaled> {
                match self {
                    $(Self::$name => $module::$name::owed(means, over),)*
                }
            }

            /// Calls [`Formula::estimate`] of the estimator.
            pub fn estimate(self, found: &formula::WholeLog) -> Option<formula::Estimated> {
                match self {
                    $(Self::$name => $module::$name::estimate(found),)*
                }
            }
        }
    };
}

impl serde::Serialize for super::Estimator {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.about().id)
    }
}

impl<'de> serde::Deserialize<'de> for super::Estimator {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let id = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let known = Self::ALL.iter().find(|estimator| estimator.about().id == id);
        known.copied().ok_or_else(|| serde::de::Error::unknown_variant(&id, Self::IDS))
    }
}
