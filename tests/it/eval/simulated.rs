//! On voters whose skill is known, an evaluation finds what is there, and nothing else.
//!
//! Each item has a difficulty, and wrong answers that its voters share. Two crowds of voters differ in their skill and in how far their
//! errors are related. Their answers go through the real machines of `vote` and `pair`; banks are drawn in the same way. Talk that does
//! nothing must be found to do nothing, a difference must be found with the number of items that the program states, and intervals must
//! hold the truth. `SEEDS=2000 cargo test --release --test it -- eval::simulated` draws more.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use consensus::calibration::RunLimits;
use consensus::eval::{
    Against, ArmItem, BankItem, BlindLead, DrawnSample, EvalPlan, EvalResults, EvalVerdict, Item, PlannedArm,
    PlannedBank, Summary,
};
use crypto::Digest;
use fastrand::Rng;
use protocol::pair::PairParams;
use protocol::text::CanonicalKind;
use protocol::vote::VoteParams;
use protocol::{Finish, OnDisagreement, Outcome, OutcomeKind, RunSetup, Setup, VoteStop};
use serde_json::json;
use statistics::{Interval, wilson, wilson_of_clusters};

use crate::support::{Play, Tiny, envelope};

/// The right answer; others are wrong.
pub(super) const RIGHT: u32 = 4;

/// The samples of the curve, and those that the arm counts.
const SAMPLES: u32 = 6;
const COUNTED: u32 = 3;

/// The number of studies that are simulated.
static SEEDS: LazyLock<u64> =
    LazyLock::new(|| std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(24));

/// Voters who are right on an item with a probability from `least` to 1, and share one wrong answer in this part of their errors.
#[derive(Clone, Copy)]
pub(super) struct Crowd {
    least: f64,
    related: f64,
}

/// Voters of mixed skill whose errors are often the same, and better ones whose errors are seldom so.
pub(super) const CROWDS: [Crowd; 2] =
    [Crowd { least: 0.0, related: 0.6 }, Crowd { least: 0.4, related: 0.2 }];

/// An item: the probability of a right answer, and of the one wrong answer that many voters share.
#[derive(Clone, Copy)]
pub(super) struct Difficulty {
    pub(super) right: f64,
    pub(super) shared: f64,
}

