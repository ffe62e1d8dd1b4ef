//! Figures of all runs in a folder, as Prometheus text for the textfile collector of node-exporter.
//!
//! The input is the results of runs, as their `result.json` files hold them, and the figures of decisions beside
//! them. The output is one text. Nothing is counted anywhere else, so the same results give the same text. A run that
//! is resumed counts once, with its latest result, and a run whose folder is deleted no longer counts. So the metrics
//! are gauges: they show the present, not a history.

use prometheus::{Gauge, HistogramOpts, HistogramVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::DecisionMetrics;

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
    #[must_use]
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

/// The upper bounds of the buckets for the steps of a decision, in seconds.
const STEPS: [f64; 10] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 180.0, 600.0];

/// Returns the figures of these runs, and of decisions on changes, as Prometheus text.
///
/// # Errors
///
/// Only if a name here breaks a rule of Prometheus.
pub fn metrics(runs: &[Counted], decisions: &[DecisionMetrics]) -> Result<String, prometheus::Error> {
    let registry = Registry::new();
    of_runs(&registry, runs)?;
    if !decisions.is_empty() {
        of_decisions(&registry, decisions)?;
    }
    TextEncoder::new().encode_to_string(&registry.gather())
}

fn gauge(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntGaugeVec, prometheus::Error> {
    let made = IntGaugeVec::new(Opts::new(name, help), labels)?;
    registry.register(Box::new(made.clone()))?;
    Ok(made)
}

fn histogram(
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

fn of_runs(registry: &Registry, runs: &[Counted]) -> Result<(), prometheus::Error> {
    let gauge = |name: &str, help: &str, labels: &[&str]| gauge(registry, name, help, labels);
    let histogram = |name: &str, help: &str, bounds: &[f64], labels: &[&str]| {
        histogram(registry, name, help, bounds, labels)
    };
    let kinds = ["protocol", "roleset"];
    let ended = gauge("consensus_runs", "Runs, by how they ended.", &["protocol", "roleset", "outcome"])?;
    let calls = gauge("consensus_calls", "Replies of models.", &kinds)?;
    let tokens =
        gauge("consensus_tokens", "Tokens, as servers report them.", &["protocol", "roleset", "kind"])?;
    let cached = gauge("consensus_cached_tokens", "Prompt tokens that servers had computed before.", &kinds)?;
    let rounds = histogram("consensus_run_rounds", "Rounds of a run.", &ROUNDS, &kinds)?;
    let seconds = histogram(
        "consensus_run_seconds",
        "Seconds from a run's first record to its last.",
        &SECONDS,
        &kinds,
    )?;
    let busy = histogram(
        "consensus_agent_seconds",
        "Seconds that all calls of an agent in a run took together.",
        &SECONDS,
        &["protocol", "roleset", "agent"],
    )?;
    let confidence = histogram(
        "consensus_confidence",
        "Confidence of a council member in a round.",
        &CONFIDENCES,
        &["protocol", "roleset", "agent"],
    )?;
    for run in runs {
        let kind = [run.protocol.as_str(), run.roleset.as_str()];
        let with = |label: &'_ str| [kind[0].to_owned(), kind[1].to_owned(), label.to_owned()];
        ended.with_label_values(&with(&run.outcome)).inc();
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        // The sum saturates, because servers may report any count.
        let add = |gauge: &IntGauge, more: u64| gauge.set(gauge.get().saturating_add(count(more)));
        add(&calls.with_label_values(&kind), run.usage.calls);
        add(&tokens.with_label_values(&with("prompt")), run.usage.prompt);
        add(&tokens.with_label_values(&with("completion")), run.usage.completion);
        add(&cached.with_label_values(&kind), run.usage.cached);
        rounds.with_label_values(&kind).observe(f64::from(run.rounds));
        seconds.with_label_values(&kind).observe(run.timing.total_ms as f64 / 1000.0);
        for (agent, ms) in run.agents.iter().zip(&run.timing.agents_ms) {
            busy.with_label_values(&with(&agent.name)).observe(*ms as f64 / 1000.0);
        }
        for (agent, sure) in sureness(run) {
            confidence.with_label_values(&with(agent)).observe(sure);
        }
    }
    Ok(())
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

fn of_decisions(registry: &Registry, decisions: &[DecisionMetrics]) -> Result<(), prometheus::Error> {
    let gauge = |name: &str, help: &str, labels: &[&str]| gauge(registry, name, help, labels);
    let ended = gauge("consensus_decisions", "Decisions on changes, by how they ended.", &["outcome"])?;
    let votes = gauge("consensus_votes", "Votes on changes, by kind.", &["kind"])?;
    let dissent = gauge("consensus_dissent", "Votes against changes, by severity.", &["severity"])?;
    let rollbacks = gauge("consensus_rollbacks", "Changes that had to be undone.", &[])?;
    let steps = histogram(
        registry,
        "consensus_decision_seconds",
        "Seconds that each step of a decision took.",
        &STEPS,
        &["step"],
    )?;
    let rate = Gauge::new("consensus_agreement_rate", "The share of decided changes that landed.")?;
    registry.register(Box::new(rate.clone()))?;
    rollbacks.with_label_values::<&str>(&[]).set(0);
    for decision in decisions {
        ended.with_label_values(&[decision.outcome.name()]).inc();
        rollbacks.with_label_values::<&str>(&[]).add(i64::from(decision.rollback_required));
        for (gauge, counts) in [(&votes, &decision.votes), (&dissent, &decision.severities)] {
            for (kind, count) in counts {
                gauge.with_label_values(&[kind]).add(i64::try_from(*count).unwrap_or(i64::MAX));
            }
        }
        for (step, ms) in ["propose", "review", "decide"].into_iter().zip(decision.phase_latencies_ms) {
            steps.with_label_values(&[step]).observe(ms as f64 / 1000.0);
        }
    }
    let landed = decisions.iter().filter(|decision| decision.success).count();
    rate.set(landed as f64 / decisions.len() as f64);
    Ok(())
}
