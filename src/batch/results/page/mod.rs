//! Groups of runs as a page: one file with a table, plots and the tasks behind them, which loads nothing and runs nothing.
//!
//! The input is groups, their tasks, and their provenance. The output is HTML that contains its drawings. Positions on a drawing are
//! decided here, in percent of its width; the template decides their look. Names are always shown as plain text.

mod behind;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::Serialize;

use self::behind::{list_tasks, show_provenance};
use super::difference::Difference;
use super::groups::Group;
use super::samples::Samples;
use super::share::{Share, format_share};
use crate::batch::folder::Provenance;
use crate::page::{Blocks, PlotMark, Scale, environment, point_labels};
use protocol::text::escape;

/// The greatest number of rounds with a column of its own, which longer runs share.
const ROUNDS_MAX: u32 = 20;

/// The content of a page.
#[derive(Debug)]
pub struct PageContent<'a> {
    /// The subject of the page.
    pub title: &'a str,
    /// The time at which the page is made, RFC 3339.
    pub made_at: &'a str,
    /// The name and version of the program.
    pub program: &'a str,
    /// The provenance of the figures.
    pub provenances: &'a [Provenance],
    /// The warnings that a reader must see first.
    pub warnings: &'a [String],
    pub groups: &'a [Group],
    /// The differences of the groups from one of them.
    pub differences: &'a [Difference],
    /// The tasks behind each group, in the same order.
    pub samples: &'a Samples,
    /// The transcripts of runs, by their folders and ids.
    pub transcripts: &'a BTreeMap<(String, String), String>,
}

/// A group, and the positions of its marks.
#[derive(Serialize)]
struct ShownGroup<'a> {
    number: usize,
    /// The values that its runs have in common.
    name: String,
    runs: u64,
    /// The runs that failed or reached a limit.
    cut_off: u64,
    usd: Option<f64>,
    /// The numbers of runs that the talk made right and made wrong; `None` if neither is known.
    talk: Option<(u64, u64)>,
    rates: [PlotMark; 3],
    /// The position of its point among those of other groups; `None` if no answer is known.
    point: Option<PlotMark>,
    tokens_at: f64,
    /// The label of its point, which lists all points that lie close together; empty if another point has the label.
    point_label: String,
    /// One bar for each number of rounds.
    rounds: Vec<RoundsBar>,
    /// The 5th, 25th, 50th, 75th and 95th percentiles.
    seconds: [f64; 5],
    tasks: Value,
    group: &'a Group,
}

#[derive(Serialize)]
struct RoundsBar {
    rounds: u32,
    count: u64,
    /// The share of the group's runs in this bar, in percent of the axis.
    height: f64,
}

/// The axes of all drawings.
struct Scales {
    tokens: Scale,
    seconds: Scale,
    /// The axis of percent of runs.
    parts: Scale,
    /// The fewest and the most rounds with a column.
    rounds: RangeInclusive<u32>,
}

