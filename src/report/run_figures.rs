//! The figures of runs, for Prometheus.
//!
//! The input is the results of runs, one after another. The output is figures in a registry. The same results always give the
//! same figures.

use prometheus::{HistogramOpts, HistogramVec, IntGauge, IntGaugeVec, Opts, Registry};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The fields that are read from a `result.json`.
#[derive(Debug, Deserialize)]
pub struct Counted {
    run: String,
    protocol: String,
    roleset: String,
    outcome: String,
    rounds: u32,
    agents: Vec<Named>,
    usage: Tokens,
    timing: Took,
    council: Option<Council>,
}

impl Counted {
    /// Returns true if two results belong to the same run.
    pub fn is_same(&self, other: &Self) -> bool {
        self.run == other.run
    }
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Tokens {
    prompt: u64,
    cached: u64,
    completion: u64,
    calls: u64,
}

#[derive(Debug, Deserialize)]
struct Took {
    total_ms: u64,
    agents_ms: Vec<u64>,
}

#[derive(Debug, Deserialize)]
struct Council {
    rounds: Vec<Round>,
}

#[derive(Debug, Deserialize)]
struct Round {
    confidences: Confidences,
    framing: Option<IgnoredAny>,
    response: Option<IgnoredAny>,
    verification: Option<IgnoredAny>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Confidences {
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
    /// # Errors
    ///
    /// Only if the registry has such figures already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let gauge = |name: &str, help: &str, labels: &[&str]| gauge(registry, name, help, labels);
        let histogram = |name: &str, help: &str, bounds: &[f64], labels: &[&str]| {
            histogram(registry, name, help, bounds, labels)
        };
        let kinds = ["protocol", "roleset"];
        let of_agent = ["protocol", "roleset", "agent"];
        let cached = "Prompt tokens that servers had computed before.";
        let seconds = "Seconds from a run's first record to its last.";
        let busy = "Seconds that all calls of an agent in a run took together.";
        let confidence = "Confidence of a council member in a round.";
        let tokens = ["protocol", "roleset", "kind"];
        Ok(Self {
            ended: gauge("consensus_runs", "Runs, by how they ended.", &["protocol", "roleset", "outcome"])?,
            calls: gauge("consensus_calls", "Replies of models.", &kinds)?,
            tokens: gauge("consensus_tokens", "Tokens, as servers report them.", &tokens)?,
            cached: gauge("consensus_cached_tokens", cached, &kinds)?,
            rounds: histogram("consensus_run_rounds", "Rounds of a run.", &ROUNDS, &kinds)?,
            seconds: histogram("consensus_run_seconds", seconds, &SECONDS, &kinds)?,
            busy: histogram("consensus_agent_seconds", busy, &SECONDS, &of_agent)?,
            confidence: histogram("consensus_confidence", confidence, &CONFIDENCES, &of_agent)?,
        })
    }

    pub fn add(&self, run: &Counted) {
        let kind = [run.protocol.as_str(), run.roleset.as_str()];
        let with = |label: &'_ str| [kind[0].to_owned(), kind[1].to_owned(), label.to_owned()];
        self.ended.with_label_values(&with(&run.outcome)).inc();
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        // The sum saturates, because servers may report any count.
        let add = |gauge: &IntGauge, more: u64| gauge.set(gauge.get().saturating_add(count(more)));
        add(&self.calls.with_label_values(&kind), run.usage.calls);
        add(&self.tokens.with_label_values(&with("prompt")), run.usage.prompt);
        add(&self.tokens.with_label_values(&with("completion")), run.usage.completion);
        add(&self.cached.with_label_values(&kind), run.usage.cached);
        self.rounds.with_label_values(&kind).observe(f64::from(run.rounds));
        self.seconds.with_label_values(&kind).observe(run.timing.total_ms as f64 / 1000.0);
        for (agent, ms) in run.agents.iter().zip(&run.timing.agents_ms) {
            self.busy.with_label_values(&with(&agent.name)).observe(*ms as f64 / 1000.0);
        }
        for (agent, sure) in sureness(run) {
            self.confidence.with_label_values(&with(agent)).observe(sure);
        }
    }
}

pub(super) fn gauge(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntGaugeVec, prometheus::Error> {
    let made = IntGaugeVec::new(Opts::new(name, help), labels)?;
    registry.register(Box::new(made.clone()))?;
    Ok(made)
}

pub(super) fn histogram(
    registry: &Registry,
    name: &str,
    help: &str,
    bounds: &[f64],
    labels: &[&str],
) -> Result<HistogramVec, prometheus::Error> {
    let made = HistogramVec::new(HistogramOpts::new(name, help).buckets(bounds.to_vec()), labels)?;
    registry.register(Box::new(made.clone()))?;
    Ok(made)
}

/// Returns the confidence of each council member in each round, by the member's name. A member who wrote nothing has
/// none.
fn sureness(run: &Counted) -> impl Iterator<Item = (&str, f64)> {
    let rounds = run.council.iter().flat_map(|council| &council.rounds);
    rounds.flat_map(|round| {
        let Confidences { pathos, logos, ethos } = round.confidences;
        // The order is that in which the members speak, which is that of the agents.
        let wrote = [&round.framing, &round.response, &round.verification];
        let sure =
            [pathos, logos, ethos].into_iter().zip(wrote).map(|(sure, form)| form.as_ref().map(|_| sure));
        run.agents.iter().zip(sure).filter_map(|(agent, sure)| Some((agent.name.as_str(), sure?)))
    })
}
