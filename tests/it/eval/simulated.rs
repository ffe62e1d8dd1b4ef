//! On voters whose skill is known, an evaluation finds what is there, and nothing else.
//!
//! Each item has a difficulty, and wrong answers that its voters share. Their answers go through the real machine of `vote`; banks are drawn
//! in the same way. Talk that does nothing must be found to do nothing, a difference must be found with the number of items that the
//! program states, and intervals must hold the truth. `SEEDS=2000 cargo test --release --test it -- eval::simulated` draws more.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use consensus::crypto::Digest;
use consensus::eval::{
    Against, ArmItem, BankItem, BlindLead, DrawnSample, EvalPlan, EvalResults, Item, PlannedArm, PlannedBank,
    Summary,
};
use consensus::protocol::vote::VoteParams;
use consensus::protocol::{Finish, OnDisagreement, Outcome, OutcomeKind, RunSetup, StopRule};
use consensus::statistics::{items_needed, wilson};
use consensus::text::CanonicalKind;
use fastrand::Rng;

use crate::support::{Play, Tiny};

/// The right answer; others are wrong.
pub(super) const RIGHT: u32 = 4;

/// The samples of the curve, and those that the arm counts.
const SAMPLES: u32 = 6;
const COUNTED: u32 = 3;

/// The number of studies that are simulated.
static SEEDS: LazyLock<u64> =
    LazyLock::new(|| std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(24));

/// An item: the probability of a right answer, and of the one wrong answer that many voters share.
#[derive(Clone, Copy)]
pub(super) struct Difficulty {
    pub(super) right: f64,
    pub(super) shared: f64,
}

impl Difficulty {
    pub(super) fn draw(random: &mut Rng) -> Self {
        let right = random.f64();
        Self { right, shared: (1.0 - right) * 0.6 }
    }

    /// Draws an answer.
    pub(super) fn answer(self, random: &mut Rng) -> u32 {
        let lot = random.f64();
        match lot {
            lot if lot < self.right => RIGHT,
            lot if lot < self.right + self.shared => RIGHT + 1,
            _ => RIGHT + 2 + random.u32(0..20),
        }
    }
}

/// Counts answers by the machine of `vote`, and returns whether its answer is right.
fn voted(setup: &RunSetup, random: &mut Rng, item: Difficulty) -> bool {
    let mut play = Play::new(setup);
    while play.outcome.is_none() {
        let call = *play.open.keys().next().unwrap();
        let said = format!("Answer: {}", item.answer(random));
        play.reply(call, &said, Finish::Stop);
    }
    matches!(play.outcome, Some(Outcome::Agreed { text, .. }) if text == RIGHT.to_string())
}

/// The majority of three voters, where the first of equals leads.
fn majority() -> RunSetup {
    let mut setup = Tiny::vote(1);
    setup.params = VoteParams {
        stop: StopRule::None,
        samples_max: Some(COUNTED),
        on_disagreement: OnDisagreement::Leader,
        ..VoteParams::default()
    };
    RunSetup::from(setup)
}

fn plan() -> EvalPlan {
    let arm = |name: &str| PlannedArm {
        name: name.to_owned(),
        roleset: name.to_owned(),
        protocol: "vote".to_owned(),
        model: String::new(),
        settings: Vec::new(),
        bank: None,
        curve: 0,
        is_on_curve: false,
    };
    EvalPlan {
        v: EvalPlan::VERSION,
        data: "simulated".to_owned(),
        data_sha256: Digest::new(b"simulated"),
        tasks_sha256: Digest::new(b"simulated"),
        kind: CanonicalKind::Number,
        items: 0,
        parts: 1,
        cluster: None,
        seed: 1,
        samples: SAMPLES,
        primary: "arm".to_owned(),
        effect: 0.02,
        pilot: false,
        arms: vec![arm("arm"), arm("talk")],
        banks: vec![PlannedBank {
            folder: "bank".to_owned(),
            roleset: "vote_number".to_owned(),
            model: String::new(),
            settings: Vec::new(),
            words: SAMPLES,
            programs: 0,
            is_curve: true,
        }],
    }
}

fn run(is_right: bool, blind: Option<BlindLead>, tokens: u64) -> ArmItem {
    ArmItem {
        run: String::new(),
        cluster: None,
        models: BTreeSet::new(),
        outcome: OutcomeKind::Agreed,
        grounds: None,
        certainty: None,
        answer: Some(String::new()),
        is_right,
        blind,
        rounds: 1,
        prompt: 0,
        cached: 0,
        completion: tokens,
        calls: 1,
        milliseconds: 0,
        cost_micro_usd: None,
    }
}

