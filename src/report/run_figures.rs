//! The figures of runs, for Prometheus.
//!
//! The input is the results of runs, one after another. The output is figures in a registry. The same results always give the
//! same figures.

use prometheus::{HistogramOpts, HistogramVec, IntGauge, IntGaugeVec, Opts, Registry};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::result::{Timing, UsageResult};

/// The fields that are read from a `result.json`.
#[derive(Debug, Deserialize)]
#[serde(rename = "Counted")]
pub struct ResultFields {
    run: String,
    protocol: String,
    roleset: String,
    outcome: String,
    rounds: u32,
    agents: Vec<AgentName>,
    usage: UsageResult,
    timing: Timing,
    council: Option<CouncilRounds>,
}

impl ResultFields {
    /// Returns true if two results belong to the same run.
    pub fn is_same(&self, other: &Self) -> bool {
        self.run == other.run
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename = "Named")]
struct AgentName {
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename = "Council")]
struct CouncilRounds {
    rounds: Vec<RoundForms>,
}

/// What the members of a council wrote in a round, and how sure they were.
#[derive(Debug, Deserialize)]
#[serde(rename = "Round")]
struct RoundForms {
    confidences: RoundConfidences,
    framing: Option<IgnoredAny>,
    response: Option<IgnoredAny>,
    verification: Option<IgnoredAny>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename = "Confidences")]
struct RoundConfidences {
    pathos: f64,
    logos: f64,
    ethos: f64,
}

/// The upper bounds of the buckets for times, in seconds: from a run of a script to a run of a whole night.
const SECONDS: [f64; 12] = [0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 180.0, 600.0, 1800.0, 3600.0, 10_800.0, 43_200.0];

/// The upper bounds of the buckets for rounds.
const ROUNDS: [f64; 8] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 24.0];

/// The upper bounds of the buckets for confidences.
const CONFIDENCES: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// The figures of runs, which grow with each run.
#[derive(Debug)]
pub struct RunFigures {
    ended: IntGaugeVec,
    calls: IntGaugeVec,
    tokens: IntGaugeVec,
    cached: IntGaugeVec,
    rounds: HistogramVec,
    seconds: HistogramVec,
    busy: HistogramVec,
    confidence: HistogramVec,
}

impl RunFigures {
    /// Registers the figures, with no run counted yet.
    ///
    /// Fails only if the registry has such figures already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let kinds = ["protocol", "roleset"];
        let of_agent = ["protocol", "roleset", "agent"];
        let cached = "Prompt tokens that servers had computed before.";
        let seconds = "Seconds from a run's first record to its last.";
        let busy = "Seconds that all calls of an agent in a run took together.";
        let confidence = "Confidence of a council member in a round.";
        let ended = ["protocol", "roleset", "outcome"];
        let tokens = ["protocol", "roleset", "kind"];
        Ok(Self {
            ended: gauge(registry, "consensus_runs", "Runs, by how they ended.", &ended)?,
            calls: gauge(registry, "consensus_calls", "Replies of models.", &kinds)?,
            tokens: gauge(registry, "consensus_tokens", "Tokens, as servers report them.", &tokens)?,
            cached: gauge(registry, "consensus_cached_tokens", cached, &kinds)?,
            rounds: histogram(registry, "consensus_run_rounds", "Rounds of a run.", &ROUNDS, &kinds)?,
            seconds: histogram(registry, "consensus_run_seconds", seconds, &SECONDS, &kinds)?,
            busy: histogram(registry, "consensus_agent_seconds", busy, &SECONDS, &of_agent)?,
            confidence: histogram(registry, "consensus_confidence", confidence, &CONFIDENCES, &of_agent)?,
        })
    }

    pub fn add(&self, run: &ResultFields) {
        let kind = [run.protocol.as_str(), run.roleset.as_str()];
        let [protocol, roleset] = kind;
        self.ended.with_label_values(&[protocol, roleset, run.outcome.as_str()]).inc();
        increase(&self.calls.with_label_values(&kind), run.usage.calls);
        increase(&self.tokens.with_label_values(&[protocol, roleset, "prompt"]), run.usage.prompt);
        increase(&self.tokens.with_label_values(&[protocol, roleset, "completion"]), run.usage.completion);
        increase(&self.cached.with_label_values(&kind), run.usage.cached);
        self.rounds.with_label_values(&kind).observe(f64::from(run.rounds));
        self.seconds.with_label_values(&kind).observe(run.timing.total_ms as f64 / 1000.0);
        for (agent, ms) in run.agents.iter().zip(&run.timing.agents_ms) {
            let busy = self.busy.with_label_values(&[protocol, roleset, agent.name.as_str()]);
            busy.observe(*ms as f64 / 1000.0);
        }
        for (agent, confidence) in council_confidences(run) {
            self.confidence.with_label_values(&[protocol, roleset, agent]).observe(confidence);
        }
    }
}

/// Adds to a sum. It saturates, because servers may report any count.
fn increase(gauge: &IntGauge, more: u64) {
    gauge.set(gauge.get().saturating_add(i64::try_from(more).unwrap_or(i64::MAX)));
}

pub(super) fn gauge(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntGaugeVec, prometheus::Error> {
    let gauge = IntGaugeVec::new(Opts::new(name, help), labels)?;
    registry.register(Box::new(gauge.clone()))?;
    Ok(gauge)
}

pub(super) fn histogram(
    registry: &Registry,
    name: &str,
    help: &str,
    bounds: &[f64],
    labels: &[&str],
) -> Result<HistogramVec, prometheus::Error> {
    let histogram = HistogramVec::new(HistogramOpts::new(name, help).buckets(bounds.to_vec()), labels)?;
    registry.register(Box::new(histogram.clone()))?;
    Ok(histogram)
}

/// Returns the confidence of each council member in each round, by the member's name. A member who wrote nothing has
/// none.
fn council_confidences(run: &ResultFields) -> Vec<(&str, f64)> {
    let mut found = Vec::new();
    for round in run.council.iter().flat_map(|council| &council.rounds) {
        let RoundConfidences { pathos, logos, ethos } = round.confidences;
        // The order is that in which the members speak, which is that of the agents.
        let members = [(pathos, &round.framing), (logos, &round.response), (ethos, &round.verification)];
        for (agent, (confidence, form)) in run.agents.iter().zip(members) {
            if form.is_some() {
                found.push((agent.name.as_str(), confidence));
            }
        }
    }
    found
}
