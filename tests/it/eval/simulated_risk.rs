//! On voters whose skill is known, the share of wrong answers exceeds a certified risk as seldom as a calibration says.
//!
//! A population of votes goes through the real machine once. Each calibration sees a part of it, drawn at random, and gives answers to
//! all of it. `SEEDS=2000 cargo test --release --test it -- eval::simulated` draws more.

use std::sync::LazyLock;

use consensus::calibration::{CalibratedWay, Calibration, DOUBT, Features, KnownRun, RunLimits};
use crypto::Digest;
use fastrand::Rng;
use protocol::vote::VoteParams;
use protocol::{Finish, OnDisagreement, Outcome, RunSetup, VoteStop};

use super::simulated::{CROWDS, Difficulty, RIGHT, least, share};
use crate::support::{Play, Tiny};

/// The votes of the population.
const POPULATION: usize = 4000;

/// The risk that is certified.
const RISK: f64 = 0.1;

/// Votes with the features of their answers, and whether these are right.
static VOTES: LazyLock<Vec<(Features, bool)>> = LazyLock::new(|| {
    let mut random = Rng::with_seed(5);
    let setup = until_it_is_clear();
    (0..POPULATION).map(|_| vote(&setup, &mut random)).collect()
});

/// A vote that stops once the lead is clear, and always has an answer.
fn until_it_is_clear() -> RunSetup {
    let mut setup = Tiny::vote(1);
    setup.params =
        VoteParams { stop: VoteStop::Sure, on_disagreement: OnDisagreement::Leader, ..VoteParams::default() };
    RunSetup::from(setup)
}

/// Lets voters vote on an item. Every second one is easy.
fn vote(setup: &RunSetup, random: &mut Rng) -> (Features, bool) {
    let easy = Difficulty { right: 0.95, shared: 0.03 };
    let item = if random.bool() { easy } else { Difficulty::draw(random, CROWDS[0]) };
    let mut play = Play::new(setup);
    while play.outcome.is_none() {
        let call = *play.open.keys().next().unwrap();
        play.reply(call, &format!("Answer: {}", item.answer(random)), Finish::Stop);
    }
    let outcome = play.outcome.unwrap();
    let is_right = matches!(&outcome, Outcome::Agreed { text, .. } if *text == RIGHT.to_string());
    (Features::new(&outcome, &play.machine.report()).unwrap(), is_right)
}

/// Calibrates on so many votes of the population, and returns the share of answers that it gives to all of it, and of wrong ones among
/// them.
fn calibrated(random: &mut Rng, items: u64) -> Option<(f64, f64)> {
    let draw = |number: u64| {
        let (features, is_right) = random.choice(VOTES.iter()).unwrap();
        let fingerprint = Digest::new(&number.to_be_bytes());
        KnownRun { fingerprint, question: fingerprint, features: Some(features.clone()), is_right: *is_right }
    };
    let runs: Vec<KnownRun> = (0..items).map(draw).collect();
    let way = CalibratedWay::new(&until_it_is_clear(), &[], RunLimits::default());
    let calibration = Calibration::new(way, runs, "simulated", String::new()).unwrap();
    let threshold = calibration.threshold(RISK).ok()?.from;
    let is_given =
        |features: &Features| calibration.fit.value(features).is_some_and(|value| value >= threshold);
    let given: Vec<bool> =
        VOTES.iter().filter(|(features, _)| is_given(features)).map(|(_, right)| *right).collect();
    let wrong = given.iter().filter(|is_right| !**is_right).count();
    Some((given.len() as f64 / POPULATION as f64, wrong as f64 / given.len() as f64))
}

/// The share of calibrations that exceed the risk is no more than their doubt allows.
#[test]
fn certified_risk_is_rarely_exceeded() {
    let all = VOTES.iter().filter(|(_, is_right)| !is_right).count() as f64 / POPULATION as f64;
    assert!(all > 1.5 * RISK, "without a threshold {all} of the answers are wrong");
    // So many votes are fitted by class alone, and by all features.
    for items in [160, 600] {
        let held = share(|random| calibrated(random, items).is_none_or(|(_, wrong)| wrong <= RISK));
        assert!(held >= least(1.0 - DOUBT), "with {items} votes the risk is held in {held} of calibrations");
    }
}

/// Four in five calibrations give at least two in five of the answers.
#[test]
fn most_calibrations_give_useful_coverage() {
    let useful = share(|random| calibrated(random, 600).is_some_and(|(given, _)| given >= 0.4));
    assert!(useful >= 0.8, "{useful} of calibrations certify and answer at least two in five");
}
