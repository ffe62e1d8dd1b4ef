//! Recorded samples of a small model, replayed through the machines that count blind answers.
//!
//! ```text
//!  tests/experiments/banks ──► samples in drawn orders ──► machine of a roleset ──► accuracy and tokens
//!                                       └────────────────► plain majority ───────► accuracy at the same tokens
//! ```
//!
//! The test says what a way of agreeing is worth beside the plain majority that takes as many tokens. A run that ends without an answer
//! counts as wrong. The tokens of replies are those of the bank, and the prompt of a sample has as many as were measured for the bank. For
//! any other call they are an estimate: a prompt has tokens at the rate of a sample's prompt, and a reply one for four bytes.
//!
//! A few orders of the samples are played in each test run. This command plays a hundred, and prints the figures:
//!
//! ```text
//! REPLAYS=100 cargo test --release -p consensus-llm-protocol --test replays -- --nocapture
//! ```

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![expect(clippy::cast_precision_loss, reason = "the figures are for people, and their numbers are small")]

mod bank;
mod play;

use bank::{MajorityPoint, SampleBank, right_at};
use play::{PlayedRun, TokenRate, play, setup};
use protocol::text::{CanonicalKind, CanonicalRule};

/// A way may be so many points below the majority that takes the tokens of its samples.
const POINTS_BELOW_MAX: f64 = 1.0;
/// The prompts of a way's samples are at most this much longer than those of the bank, in percent, so that the bank's figure can count.
const LONGER_PROMPT_MAX: u64 = 10;

/// A set of tasks with its bank.
struct TaskSet {
    bank: &'static str,
    /// The mean tokens of the prompts with which the bank was drawn.
    prompt_tokens: u64,
    /// The roleset with which the bank was drawn.
    drawn_with: &'static str,
    pair: &'static str,
    /// A question in place of those of the set, which are not kept. It is about as long.
    question: &'static str,
    rule: fn() -> CanonicalRule,
}

/// A way of agreeing.
struct CountedWay {
    name: &'static str,
    roleset: &'static str,
    /// The parameters in place of the roleset's own.
    changes: &'static [(&'static str, &'static str)],
    /// The most tokens of a run, in percent of those of its samples.
    cost_max: f64,
}

const NUMBERS: TaskSet = TaskSet {
    bank: "numbers",
    prompt_tokens: 229,
    drawn_with: "vote_number",
    pair: "solver_checker",
    question: "Mia sells lemonade at the market. She sold 26 cups on Friday and twice as many on Saturday. Each cup costs 3 dollars, \
               and she pays 14 dollars for sugar. How many dollars does she keep?",
    rule: || CanonicalKind::Number.into(),
};

const CHOICES: TaskSet = TaskSet {
    bank: "choices",
    prompt_tokens: 249,
    drawn_with: "vote_choice",
    pair: "mcq_reasoner_auditor",
    question: "A firm sends a message with a digital signature over a network that others can read. What does the signature prove to \
               the person who receives it? The options are that no one else has read it, that it comes from the firm and is whole, \
               that it came by the shortest way, and that it was compressed.",
    rule: || CanonicalRule {
        choices: ["A", "B", "C", "D"].map(str::to_owned).to_vec(),
        ..CanonicalKind::Choice.into()
    },
};

/// The ways that count blind answers. A pair answers by the packs of its two members in turn, and the bank has one kind of samples for both.
/// A vote that does not settle answers with its leader, as in an evaluation.
fn ways(set: &TaskSet) -> Vec<CountedWay> {
    vec![
        CountedWay {
            name: "vote",
            roleset: set.drawn_with,
            changes: &[("on_disagreement", "leader")],
            cost_max: 100.0,
        },
        CountedWay { name: "pair", roleset: set.pair, changes: &[("talk", "differing")], cost_max: 150.0 },
        CountedWay { name: "panel", roleset: "panel_agree", changes: &[], cost_max: 110.0 },
        CountedWay { name: "council", roleset: "council_agree", changes: &[], cost_max: 150.0 },
    ]
}

