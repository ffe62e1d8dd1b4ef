//! The report of an evaluation as a page, and a page for each item that flips.
//!
//! The input is a summary, and the results by item. The output is HTML that loads nothing and runs nothing. Positions on a
//! drawing are decided here, in percent of its width; the template decides their look.

use std::fmt::Write as _;

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::Serialize;

use super::comparison::{Against, Curve};
use super::items::{ArmItem, Item};
use super::notes::{describe_talk, format_p, notes, points};
use super::plan::EvalPlan;
use super::summary::{ArmSummary, ShareOf, Summary};
use super::verdict::EvalVerdict;
use crate::batch::TaskLine;
use crate::page::{Blocks, LogScale, PlotMark, Scale, environment, point_labels};
use protocol::text::escape;

/// The height of a plot, in pixels.
const PLOT: f64 = 250.0;

/// An item that is on a page of its own.
#[derive(Clone, Debug, Serialize)]
pub(super) struct FlippedItem {
    /// The name of its page.
    pub(super) page: String,
    /// The task's id, as plain text.
    pub(super) id: String,
    /// The arms that are right where what they are compared with is wrong, and those for which it is the other way round.
    pub(super) better: Vec<String>,
    pub(super) worse: Vec<String>,
}

/// An arm, and the positions of its marks.
#[derive(Serialize)]
struct ShownArm<'a> {
    number: usize,
    name: String,
    right: PlotMark,
    when_answered: String,
    answered: String,
    /// The difference from the majority at the same tokens; `None` for a point of the curve.
    difference: Option<PlotMark>,
    verdict: Option<String>,
    /// `helps`, `hurts` or `open`.
    kind: &'static str,
    tokens_at: f64,
    point_label: String,
    /// The line of right answers by coverage, in the coordinates of the plot.
    risk: String,
    p: String,
    exact_p: String,
    grounds: Vec<(String, PlotMark)>,
    calibration: Vec<(String, PlotMark)>,
    vetoes: Option<[String; 2]>,
    talk: Option<String>,
    /// The flips of runs with each number of rounds, as heights in percent of the axis.
    flips: Vec<Value>,
    arm: &'a ArmSummary,
}

/// Makes the page of a summary, with links to the pages of flipped items. `is_cut` says that more items flip than have pages.
pub(super) fn report_page(
    summary: &Summary,
    plan: &EvalPlan,
    flipped: &[FlippedItem],
    is_cut: bool,
) -> String {
    let points = summary.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.tokens));
    let tokens = LogScale::around(points.chain(summary.arms.iter().map(|arm| arm.cost.tokens)));
    let widest = summary.arms.iter().filter_map(|arm| arm.against);
    let widest =
        widest.flat_map(|of| [of.found.interval.low.abs(), of.found.interval.high.abs(), summary.effect]);
    let differences = Scale::around_zero(widest.fold(0.0, f64::max) * 100.0);
    let flips = summary.arms.iter().flat_map(|arm| arm.flips.values());
    let flips = Scale::up_to(flips.map(|of| of.gained.max(of.lost) as f64).fold(0.0, f64::max));
    let mut arms: Vec<ShownArm<'_>> = summary
        .arms
        .iter()
        .zip(1..)
        .map(|(arm, number)| show_arm(arm, number, &tokens, &differences, &flips))
        .collect();
    let places: Vec<Option<(f64, f64)>> =
        arms.iter().map(|arm| arm.right.at.map(|at| (arm.tokens_at, at))).collect();
    for (arm, label) in arms.iter_mut().zip(point_labels(&places)) {
        arm.point_label = label;
    }
    let of = context! {
        title => escape::terminal(&summary.data),
        summary => Serde(summary),
        plan => Serde(plan),
        notes => notes(summary).iter().map(|note| escape::terminal(note)).collect::<Vec<_>>(),
        arms => Serde(&arms),
        curves => summary.curves.iter().map(|curve| show_curve(curve, &tokens)).collect::<Vec<_>>(),
        tokens => Serde(tokens.ticks()),
        percents => Serde(Scale::up_to(100.0).ticks()),
        points => Serde(differences.ticks()),
        effect => [differences.at(-summary.effect * 100.0), differences.at(summary.effect * 100.0)],
        flip_ticks => Serde(flips.ticks()),
        flipped => Serde(flipped),
        is_cut => is_cut,
        plot => PLOT,
    };
    let rendered = environment().render_named_str("report.html", include_str!("report.html"), of);
    rendered.expect("the template names only what it is given")
}

/// Makes the page of an item, with the transcript of each arm's run.
pub(super) fn item_page(
    plan: &EvalPlan,
    task: &TaskLine,
    item: &Item,
    transcripts: &[Option<&str>],
) -> String {
    let mut arms = Vec::new();
    for ((arm, run), transcript) in plan.arms.iter().zip(&item.arms).zip(transcripts) {
        let (words, drafts, kind) = match run {
            Some(run) => {
                let kind = if run.is_right { "helps" } else { "hurts" };
                (describe_answer(run), run.describe_drafts(), kind)
            }
            None => ("no run has ended".to_owned(), None, "open"),
        };
        let transcript = Serde(transcript.map(Blocks::new));
        arms.push(context! { name => escape::terminal(&arm.name), words, drafts, kind, transcript });
    }
    let curves = plan.banks.iter().zip(&item.banks).filter(|(bank, _)| bank.is_curve);
    let samples = curves.filter_map(|(_, drawn)| drawn.as_ref()).map(|drawn| {
        let right = drawn.samples.iter().filter(|sample| sample.is_right).count();
        format!("{right} of {} samples in words are right", drawn.samples.len())
    });
    let of = context! {
        id => escape::terminal(&item.id),
        prompt => escape::terminal(&task.prompt),
        answer => escape::terminal(task.answer.as_deref().unwrap_or_default()),
        samples => samples.collect::<Vec<_>>(),
        arms,
    };
    let rendered = environment().render_named_str("item.html", include_str!("item.html"), of);
    rendered.expect("the template names only what it is given")
}

