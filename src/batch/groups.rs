//! What runs say together: groups of them, with their shares and intervals.
//!
//! In: rows of runs, one after another. Out: groups of those that have something in common. Nothing is read or written.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::batch_stats::EndCounts;
use super::results::Told;

/// The normal quantile of a two-sided 95 % interval.
const Z: f64 = 1.959_963_984_540_054;

/// By what runs are put together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum By {
    /// Their roleset.
    Roleset,
    /// Their model.
    Model,
    /// Their seed.
    Seed,
    /// Their task.
    Task,
}

/// A part of a whole, with the interval of Wilson (1927) in which the true share is with 95 % probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Part {
    /// So many.
    pub count: u64,
    /// Of so many.
    pub of: u64,
    /// The share, from 0 to 1; null of none.
    pub share: Option<f64>,
    /// Where the interval begins, from 0 to 1.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
}

/// Runs that have something in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// What they have in common: names and values, as it was asked for.
    #[serde(serialize_with = "as_map")]
    pub of: Vec<(&'static str, String)>,
    /// How they ended.
    pub ended: EndCounts,
    /// Those that agreed, of those that their protocol has ended: what failed or came to a limit says nothing of it, and is in no
    /// figure below.
    pub agreed: Part,
    /// Those that agreed on the right answer, of those with a known one; whoever does not agree is not right.
    pub right: Part,
    /// Those whose plain vote over blind drafts is right, before any talk.
    pub blind_right: Part,
    /// Rounds, on average.
    pub rounds: f64,
    /// How many runs took so many rounds.
    pub by_rounds: BTreeMap<u32, u64>,
    /// Calls of models, on average.
    pub calls: f64,
    /// Tokens of prompts and replies, on average.
    pub tokens: f64,
    /// Seconds from begin to end within which 5 % have ended.
    pub seconds_p5: f64,
    /// The same of a quarter.
    pub seconds_p25: f64,
    /// Of a half.
    pub seconds_p50: f64,
    /// Of three quarters.
    pub seconds_p75: f64,
    /// Of 95 %.
    pub seconds_p95: f64,
    /// Cost of all in millionths of a US dollar; null if a price is not known.
    pub cost_micro_usd: Option<u64>,
}

impl Part {
    /// A part of a whole.
    #[must_use]
    pub fn new(count: u64, of: u64) -> Self {
        if of == 0 {
            return Self { count, of, share: None, low: 0.0, high: 1.0 };
        }
        let (n, z2) = (of as f64, Z * Z);
        let share = count as f64 / n;
        let middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
        let half = Z / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
        Self { count, of, share: Some(share), low: (middle - half).max(0.0), high: (middle + half).min(1.0) }
    }
}

/// A share and its interval in words, such as `80 % [49, 94]`.
#[must_use]
pub fn share_in_words(part: &Part) -> String {
    match part.share {
        Some(share) => {
            format!("{:.0} % [{:.0}, {:.0}]", share * 100.0, part.low * 100.0, part.high * 100.0)
        }
        None => "-".to_owned(),
    }
}

/// Puts runs together that have these things in common.
#[derive(Debug, Default)]
pub struct Groups {
    by: Vec<By>,
    groups: BTreeMap<Vec<InOrder>, Sums>,
}

/// A name, behind the number that it is: 2 comes before 10, and both before words.
type InOrder = (u64, String);

#[derive(Debug, Default)]
struct Sums {
    ended: EndCounts,
    known: u64,
    blind_known: u64,
    blind_right: u64,
    rounds: u64,
    by_rounds: BTreeMap<u32, u64>,
    calls: u64,
    tokens: u64,
    milliseconds: Vec<u64>,
    /// `None` once a price was not known.
    cost: Option<u64>,
}

impl Groups {
    /// None yet.
    #[must_use]
    pub fn new(by: &[By]) -> Self {
        Self { by: by.to_vec(), groups: BTreeMap::new() }
    }

    /// Adds a run.
    pub fn add(&mut self, told: &Told) {
        let value = |by: &By| {
            let name = match by {
                By::Roleset => told.roleset.clone(),
                By::Model => told.model.clone(),
                By::Seed => told.seed.to_string(),
                By::Task => told.task.clone(),
            };
            (name.parse().unwrap_or(u64::MAX), name)
        };
        let key = self.by.iter().map(value).collect();
        let sums = self.groups.entry(key).or_insert_with(|| Sums { cost: Some(0), ..Sums::default() });
        sums.ended.add(told.outcome, told.right);
        // Of a run that was cut off nothing is known.
        if !told.outcome.is_final() {
            return;
        }
        // Whoever comes to no answer has not found the right one.
        sums.known += u64::from(told.right.is_some());
        sums.blind_known += u64::from(told.blind_right.is_some());
        sums.blind_right += u64::from(told.blind_right == Some(true));
        sums.rounds += u64::from(told.rounds);
        *sums.by_rounds.entry(told.rounds).or_default() += 1;
        sums.calls += told.usage.calls;
        let tokens = told.usage.prompt.saturating_add(told.usage.completion);
        sums.tokens = sums.tokens.saturating_add(tokens);
        sums.milliseconds.push(told.timing.total_ms);
        sums.cost = sums.cost.zip(told.usage.cost_micro_usd).map(|(sum, cost)| sum.saturating_add(cost));
    }

    /// The groups, by what they have in common.
    #[must_use]
    pub fn finish(self) -> Vec<Group> {
        let names: Vec<&'static str> = self.by.iter().map(By::name).collect();
        let group = |(key, mut sums): (Vec<InOrder>, Sums)| {
            let ended = sums.ended.by_protocol();
            let n = ended.max(1) as f64;
            sums.milliseconds.sort_unstable();
            let seconds = |share: usize| {
                let at = (sums.milliseconds.len() * share).div_ceil(100).saturating_sub(1);
                sums.milliseconds.get(at).copied().unwrap_or_default() as f64 / 1000.0
            };
            Group {
                of: names.iter().copied().zip(key.into_iter().map(|(_, name)| name)).collect(),
                ended: sums.ended,
                agreed: Part::new(sums.ended.agreed, ended),
                right: Part::new(sums.ended.right, sums.known),
                blind_right: Part::new(sums.blind_right, sums.blind_known),
                rounds: sums.rounds as f64 / n,
                by_rounds: sums.by_rounds,
                calls: sums.calls as f64 / n,
                tokens: sums.tokens as f64 / n,
                seconds_p5: seconds(5),
                seconds_p25: seconds(25),
                seconds_p50: seconds(50),
                seconds_p75: seconds(75),
                seconds_p95: seconds(95),
                cost_micro_usd: sums.cost,
            }
        };
        self.groups.into_iter().map(group).collect()
    }
}

fn as_map<S: Serializer>(of: &[(&'static str, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(of.iter().map(|(name, value)| (name, value)))
}

impl By {
    fn name(&self) -> &'static str {
        match self {
            Self::Roleset => "roleset",
            Self::Model => "model",
            Self::Seed => "seed",
            Self::Task => "task",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_wilson() {
        // From R: binom::binom.confint(8, 10, methods = "wilson"), and 0 and 10 of 10.
        for (count, of, low, high) in
            [(8, 10, 0.490_162, 0.943_318), (0, 10, 0.0, 0.277_533), (10, 10, 0.722_467, 1.0)]
        {
            let part = Part::new(count, of);
            assert!((part.low - low).abs() < 1e-5 && (part.high - high).abs() < 1e-5, "{part:?}");
        }
        assert_eq!(Part::new(0, 0).share, None);
    }
}
