//! Groups of runs as a page: one file with a table and plots, which loads nothing and runs nothing.
//!
//! In: groups, and what a reader must know first. Out: HTML with its drawings inside. Where things stand on a drawing is decided
//! here; the template says how they look. Whatever names are in it are text, whatever they say.

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, context};
use serde::Serialize;

use super::groups::Group;
use super::share::{Share, share_in_words};
use crate::text::escape;

/// How wide the part of a drawing is in which things are measured.
const WIDTH: f64 = 560.0;

/// How high a drawing is whose height is measured.
const HEIGHT: f64 = 300.0;

/// So many characters of a name fit beside a drawing.
const SHORT_CHARS: usize = 34;

/// More rounds than this share one column.
const ROUNDS_MAX: u32 = 20;

/// A group, and where its marks stand.
#[derive(Serialize)]
struct Shown<'a> {
    number: usize,
    /// What its runs have in common.
    name: String,
    /// As much of that as fits beside a drawing.
    short: String,
    runs: u64,
    /// Runs that failed or came to a limit.
    cut_off: u64,
    usd: Option<f64>,
    rates: [Mark; 3],
    /// Where its point stands among those of other groups; nothing where no answer is known.
    point: Option<Point>,
    /// One bar for each number of rounds.
    rounds: Vec<Bar>,
    /// 5, 25, 50, 75 and 95 %.
    seconds: [f64; 5],
    group: &'a Group,
}

/// A share and its interval.
#[derive(Serialize)]
struct Mark {
    x: Option<f64>,
    low: f64,
    high: f64,
    words: String,
}

#[derive(Serialize)]
struct Point {
    x: f64,
    y: f64,
    low: f64,
    high: f64,
}

#[derive(Serialize)]
struct Bar {
    rounds: u32,
    count: u64,
    /// How high it is, from 0 to 1: the part of its group's runs that it is of, by the largest such part of all groups.
    height: f64,
}

/// A line of an axis, and what stands at it.
#[derive(Serialize)]
struct Tick {
    at: f64,
    label: String,
}

/// Makes the page.
///
/// # Panics
///
/// Not with the template that is built in, which names only what it is given.
#[must_use]
pub fn page(title: &str, groups: &[Group], warnings: &[String]) -> String {
    let tokens_max = most(groups, |group| group.tokens);
    let seconds_max = most(groups, |group| group.seconds_p95);
    let rounds_max = groups.iter().filter_map(|group| group.by_rounds.keys().next_back()).max();
    let rounds_max = rounds_max.copied().unwrap_or_default().min(ROUNDS_MAX);
    let show = |(at, group)| shown(at, group, tokens_max, seconds_max, rounds_max);
    let mut shown: Vec<Shown<'_>> = groups.iter().enumerate().map(show).collect();
    let highest = shown.iter().flat_map(|shown| &shown.rounds).map(|bar| bar.height).fold(0.0, f64::max);
    for bar in shown.iter_mut().flat_map(|shown| &mut shown.rounds) {
        bar.height /= highest.max(1e-6);
    }
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    let percent = |share: u32| Tick { at: f64::from(share) / 100.0 * WIDTH, label: format!("{share} %") };
    let of = context! {
        title => escape::terminal(title),
        by => groups.first().map(|group| group.of.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")),
        warnings => warnings.iter().map(|warning| escape::terminal(warning)).collect::<Vec<_>>(),
        groups => Serde(&shown),
        has_answers => shown.iter().any(|shown| shown.point.is_some()),
        measures => ["agreed", "right", "right blind"],
        percents => Serde([0, 25, 50, 75, 100].map(percent)),
        tokens => Serde(ticks(tokens_max)),
        seconds => Serde(ticks(seconds_max)),
        rounds => (0..=rounds_max).collect::<Vec<_>>(),
        rounds_max,
        is_capped => rounds_max == ROUNDS_MAX,
        width => WIDTH,
        height => HEIGHT,
    };
    let rendered = environment.render_named_str("page.html", include_str!("page.html"), of);
    rendered.expect("the template names only what it is given")
}

fn shown(at: usize, group: &Group, tokens_max: f64, seconds_max: f64, rounds_max: u32) -> Shown<'_> {
    let plain = |name: &String| if name.is_empty() { "-".to_owned() } else { escape::terminal(name) };
    let name = group.of.iter().map(|(_, name)| plain(name)).collect::<Vec<_>>().join(" · ");
    let short = shortened(&name);
    let mark = |part: &Share| Mark {
        x: part.share.map(|share| share * WIDTH),
        low: part.low * WIDTH,
        high: part.high * WIDTH,
        words: share_in_words(part),
    };
    let up = |share: f64| (1.0 - share) * HEIGHT;
    let right = &group.right;
    let ended = group.ended.by_protocol().max(1) as f64;
    let bar = |rounds: u32| {
        // The last one is also of all that are more.
        let is_here = |count: &u32| count.min(&rounds_max) == &rounds;
        let count = group.by_rounds.iter().filter(|(count, _)| is_here(count)).map(|(_, runs)| runs).sum();
        Bar { rounds, count, height: count as f64 / ended }
    };
    let seconds =
        [group.seconds_p5, group.seconds_p25, group.seconds_p50, group.seconds_p75, group.seconds_p95];
    Shown {
        number: at + 1,
        name,
        short,
        runs: group.ended.all(),
        cut_off: group.ended.all() - group.ended.by_protocol(),
        usd: group.cost_micro_usd.map(|cost| cost as f64 / 1e6),
        rates: [mark(&group.agreed), mark(right), mark(&group.blind_right)],
        point: right.share.map(|share| Point {
            x: group.tokens / top(tokens_max) * WIDTH,
            y: up(share),
            low: up(right.low),
            high: up(right.high),
        }),
        rounds: (0..=rounds_max).map(bar).collect(),
        seconds: seconds.map(|seconds| seconds / top(seconds_max) * WIDTH),
        group,
    }
}

