//! Figures of all runs in a folder, as Prometheus text for the textfile collector of node-exporter.
//!
//! The input is the results of runs, as their `result.json` files hold them, and the figures of decisions beside
//! them. The output is one text. Nothing is counted anywhere else, so the same results give the same text. A run that
//! is resumed counts once, with its latest result, and a run whose folder is deleted no longer counts. So the metrics
//! are gauges: they show the present, not a history.

use prometheus::{Gauge, Registry, TextEncoder};

use super::DecisionMetrics;
use super::run_figures::{ResultFields, RunFigures, gauge, histogram};

/// The upper bounds of the buckets for the steps of a decision, in seconds.
const STEPS: [f64; 10] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 180.0, 600.0];

/// Returns the figures of these runs, and of decisions on changes, as Prometheus text.
///
/// Fails only if a name here breaks a rule of Prometheus.
pub fn metrics(runs: &[ResultFields], decisions: &[DecisionMetrics]) -> Result<String, prometheus::Error> {
    let registry = Registry::new();
    let figures = RunFigures::new(&registry)?;
    for run in runs {
        figures.add(run);
    }
    if !decisions.is_empty() {
        add_decisions(&registry, decisions)?;
    }
    TextEncoder::new().encode_to_string(&registry.gather())
}

fn add_decisions(registry: &Registry, decisions: &[DecisionMetrics]) -> Result<(), prometheus::Error> {
    let ended =
        gauge(registry, "consensus_decisions", "Decisions on changes, by how they ended.", &["outcome"])?;
    let votes = gauge(registry, "consensus_votes", "Votes on changes, by kind.", &["kind"])?;
    let dissent = gauge(registry, "consensus_dissent", "Votes against changes, by severity.", &["severity"])?;
    let rollbacks = gauge(registry, "consensus_rollbacks", "Changes that had to be undone.", &[])?;
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