/// The means over all tasks and orders.
struct WayFigures {
    right: f64,
    samples: f64,
    sample_tokens: f64,
    tokens: f64,
}

/// Returns the number of orders that are played.
fn orders() -> u64 {
    let Ok(text) = std::env::var("REPLAYS") else { return 4 };
    text.parse().unwrap_or_else(|_| panic!("REPLAYS is {text}, and should be a number such as 100"))
}

/// Returns the rate of tokens in prompts: that of the prompts with which the bank was drawn.
fn prompt_rate(set: &TaskSet, bank: &SampleBank) -> TokenRate {
    let drawn = setup(set.drawn_with, &[], &(set.rule)(), set.question);
    let order = bank.orders(1).next().unwrap();
    let run = play(&drawn, bank, &order, TokenRate { tokens: 1, bytes: 1 });
    TokenRate { tokens: bank.prompt_tokens, bytes: run.prompt_bytes }
}

fn play_all(set: &TaskSet, bank: &SampleBank, way: &CountedWay, rate: TokenRate) -> WayFigures {
    let setup = setup(way.roleset, way.changes, &(set.rule)(), set.question);
    let (mut sum, mut right, mut runs) = (PlayedRun::default(), 0.0, 0.0);
    for order in bank.orders(orders()) {
        let run = play(&setup, bank, &order, rate);
        let prompt = rate.estimate(run.prompt_bytes);
        assert!(
            100 * prompt <= (100 + LONGER_PROMPT_MAX) * bank.prompt_tokens,
            "{}: its samples have longer prompts ({prompt} tokens) than those of the bank, so their figures do not apply",
            way.name
        );
        sum.samples += run.samples;
        sum.sample_tokens += run.sample_tokens;
        sum.other_tokens += run.other_tokens;
        right += f64::from(u8::from(run.is_right));
        runs += 1.0;
    }
    WayFigures {
        right: right / runs,
        samples: sum.samples as f64 / runs,
        sample_tokens: sum.sample_tokens as f64 / runs,
        tokens: (sum.sample_tokens + sum.other_tokens) as f64 / runs,
    }
}

fn replay(set: &TaskSet) {
    let bank = SampleBank::read(set.bank, set.prompt_tokens);
    let (rate, curve) = (prompt_rate(set, &bank), bank.majorities(orders()));
    println!("{}: {} orders; right in %, tokens for a task with prompts", set.bank, orders());
    for MajorityPoint { samples, right, tokens } in &curve {
        println!("majority of {samples:2}   {:5.1}   {tokens:6.0}", 100.0 * right);
    }
    for way in ways(set) {
        let WayFigures { right, samples, sample_tokens, tokens } = play_all(set, &bank, &way, rate);
        let gain = 100.0 * (right - right_at(&curve, sample_tokens));
        let gain_of_all = 100.0 * (right - right_at(&curve, tokens));
        let cost = 100.0 * tokens / sample_tokens;
        println!(
            "{:6} {:5.1}   {samples:4.2} samples, {sample_tokens:6.0} tokens: {gain:+.1} points against the majority; \
             with all calls {tokens:6.0} tokens ({cost:.0} %): {gain_of_all:+.1} points",
            way.name,
            100.0 * right,
        );
        assert!(
            gain >= -POINTS_BELOW_MAX,
            "{}: {gain:+.2} points against the majority at equal tokens",
            way.name
        );
        assert!(cost <= way.cost_max, "{}: {cost:.0} % of the tokens of its samples", way.name);
    }
}

/// Each way finds as many right numbers as the majority that takes the tokens of its samples, and costs little beside them.
#[test]
fn numbers_are_worth_their_tokens() {
    replay(&NUMBERS);
}

/// The same for questions with options.
#[test]
fn choices_are_worth_their_tokens() {
    replay(&CHOICES);
}