/// Makes the page.
///
/// # Panics
///
/// Never panics with the built-in template, which uses only the names that it is given.
pub fn page(content: &PageContent<'_>) -> String {
    let scales = Scales::new(content.groups);
    let mut tasks = content.samples.groups();
    let runs = content.transcripts.keys().map(|(folder, run)| (folder.as_str(), run.as_str()));
    let anchors: BTreeMap<(&str, &str), usize> = runs.zip(1..).collect();
    let mut shown: Vec<ShownGroup<'_>> = content
        .groups
        .iter()
        .enumerate()
        .map(|(at, group)| {
            let no_tasks = BTreeMap::new();
            let tasks = list_tasks(tasks.next().unwrap_or(&no_tasks), &anchors);
            scales.show(at, group, tasks)
        })
        .collect();
    label_points(&mut shown);
    let widest = content.differences.iter().flat_map(|of| [of.low.abs(), of.high.abs()]).fold(0.0, f64::max);
    let differences = Scale::around_zero(widest * 100.0);
    let of = context! {
        title => escape::terminal(content.title),
        made_at => content.made_at,
        program => content.program,
        provenances => content.provenances.iter().map(show_provenance).collect::<Vec<_>>(),
        by => content.groups.first().map(|group| group.of.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")),
        warnings => content.warnings.iter().map(|warning| escape::terminal(warning)).collect::<Vec<_>>(),
        groups => Serde(&shown),
        has_answers => shown.iter().any(|shown| shown.point.is_some()),
        measures => ["agreed", "right", "right blind"],
        kinds => ["agreed", "right", "blind"],
        percents => Serde(Scale::up_to(100.0).ticks()),
        parts => Serde(scales.parts.ticks()),
        tokens => Serde(scales.tokens.ticks()),
        seconds => Serde(scales.seconds.ticks()),
        rounds => scales.rounds.clone().collect::<Vec<_>>(),
        slot => 100.0 / scales.rounds.clone().count() as f64,
        is_capped => *scales.rounds.end() == ROUNDS_MAX,
        differences => Serde(content.differences.iter().map(|of| difference_mark(of, &differences)).collect::<Vec<_>>()),
        points => Serde(differences.ticks()),
        transcripts => Serde(content.transcripts.values().map(|text| Blocks::new(text)).collect::<Vec<_>>()),
    };
    let rendered = environment().render_named_str("page.html", include_str!("page.html"), of);
    rendered.expect("the template names only what it is given")
}

impl Scales {
    fn new(groups: &[Group]) -> Self {
        let counts = groups.iter().flat_map(|group| group.by_rounds.keys());
        let counts: BTreeSet<u32> = counts.map(|rounds| *rounds.min(&ROUNDS_MAX)).collect();
        let fewest = counts.first().copied().unwrap_or_default();
        let rounds = fewest..=counts.last().copied().unwrap_or_default();
        let parts = groups.iter().flat_map(|group| bars(group, &rounds));
        let parts = parts.map(|(_, _, part)| part).fold(0.0, f64::max);
        Self {
            tokens: Scale::up_to(groups.iter().map(|group| group.tokens).fold(0.0, f64::max)),
            seconds: Scale::up_to(groups.iter().map(|group| group.seconds_p95).fold(0.0, f64::max)),
            parts: Scale::up_to(parts),
            rounds,
        }
    }

    fn show<'a>(&self, at: usize, group: &'a Group, tasks: Value) -> ShownGroup<'a> {
        let mut names = Vec::new();
        for (_, name) in &group.of {
            names.push(if name.is_empty() { "-".to_owned() } else { escape::terminal(name) });
        }
        let talk = &group.talk;
        let is_talk_known = talk.kept + talk.lost + talk.gained + talk.missed > 0;
        let seconds =
            [group.seconds_p5, group.seconds_p25, group.seconds_p50, group.seconds_p75, group.seconds_p95];
        ShownGroup {
            number: at + 1,
            name: names.join(" · "),
            runs: group.ended.all(),
            cut_off: group.ended.all() - group.ended.by_protocol(),
            usd: group.cost_micro_usd.map(|cost| cost as f64 / 1e6),
            talk: if is_talk_known { Some((talk.gained, talk.lost)) } else { None },
            rates: [share_mark(&group.agreed), share_mark(&group.right), share_mark(&group.blind_right)],
            point: if group.right.share.is_some() { Some(share_mark(&group.right)) } else { None },
            tokens_at: self.tokens.at(group.tokens),
            point_label: String::new(),
            rounds: bars(group, &self.rounds)
                .map(|(rounds, count, part)| RoundsBar { rounds, count, height: self.parts.at(part) })
                .collect(),
            seconds: seconds.map(|seconds| self.seconds.at(seconds)),
            tasks,
            group,
        }
    }
}

/// Returns the number of runs of a group for each number of rounds, and its share of the group in percent.
fn bars(group: &Group, rounds: &RangeInclusive<u32>) -> impl Iterator<Item = (u32, u64, f64)> {
    let ended = group.ended.by_protocol().max(1) as f64;
    let most = *rounds.end();
    rounds.clone().map(move |rounds| {
        // The last column also counts longer runs.
        let here = group.by_rounds.iter().filter(|(count, _)| most.min(**count) == rounds);
        let count: u64 = here.map(|(_, runs)| runs).sum();
        (rounds, count, count as f64 / ended * 100.0)
    })
}

/// Writes the number of each group at its point.
fn label_points(shown: &mut [ShownGroup<'_>]) {
    let mut places = Vec::new();
    for group in shown.iter() {
        let at = group.point.as_ref().and_then(|point| point.at);
        places.push(at.map(|at| (group.tokens_at, at)));
    }
    let labels = point_labels(&places);
    for (group, label) in shown.iter_mut().zip(labels) {
        group.point_label = label;
    }
}

fn share_mark(of: &Share) -> PlotMark {
    let at = of.share.map(|share| share * 100.0);
    PlotMark { at, low: of.low * 100.0, high: of.high * 100.0, words: format_share(of) }
}

fn difference_mark(of: &Difference, scale: &Scale) -> PlotMark {
    PlotMark {
        at: of.mean.map(|mean| scale.at(mean * 100.0)),
        low: scale.at(of.low * 100.0),
        high: scale.at(of.high * 100.0),
        words: escape::terminal(&of.summary()),
    }
}
