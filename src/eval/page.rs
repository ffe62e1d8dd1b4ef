//! The report of an evaluation as a page, and a page for each item that flips.
//!
//! The input is a summary, and the results by item. The output is HTML that loads nothing and runs nothing. Positions on a
//! drawing are decided here, in percent of its width; the template decides their look.

use std::fmt::Write as _;

use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

use super::comparison::{Against, Curve, CurvePoint};
use super::items::{ArmItem, Item};
use super::notes::{notes, p_in_words, points, talk_in_words};
use super::plan::EvalPlan;
use super::summary::{ArmSummary, Flips, ShareOf, Summary};
use super::verdict::EvalVerdict;
use crate::batch::TaskLine;
use crate::page::{Blocks, LogScale, PlotMark, Scale, environment, point_labels};
use protocol::text::escape;

/// The height of a plot, in pixels.
const PLOT: f64 = 250.0;

/// An item that is on a page of its own.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Flipped {
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
struct Shown<'a> {
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
    flips: Vec<FlipBar>,
    arm: &'a ArmSummary,
}

/// The flips of runs with one number of rounds, as heights in percent of the axis.
#[derive(Serialize)]
struct FlipBar {
    rounds: u32,
    of: Flips,
    gained: f64,
    lost: f64,
}

/// A curve in the coordinates of the plot.
#[derive(Serialize)]
struct CurveShown {
    model: String,
    line: String,
    band: String,
    /// The height of the share of items with any right sample.
    any_right: f64,
    any_words: String,
    ends: String,
}

/// Makes the page of a summary, with links to the pages of flipped items. `is_cut` says that more items flip than have pages.
pub(super) fn report_page(summary: &Summary, plan: &EvalPlan, flipped: &[Flipped], is_cut: bool) -> String {
    let points = summary.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.tokens));
    let tokens = LogScale::around(points.chain(summary.arms.iter().map(|arm| arm.cost.tokens)));
    let widest = summary.arms.iter().filter_map(|arm| arm.against);
    let widest =
        widest.flat_map(|of| [of.found.interval.low.abs(), of.found.interval.high.abs(), summary.effect]);
    let differences = Scale::around_zero(widest.fold(0.0, f64::max) * 100.0);
    let flips = summary.arms.iter().flat_map(|arm| arm.flips.values());
    let flips = Scale::up_to(flips.map(|of| of.gained.max(of.lost) as f64).fold(0.0, f64::max));
    let mut arms: Vec<Shown<'_>> = summary
        .arms
        .iter()
        .zip(1..)
        .map(|(arm, number)| shown(arm, number, &tokens, &differences, &flips))
        .collect();
    let place = |arm: &Shown<'_>| arm.right.at.map(|at| (arm.tokens_at, at));
    let labels = point_labels(&arms.iter().map(place).collect::<Vec<_>>());
    arms.iter_mut().zip(labels).for_each(|(arm, label)| arm.point_label = label);
    let of = context! {
        title => escape::terminal(&summary.data),
        summary => Serde(summary),
        plan => Serde(plan),
        notes => notes(summary).iter().map(|note| escape::terminal(note)).collect::<Vec<_>>(),
        arms => Serde(&arms),
        curves => Serde(summary.curves.iter().map(|of| curve(of, &tokens)).collect::<Vec<_>>()),
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
    #[derive(Serialize)]
    struct ArmOfItem {
        name: String,
        words: String,
        drafts: Option<String>,
        kind: &'static str,
        transcript: Option<Blocks>,
    }
    let arms = plan.arms.iter().zip(&item.arms).zip(transcripts).map(|((arm, run), transcript)| ArmOfItem {
        name: escape::terminal(&arm.name),
        words: run.as_ref().map_or("no run has ended".to_owned(), answer_in_words),
        drafts: run.as_ref().and_then(ArmItem::drafts_in_words),
        kind: match run {
            Some(run) if run.is_right => "helps",
            Some(_) => "hurts",
            None => "open",
        },
        transcript: transcript.map(Blocks::new),
    });
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
        arms => Serde(arms.collect::<Vec<_>>()),
    };
    let rendered = environment().render_named_str("item.html", include_str!("item.html"), of);
    rendered.expect("the template names only what it is given")
}