/// A study: in the first arm the machine counts three samples, and a wrong answer is mended with probability `mended`. In the second, two
/// agents talk: a tie of their drafts is broken by chance, and nothing else changes.
fn study(random: &mut Rng, items: usize, mended: f64) -> Summary {
    let setup = majority();
    let item = |number: usize| {
        let item = Difficulty::draw(random);
        let samples = (0..SAMPLES).map(|_| item.answer(random)).map(|answer| DrawnSample {
            answer: Some(Digest::new(&answer.to_be_bytes())),
            is_right: answer == RIGHT,
        });
        let samples = samples.collect();
        let is_right = voted(&setup, random, item) || random.f64() < mended;
        let drafts = [item.answer(random), item.answer(random)];
        let right = drafts.iter().filter(|draft| **draft == RIGHT).count();
        let blind = match right {
            1 => BlindLead { right: 1, of: 2 },
            0 => BlindLead { right: 0, of: 1 },
            _ => BlindLead { right: 1, of: 1 },
        };
        let talked = random.f64() < blind.share();
        Item {
            id: number.to_string(),
            cluster: None,
            banks: vec![Some(BankItem { models: BTreeSet::new(), samples, tokens: 100.0 })],
            arms: vec![
                Some(run(is_right, None, u64::from(COUNTED) * 100)),
                Some(run(talked, Some(blind), 800)),
            ],
        }
    };
    let results = EvalResults { items: (0..items).map(item).collect() };
    Summary::new(&EvalPlan { items, ..plan() }, &results)
}

fn against(summary: &Summary) -> Against {
    summary.arms[0].against.unwrap()
}

/// The share of right answers by the majority of three, where chance breaks a tie: over so many items that it is the truth.
fn truth() -> f64 {
    let mut random = Rng::with_seed(99);
    let items = 400_000;
    let right = |random: &mut Rng| {
        let item = Difficulty::draw(random);
        let answers = [item.answer(random), item.answer(random), item.answer(random)];
        let count = |answer: u32| answers.iter().filter(|other| **other == answer).count();
        let most = answers.iter().map(|answer| count(*answer)).max().unwrap();
        answers.iter().find(|answer| count(**answer) == most) == Some(&RIGHT)
    };
    f64::from((0..items).map(|_| u32::from(right(&mut random))).sum::<u32>()) / f64::from(items)
}

/// Returns the share of studies for which this holds.
pub(super) fn share(mut holds: impl FnMut(&mut Rng) -> bool) -> f64 {
    let count = (0..*SEEDS).filter(|seed| holds(&mut Rng::with_seed(*seed))).count();
    count as f64 / *SEEDS as f64
}

/// The least share of studies that passes for a property that holds with this probability: a share of so few studies varies.
pub(super) fn least(probability: f64) -> f64 {
    probability - 2.6 * (probability * (1.0 - probability) / *SEEDS as f64).sqrt()
}

#[test]
fn talk_that_does_nothing_is_found_to_do_nothing() {
    let (mut arms, mut talks, mut verdicts) = (0_u64, 0_u64, 0_u64);
    for seed in 0..*SEEDS {
        let summary = study(&mut Rng::with_seed(seed), 200, 0.0);
        let holds_zero = |low: f64, high: f64| u64::from(low <= 0.0 && high >= 0.0);
        let interval = against(&summary).found.interval;
        arms += holds_zero(interval.low, interval.high);
        let talk = summary.arms[1].talk.unwrap().found.interval;
        talks += holds_zero(talk.low, talk.high);
        let words = summary.arms[0].verdict.unwrap().in_words();
        verdicts += u64::from(words != "helps" && words != "hurts");
    }
    let share = |count: u64| count as f64 / *SEEDS as f64;
    for (found, what) in [(share(arms), "an arm"), (share(talks), "talk"), (share(verdicts), "a verdict")] {
        assert!(found >= least(0.95), "{what}: {found}");
    }
}

#[test]
fn a_difference_is_found_with_the_items_that_are_stated() {
    let wrong = 1.0 - truth();
    // Half the difference takes four times the items.
    let difference = if *SEEDS >= 1000 { 0.03 } else { 0.06 };
    let mended = difference / wrong;
    let error = against(&study(&mut Rng::with_seed(7), 400, mended)).found.error;
    let items = items_needed(error * error * 400.0, difference);
    assert!((100.0..6000.0).contains(&items), "{items}");
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a small whole number")]
    let found = share(|random| against(&study(random, items as usize, mended)).found.interval.low > 0.0);
    assert!(found >= least(0.8), "{found} of studies with {items} items");
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let right = truth();
    let mended = 0.2;
    let expected = mended * (1.0 - right);
    let held = share(|random| {
        let interval = against(&study(random, 200, mended)).found.interval;
        (interval.low..=interval.high).contains(&expected)
    });
    assert!(held >= least(0.95), "the bootstrap holds the truth in {held}");
    let wilson_held = share(|random| {
        let right = random.f64();
        let count = (0..200).filter(|_| random.f64() < right).count() as f64;
        let interval = wilson(count / 200.0, 200.0);
        (interval.low..=interval.high).contains(&right)
    });
    assert!(wilson_held >= least(0.95), "Wilson's holds it in {wilson_held}");
    if *SEEDS >= 1000 {
        assert!(held.max(wilson_held) <= 0.97, "an interval is too wide: {held}, {wilson_held}");
    }
}