impl Difficulty {
    pub(super) fn draw(random: &mut Rng, crowd: Crowd) -> Self {
        let right = crowd.least + (1.0 - crowd.least) * random.f64();
        Self { right, shared: (1.0 - right) * crowd.related }
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

/// Two agents who talk until one of them takes over the other's text.
fn pair() -> Setup<PairParams> {
    let mut setup = Tiny::setup();
    setup.params.weigh = false;
    setup
}

/// Lets two agents talk about their drafts by the machine of `pair`, where the agent of this number gives in. Returns whether the answer is
/// right, and the vote over the drafts.
fn talked(setup: &Setup<PairParams>, drafts: [u32; 2], yielding: usize) -> (bool, BlindLead) {
    let mut play = Play::new(setup);
    let outcome = play.run_to_end(|ask| {
        let agent = ask.call.agent;
        if ask.call.round > 1 && agent == yielding && drafts[0] != drafts[1] {
            return envelope(ask, &json!({"accepts": format!("P{}", 2 - agent), "because": "counted again"}));
        }
        envelope(ask, &json!({"text": drafts[agent].to_string()}))
    });
    let tally = play.machine.report().blind_vote.tally;
    let most = tally.iter().map(|one| one.votes).max();
    let leading = || tally.iter().filter(|one| Some(one.votes) == most);
    let right = leading().filter(|one| one.text == RIGHT.to_string()).count();
    let count = |count: usize| u32::try_from(count).unwrap();
    let lead = BlindLead { right: count(right), of: count(leading().count()) };
    (matches!(outcome, Outcome::Agreed { text, .. } if text == RIGHT.to_string()), lead)
}

/// The majority of three voters, where the first of equals leads.
fn majority() -> RunSetup {
    let mut setup = Tiny::vote(1);
    setup.params = VoteParams {
        stop: VoteStop::None,
        samples_max: Some(COUNTED),
        on_disagreement: OnDisagreement::Leader,
        ..VoteParams::default()
    };
    RunSetup::from(setup)
}

pub(super) fn plan() -> EvalPlan {
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
        limits: RunLimits::default(),
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

pub(super) fn run(is_right: bool, blind: Option<BlindLead>, tokens: u64) -> ArmItem {
    ArmItem {
        run: String::new(),
        cluster: None,
        models: BTreeSet::new(),
        outcome: OutcomeKind::Agreed,
        grounds: None,
        certainty: None,
        answer: Some(String::new()),
        is_right,
        drafts: Vec::new(),
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

/// A study of some items.
#[derive(Clone, Copy)]
struct Study {
    items: usize,
    crowd: Crowd,
    /// The probability that a wrong answer of the first arm is mended.
    mended: f64,
    /// The probability that talk settles on the right one of two drafts.
    wisdom: f64,
    /// The smallest difference of interest.
    effect: f64,
}

impl Study {
    /// A study in which nothing helps.
    fn of(items: usize, seed: u64) -> Self {
        let crowd = CROWDS[usize::try_from(seed).unwrap() % CROWDS.len()];
        Self { items, crowd, mended: 0.0, wisdom: 0.5, effect: 0.02 }
    }

    /// Simulates the study: in the first arm the machine of `vote` counts three samples, and a wrong answer may be mended. In the second,
    /// two agents talk, and one of them gives in.
    fn run(self, random: &mut Rng) -> Summary {
        let (vote, pair) = (majority(), pair());
        let item = |number: usize| {
            let item = Difficulty::draw(random, self.crowd);
            let samples = (0..SAMPLES).map(|_| item.answer(random)).map(|answer| DrawnSample {
                answer: Some(Digest::new(&answer.to_be_bytes())),
                is_right: answer == RIGHT,
            });
            let samples = samples.collect();
            let is_right = voted(&vote, random, item) || random.f64() < self.mended;
            let drafts = [item.answer(random), item.answer(random)];
            let wrong = usize::from(drafts[0] == RIGHT);
            let yielding = if random.f64() < self.wisdom { wrong } else { 1 - wrong };
            let (settled, blind) = talked(&pair, drafts, yielding);
            Item {
                id: number.to_string(),
                cluster: None,
                banks: vec![Some(BankItem { models: BTreeSet::new(), samples, tokens: 100.0 })],
                arms: vec![
                    Some(run(is_right, None, u64::from(COUNTED) * 100)),
                    Some(run(settled, Some(blind), 800)),
                ],
            }
        };
        let results = EvalResults { items: (0..self.items).map(item).collect() };
        Summary::new(&EvalPlan { items: self.items, effect: self.effect, ..plan() }, &results)
    }
}

fn against(summary: &Summary) -> Against {
    summary.arms[0].against.unwrap()
}

/// What is true of a crowd, over so many items that it is the truth.
#[derive(Clone, Copy)]
struct Truth {
    /// The share of right answers by the majority of three, where chance breaks a tie.
    majority: f64,
    /// The share of items of which exactly one of two drafts is right.
    split: f64,
}

static TRUTHS: LazyLock<[Truth; 2]> = LazyLock::new(|| CROWDS.map(truth));

fn truth(crowd: Crowd) -> Truth {
    let mut random = Rng::with_seed(99);
    let items = 400_000;
    let (mut majority, mut split) = (0, 0);
    for _ in 0..items {
        let item = Difficulty::draw(&mut random, crowd);
        let answers = [item.answer(&mut random), item.answer(&mut random), item.answer(&mut random)];
        let count = |answer: u32| answers.iter().filter(|other| **other == answer).count();
        let most = answers.iter().map(|answer| count(*answer)).max().unwrap();
        majority += u32::from(answers.iter().find(|answer| count(**answer) == most) == Some(&RIGHT));
        split += u32::from((answers[0] == RIGHT) != (answers[1] == RIGHT));
    }
    let share = |count: u32| f64::from(count) / f64::from(items);
    Truth { majority: share(majority), split: share(split) }
}

/// Returns what is true of the crowd of a seed.
fn truth_of(seed: u64) -> Truth {
    TRUTHS[usize::try_from(seed).unwrap() % CROWDS.len()]
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

fn holds(interval: Interval, truth: f64) -> bool {
    (interval.low..=interval.high).contains(&truth)
}

#[test]
fn useless_talk_is_found_useless() {
    let (mut arms, mut talks, mut verdicts) = (0, 0, 0);
    for seed in 0..*SEEDS {
        let summary = Study::of(200, seed).run(&mut Rng::with_seed(seed));
        arms += u32::from(holds(against(&summary).found.interval, 0.0));
        talks += u32::from(holds(summary.arms[1].talk.unwrap().found.interval, 0.0));
        let words = summary.arms[0].verdict.unwrap().summary();
        verdicts += u32::from(words != "helps" && words != "hurts");
    }
    for (count, what) in [(arms, "an arm"), (talks, "talk"), (verdicts, "a verdict")] {
        let found = f64::from(count) / *SEEDS as f64;
        assert!(found >= least(0.95), "{what}: {found}");
    }
}

#[test]
fn stated_items_suffice_to_find_difference() {
    // Half the difference takes four times the items.
    let difference = if *SEEDS >= 1000 { 0.03 } else { 0.06 };
    let mut found = 0;
    // The number that is stated varies with the few items that it is drawn from.
    let needed = [0, 1].map(|seed| {
        let pilot = Study { effect: difference, ..Study::of(60, seed) };
        let pilots = (0..16).map(|draw| match pilot.run(&mut Rng::with_seed(draw)).arms[0].verdict {
            Some(EvalVerdict::NotEnough { items }) => items,
            other => panic!("{other:?}"),
        });
        (pilots.sum::<f64>() / 16.0).ceil()
    });
    for seed in 0..*SEEDS {
        let items = needed[usize::try_from(seed).unwrap() % 2];
        assert!((60.0..6000.0).contains(&items), "{items}");
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is a small whole number"
        )]
        let study = Study::of(items as usize, seed);
        let mended = difference / (1.0 - truth_of(seed).majority);
        let summary = Study { mended, ..study }.run(&mut Rng::with_seed(seed));
        found += u32::from(against(&summary).found.interval.low > 0.0);
    }
    let found = f64::from(found) / *SEEDS as f64;
    println!("a difference of {difference} is found by {found} of studies with {needed:?} items");
    assert!(found >= least(0.8), "{found} of studies with {needed:?} items");
}

#[test]
fn intervals_cover_truth_as_stated() {
    const NAMES: [&str; 6] = ["a difference", "talk", "the curve", "the control", "Wilson", "clusters"];
    let (mended, wisdom) = (0.2, 0.8);
    let mut held = [0; NAMES.len()];
    for seed in 0..*SEEDS {
        let random = &mut Rng::with_seed(seed);
        let truth = truth_of(seed);
        let summary = Study { mended, wisdom, ..Study::of(200, seed) }.run(random);
        let right = random.f64();
        let mut count = 0.0;
        for _ in 0..200 {
            if random.f64() < right {
                count += 1.0;
            }
        }
        let (clustered, of_clusters) = clusters(random);
        let found = [
            holds(against(&summary).found.interval, mended * (1.0 - truth.majority)),
            holds(summary.arms[1].talk.unwrap().found.interval, (wisdom - 0.5) * truth.split),
            holds(summary.curves[0].points[2].interval, truth.majority),
            holds(summary.curves[0].control.unwrap().1, 0.0),
            holds(wilson(count / 200.0, 200.0), right),
            holds(clustered, of_clusters),
        ];
        held.iter_mut().zip(found).for_each(|(held, found)| *held += u32::from(found));
    }
    for (held, name) in held.iter().zip(NAMES) {
        let held = f64::from(*held) / *SEEDS as f64;
        println!("{name}: {held}");
        // The bootstrap of 200 items is a little narrow for talk, which changes nothing on most of them.
        let level = if name == "talk" { 0.93 } else { 0.95 };
        assert!(held >= least(level), "{name}: the interval holds the truth in {held}");
        if *SEEDS >= 1000 {
            assert!(held >= 0.93, "{name}: the interval holds the truth in {held}");
            // The interval of clusters is wider on purpose, as that of Student is.
            assert!(held <= 0.97 || name == "clusters", "{name}: an interval is too wide: {held}");
        }
    }
}

/// Draws 25 clusters of eight items that share their difficulty, and returns the interval of the share of right ones, and the truth.
fn clusters(random: &mut Rng) -> (Interval, f64) {
    let mut drawn = Vec::new();
    for _ in 0..25 {
        let item = Difficulty::draw(random, CROWDS[0]);
        let mut right = 0.0;
        for _ in 0..8 {
            if item.answer(random) == RIGHT {
                right += 1.0;
            }
        }
        drawn.push((right, 8.0));
    }
    (wilson_of_clusters(&drawn), 0.5)
}