fn answer_in_words(run: &ArmItem) -> String {
    let word = |is_right: bool| if is_right { "right" } else { "wrong" };
    let answer = match &run.answer {
        Some(answer) => format!("“{}”, {}", escape::excerpt(answer), word(run.is_right)),
        None => format!("no answer ({})", run.outcome.name()),
    };
    format!("{answer}{}; {} tokens", run.before_in_words(), run.tokens())
}

fn shown<'a>(
    arm: &'a ArmSummary,
    number: usize,
    tokens: &LogScale,
    differences: &Scale,
    flips: &Scale,
) -> Shown<'a> {
    let flip = |(rounds, of): (&u32, &Flips)| FlipBar {
        rounds: *rounds,
        of: *of,
        gained: flips.at(of.gained as f64),
        lost: flips.at(of.lost as f64),
    };
    let percent = |of: &ShareOf| of.share.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0));
    Shown {
        number,
        name: escape::terminal(&arm.name),
        right: mark(&arm.right),
        when_answered: mark(&arm.right_when_answered).words,
        answered: percent(&arm.answered),
        difference: arm.against.filter(|_| arm.verdict.is_some()).map(|of| difference(&of, differences)),
        verdict: arm.verdict.map(EvalVerdict::in_words),
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
        p: arm.p.map_or("-".to_owned(), p_in_words),
        exact_p: arm.against.filter(|_| arm.p.is_some()).map_or("-".to_owned(), |of| {
            format!("{} ({} to {})", p_in_words(of.exact.p), of.better, of.worse)
        }),
        grounds: arm.grounds.iter().map(|(ground, of)| (escape::terminal(ground), mark(of))).collect(),
        calibration: arm
            .calibration
            .iter()
            .map(|bin| (format!("{:.0} % certain", bin.certainty * 100.0), mark(&bin.right)))
            .collect(),
        vetoes: arm.vetoes.map(|of| [mark(&of.precision).words, mark(&of.recall).words]),
        talk: arm.talk.as_ref().map(talk_in_words),
        flips: arm.flips.iter().map(flip).collect(),
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

fn difference(of: &Against, scale: &Scale) -> PlotMark {
    let at = |share: f64| scale.at(share * 100.0);
    let interval = of.found.interval;
    let words = points(of.difference, interval);
    PlotMark { at: Some(at(of.difference)), low: at(interval.low), high: at(interval.high), words }
}

fn curve(of: &Curve, tokens: &LogScale) -> CurveShown {
    let height = |share: f64| 100.0 - share * 100.0;
    let place = |figure: f64, share: f64| format!("{:.2} {:.2}", tokens.at(figure), height(share));
    let line: Vec<String> = of.points.iter().map(|point| place(point.tokens, point.right)).collect();
    let high = of.points.iter().map(|point| place(point.tokens, point.interval.high));
    let low = of.points.iter().rev().map(|point| place(point.tokens, point.interval.low));
    let band: Vec<String> = high.chain(low).collect();
    let end = |point: &CurvePoint| {
        format!(
            "{} {}: {:.1} % right, {:.0} tokens",
            point.samples,
            if point.samples == 1 { "sample" } else { "samples" },
            point.right * 100.0,
            point.tokens
        )
    };
    let ends = of.points.first().into_iter().chain(of.points.last()).map(end);
    CurveShown {
        model: escape::terminal(&of.model),
        line: path(&line),
        band: path(&band),
        any_right: height(of.any_right),
        any_words: format!("{:.1} %", of.any_right * 100.0),
        ends: ends.collect::<Vec<_>>().join("; "),
    }
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
