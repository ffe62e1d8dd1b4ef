//! The budget of a run, checked before each call, and the totals of its usage. The code is pure, so `verify` can check it again.

use serde::Serialize;
use thiserror::Error;

use crate::journal::Limits;
use protocol::core::{Price, Usage};

/// The tokens and the cost that were spent, and those that calls in the air may still spend.
///
/// The figures come from servers and journals, so every sum saturates instead of overflowing.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    limits: Limits,
    tokens_spent: u64,
    cost_spent: u64,
    tokens_reserved: u64,
    cost_reserved: u64,
}

/// The most that one call may use.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Reserve {
    tokens: u64,
    cost: u64,
}

/// A limit that the next call could exceed.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum Exceeded {
    /// The limit on tokens.
    #[error("the next call may use {needed} tokens, but only {left} of {max} are left")]
    Tokens {
        /// The most tokens that the call may use.
        needed: u64,
        left: u64,
        max: u64,
    },
    /// The limit on cost.
    #[error("the next call may cost ${}, but only ${} of ${} are left", format_usd(*needed), format_usd(*left), format_usd(*max))]
    Cost {
        /// The highest cost of the call, in millionths of a US dollar.
        needed: u64,
        /// The amount that is left, in millionths of a US dollar.
        left: u64,
        /// The limit, in millionths of a US dollar.
        max: u64,
    },
}

impl Budget {
    /// Returns a budget with these limits and nothing spent.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Replaces the limits, as a resume does. Amounts that were spent remain spent.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Reserves the most that a call may use.
    ///
    /// Returns [`Exceeded`] if a limit could be exceeded. In that case nothing is reserved.
    pub fn reserve(
        &mut self,
        prompt: u64,
        completion: u64,
        price: Option<Price>,
    ) -> Result<Reserve, Exceeded> {
        let tokens = prompt.saturating_add(completion);
        let cost = price.map_or(0, |p| p.cost_micro_usd(prompt, 0, completion));
        if let Some(max) = self.limits.tokens_total_max {
            let left = max.saturating_sub(self.tokens_spent.saturating_add(self.tokens_reserved));
            if tokens > left {
                return Err(Exceeded::Tokens { needed: tokens, left, max });
            }
        }
        if let Some(max) = self.limits.cost_micro_usd_max {
            let left = max.saturating_sub(self.cost_spent.saturating_add(self.cost_reserved));
            if cost > left {
                return Err(Exceeded::Cost { needed: cost, left, max });
            }
        }
        self.tokens_reserved = self.tokens_reserved.saturating_add(tokens);
        self.cost_reserved = self.cost_reserved.saturating_add(cost);
        Ok(Reserve { tokens, cost })
    }

    /// Replaces a reserve by the usage of the call. A call whose reply was lost keeps its reserve, because it may
    /// have been paid for.
    pub fn settle(&mut self, reserve: Reserve, usage: Usage, price: Option<Price>) {
        self.tokens_reserved = self.tokens_reserved.saturating_sub(reserve.tokens);
        self.cost_reserved = self.cost_reserved.saturating_sub(reserve.cost);
        let used = usage.prompt.saturating_add(usage.completion);
        self.tokens_spent = self.tokens_spent.saturating_add(used);
        self.cost_spent = self.cost_spent.saturating_add(usage.cost(price).unwrap_or(0));
    }
}

/// The total usage of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Totals {
    /// The number of replies.
    pub calls: u64,
    pub usage: Usage,
    /// The cost in millionths of a US dollar; `None` if a price is not known.
    pub cost_micro_usd: Option<u64>,
    /// The number of calls that were made and never answered in the journal.
    pub lost: u64,
    /// The number of calls that were cancelled because nothing depended on them any more.
    pub cancelled: u64,
}

/// The usage of some calls of a run, such as those of a phase.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct CallUsage {
    /// The number of replies.
    pub calls: u64,
    /// The tokens of the prompts.
    pub prompt: u64,
    /// The tokens of the replies.
    pub completion: u64,
}

impl CallUsage {
    pub(super) fn add(&mut self, usage: Usage) {
        self.calls += 1;
        self.prompt = self.prompt.saturating_add(usage.prompt);
        self.completion = self.completion.saturating_add(usage.completion);
    }
}

/// Writes millionths of a dollar as dollars.
fn format_usd(micro: u64) -> String {
    format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The refusal comes before the call is made.
    #[test]
    fn call_that_could_exceed_limit_is_refused() {
        let limits = Limits { tokens_total_max: Some(100), ..Limits::default() };
        let mut budget = Budget::new(limits);
        let reserve = budget.reserve(40, 40, None).unwrap();
        assert_eq!(budget.reserve(20, 20, None), Err(Exceeded::Tokens { needed: 40, left: 20, max: 100 }));
        budget.settle(reserve, Usage { prompt: 30, completion: 10, ..Usage::default() }, None);
        assert!(budget.reserve(30, 30, None).is_ok());
    }

    #[test]
    fn money_is_counted_in_millionths() {
        let limits = Limits { cost_micro_usd_max: Some(1_000), ..Limits::default() };
        let price = Some(Price { prompt: 1_000_000, cached: 0, completion: 2_000_000 });
        let mut budget = Budget::new(limits);
        assert!(budget.reserve(500, 200, price).is_ok());
        let message = budget.reserve(100, 1, price).unwrap_err().to_string();
        assert_eq!(message, "the next call may cost $0.000102, but only $0.000100 of $0.001000 are left");
    }

    proptest! {
        #[test]
        fn what_is_spent_never_exceeds_the_limit(
            max in 0_u64..5_000,
            calls in prop::collection::vec((0_u64..500, 0_u64..500, 0_u64..=100), 0..40),
        ) {
            let mut budget = Budget::new(Limits { tokens_total_max: Some(max), ..Limits::default() });
            let mut spent = 0;
            for (prompt, completion, used_percent) in calls {
                if let Ok(reserve) = budget.reserve(prompt, completion, None) {
                    let usage = Usage {
                        prompt: prompt * used_percent / 100,
                        completion: completion * used_percent / 100,
                        ..Usage::default()
                    };
                    spent += usage.prompt + usage.completion;
                    budget.settle(reserve, usage, None);
                }
            }
            prop_assert!(spent <= max);
        }
    }
}