fn describe_answer(run: &ArmItem) -> String {
    let right = if run.is_right { "right" } else { "wrong" };
    let answer = match &run.answer {
        Some(answer) => format!("“{}”, {right}", escape::excerpt(answer)),
        None => format!("no answer ({})", run.outcome.name()),
    };
    format!("{answer}{}; {} tokens", run.describe_draft_vote(), run.tokens())
}

fn show_arm<'a>(
    arm: &'a ArmSummary,
    number: usize,
    tokens: &LogScale,
    differences: &Scale,
    flips: &Scale,
) -> ShownArm<'a> {
    let mut flip_bars = Vec::new();
    for (rounds, of) in &arm.flips {
        let (gained, lost) = (flips.at(of.gained as f64), flips.at(of.lost as f64));
        flip_bars.push(context! { rounds => *rounds, of => Serde(of), gained, lost });
    }
    let answered = arm.answered.share;
    ShownArm {
        number,
        name: escape::terminal(&arm.name),
        right: mark(&arm.right),
        when_answered: mark(&arm.right_when_answered).words,
        answered: answered.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0)),
        difference: match &arm.against {
            Some(against) if arm.verdict.is_some() => Some(difference_mark(against, differences)),
            Some(_) | None => None,
        },
        verdict: arm.verdict.map(EvalVerdict::summary),
        kind: match arm.verdict {
            Some(EvalVerdict::Helps) => "helps",
            Some(EvalVerdict::Hurts) => "hurts",
            Some(EvalVerdict::Equivalent | EvalVerdict::NotEnough { .. } | EvalVerdict::Dearer) | None => {
                "open"
            }
        },
        tokens_at: tokens.at(arm.cost.tokens),
        point_label: String::new(),
        risk: risk(arm),
        p: arm.p.map_or("-".to_owned(), format_p),
        exact_p: match &arm.against {
            Some(of) if arm.p.is_some() => {
                format!("{} ({} to {})", format_p(of.exact.p), of.better, of.worse)
            }
            Some(_) | None => "-".to_owned(),
        },
        grounds: arm.grounds.iter().map(|(ground, of)| (escape::terminal(ground), mark(of))).collect(),
        calibration: arm
            .calibration
            .iter()
            .map(|bin| (format!("{:.0} % certain", bin.certainty * 100.0), mark(&bin.right)))
            .collect(),
        vetoes: arm.vetoes.map(|of| [mark(&of.precision).words, mark(&of.recall).words]),
        talk: arm.talk.as_ref().map(describe_talk),
        flips: flip_bars,
        arm,
    }
}

fn mark(of: &ShareOf) -> PlotMark {
    let (low, high) =
        of.interval.map_or((0.0, 0.0), |interval| (interval.low * 100.0, interval.high * 100.0));
    let words =
        of.share.map_or("-".to_owned(), |share| format!("{:.1} % [{low:.1}, {high:.1}]", share * 100.0));
    PlotMark { at: of.share.map(|share| share * 100.0), low, high, words }
}

fn difference_mark(of: &Against, scale: &Scale) -> PlotMark {
    let interval = of.found.interval;
    let words = points(of.difference, interval);
    let [at, low, high] = [of.difference, interval.low, interval.high].map(|share| scale.at(share * 100.0));
    PlotMark { at: Some(at), low, high, words }
}

/// Returns a curve in the coordinates of the plot. A height is that below the top, in percent.
fn show_curve(curve: &Curve, tokens: &LogScale) -> Value {
    let (mut line, mut high, mut low, mut ends) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for point in &curve.points {
        line.push(place(tokens, point.tokens, point.right));
        high.push(place(tokens, point.tokens, point.interval.high));
        low.push(place(tokens, point.tokens, point.interval.low));
    }
    high.extend(low.into_iter().rev());
    for point in curve.points.first().into_iter().chain(curve.points.last()) {
        ends.push(format!(
            "{} {}: {:.1} % right, {:.0} tokens",
            point.samples,
            if point.samples == 1 { "sample" } else { "samples" },
            point.right * 100.0,
            point.tokens
        ));
    }
    context! {
        model => escape::terminal(&curve.model),
        line => path(&line),
        band => path(&high),
        // The height of the share of items with any right sample.
        any_right => 100.0 - curve.any_right * 100.0,
        any_words => format!("{:.1} %", curve.any_right * 100.0),
        ends => ends.join("; "),
    }
}

/// Returns the place of a share at a number of tokens.
fn place(tokens: &LogScale, figure: f64, share: f64) -> String {
    format!("{:.2} {:.2}", tokens.at(figure), 100.0 - share * 100.0)
}

/// Returns the line of right answers by coverage. The top of the plot is no error.
fn risk(arm: &ArmSummary) -> String {
    let points =
        arm.risk.iter().filter_map(|point| Some((point.coverage * 100.0, point.errors.share? * 100.0)));
    path(&points.map(|(coverage, errors)| format!("{coverage:.2} {errors:.2}")).collect::<Vec<_>>())
}

fn path(places: &[String]) -> String {
    places.iter().enumerate().fold(String::new(), |mut path, (at, place)| {
        let _ = write!(path, "{}{place}", if at == 0 { "M" } else { " L" });
        path
    })
}