fn most(groups: &[Group], figure: impl Fn(&Group) -> f64) -> f64 {
    let most = groups.iter().map(figure).fold(0.0, f64::max);
    // Where there is nothing to measure an axis has its numbers all the same.
    if most > 0.0 { most } else { 1.0 }
}

/// From one line of an axis to the next: 1, 2 or 5 times a power of ten, so that there are about five.
fn step(max: f64) -> f64 {
    let rough = max.max(1e-6) / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough);
    factor.unwrap_or(10.0) * power
}

/// A name that fits: names that are made alike differ at their ends.
fn shortened(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= SHORT_CHARS {
        return name.to_owned();
    }
    let (first, last) = (&chars[..SHORT_CHARS / 2], &chars[chars.len() - SHORT_CHARS / 2..]);
    first.iter().chain(&['…']).chain(last).collect()
}

/// Where an axis ends: at the first line that nothing is beyond.
fn top(max: f64) -> f64 {
    (max.max(1e-6) / step(max)).ceil() * step(max)
}

fn ticks(max: f64) -> Vec<Tick> {
    let (step, top) = (step(max), top(max));
    let values = std::iter::successors(Some(0.0), |value| Some(value + step));
    values
        .take_while(|value| *value <= top + step / 2.0)
        .map(|value| Tick { at: value / top * WIDTH, label: brief(value, step) })
        .collect()
}

/// A number as short as its axis allows.
fn brief(value: f64, step: f64) -> String {
    if step >= 1000.0 && value > 0.0 {
        return format!("{} k", value / 1000.0);
    }
    if step >= 1.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_a_few_round_numbers_and_ends_behind_the_last_point() {
        for (max, labels) in [
            (0.0, "0"),
            (0.9, "0 0.2 0.4 0.6 0.8 1"),
            (100.0, "0 20 40 60 80 100"),
            (12_345.0, "0 5 k 10 k 15 k"),
            (7.2, "0 2 4 6 8"),
        ] {
            let found: Vec<String> = ticks(max).into_iter().map(|tick| tick.label).collect();
            assert!(found.join(" ").starts_with(labels), "{max}: {found:?}");
            assert!(top(max) >= max, "{max}");
        }
    }
}
