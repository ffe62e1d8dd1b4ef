//! The figures of a summary that are counts, on ten items whose runs are written down here one by one.
//!
//! Each expected figure was counted by hand from the table of runs, so that an exchange of two of them is seen.

use std::collections::BTreeSet;

use consensus::eval::{
    ArmItem, ArmSummary, BankItem, BlindLead, DrawnSample, EvalResults, Flips, Item, Summary,
};
use crypto::Digest;
use protocol::OutcomeKind;

use super::simulated::{plan, run};

/// A run of the first arm, which is a vote: its class, the certainty of its lead, and whether its answer is right; without an answer, none
/// of these.
const VOTES: [Option<(&str, f64, bool)>; 10] = [
    Some(("C", 0.99, true)),
    Some(("C", 0.99, true)),
    Some(("C", 0.97, true)),
    Some(("C", 0.97, false)),
    Some(("D", 0.75, true)),
    Some(("D", 0.75, false)),
    Some(("D", 0.55, false)),
    Some(("D", 0.55, false)),
    None,
    None,
];

/// A run of the second arm, which talks: the right ones among the leading answers of its drafts, how many lead, its end, the way of its
/// agreement, whether its answer is right, and its rounds.
type Talk = (u32, u32, OutcomeKind, Option<&'static str>, bool, u32);

const TALKS: [Talk; 10] = [
    // Four agreed at once: three kept a right vote, and one a wrong one.
    (1, 1, OutcomeKind::Agreed, Some("independent"), true, 1),
    (1, 1, OutcomeKind::Agreed, Some("independent"), true, 1),
    (1, 1, OutcomeKind::Agreed, Some("independent"), true, 1),
    (0, 1, OutcomeKind::Agreed, Some("independent"), false, 1),
    // Talk made one right and two wrong, all in two rounds.
    (0, 1, OutcomeKind::Agreed, Some("converged"), true, 2),
    (1, 1, OutcomeKind::Agreed, Some("converged"), false, 2),
    (1, 1, OutcomeKind::NoAgreement, None, false, 2),
    // A tie that talk settled rightly, in three rounds.
    (1, 2, OutcomeKind::Agreed, Some("converged"), true, 3),
    // A veto of a wrong answer, and one of a right answer.
    (0, 1, OutcomeKind::Vetoed, None, false, 1),
    (1, 1, OutcomeKind::Vetoed, None, false, 1),
];

fn summary() -> Summary {
    let samples = [true, false].map(|is_right| DrawnSample { answer: None, is_right }).to_vec();
    let bank = BankItem { samples, models: BTreeSet::new(), tokens: 10.0 };
    let item = |at: usize| {
        let vote = match VOTES[at] {
            Some((class, certainty, is_right)) => ArmItem {
                grounds: Some(class.to_owned()),
                certainty: Some(certainty),
                ..run(is_right, None, 20)
            },
            None => ArmItem {
                outcome: OutcomeKind::NoAgreement,
                answer: None,
                certainty: Some(0.5),
                ..run(false, None, 20)
            },
        };
        let (right, of, outcome, how, is_right, rounds) = TALKS[at];
        let talk = run(is_right, Some(BlindLead { right, of }), 20);
        let grounds = how.map(str::to_owned);
        let answer = grounds.as_ref().map(|_| String::new());
        let talk = ArmItem { outcome, grounds, answer, rounds, ..talk };
        Item {
            id: at.to_string(),
            cluster: None,
            banks: vec![Some(bank.clone())],
            arms: vec![Some(vote), Some(talk)],
        }
    };
    let mut plan = plan();
    plan.items = 10;
    plan.samples = 2;
    Summary::new(&plan, &EvalResults { items: (0..10).map(item).collect() })
}

#[test]
fn answers_are_counted_by_their_grounds() {
    let summary = summary();
    let [vote, talk] = &summary.arms[..] else { panic!("two arms") };
    let counted = |arm: &ArmSummary| -> Vec<(String, usize, usize)> {
        arm.grounds.iter().map(|(name, of)| (name.clone(), of.count, of.of)).collect()
    };
    assert_eq!(counted(vote), [("C".to_owned(), 3, 4), ("D".to_owned(), 1, 4)]);
    assert_eq!(counted(talk), [("converged".to_owned(), 2, 3), ("independent".to_owned(), 3, 4)]);
    assert_eq!((vote.answered.count, vote.right.count, vote.right_when_answered.of), (8, 4, 8));
    assert_eq!((talk.answered.count, talk.right.count, talk.right_when_answered.of), (7, 5, 7));
}

#[test]
fn talk_is_compared_with_draft_vote() {
    let summary = summary();
    let talk = summary.arms[1].talk.unwrap();
    assert_eq!((talk.kept, talk.lost, talk.gained, talk.missed), (3, 3, 1, 2));
    assert_eq!((talk.untied, talk.untied_wrong), (1, 0));
    // Half of the tie was right before any talk: 5 of 10 in the end, and 6.5 of 10 before.
    assert!((talk.difference - -0.15).abs() < 1e-12, "{}", talk.difference);
    let flips: Vec<(u32, Flips)> =
        summary.arms[1].flips.iter().map(|(rounds, flips)| (*rounds, *flips)).collect();
    let of = |runs, gained, lost| Flips { runs, gained, lost };
    assert_eq!(flips, [(1, of(6, 0, 1)), (2, of(3, 1, 2)), (3, of(1, 0, 0))]);
    assert!(summary.arms[0].talk.is_none() && summary.arms[0].flips.is_empty());
}

/// A veto counts as good where the vote over the drafts is wrong.
#[test]
fn veto_is_scored_by_draft_vote() {
    let summary = summary();
    assert!(summary.arms[0].vetoes.is_none());
    let vetoes = summary.arms[1].vetoes.unwrap();
    // Two vetoes, one of them of a wrong answer; three drafts were wrong, and one of these was vetoed.
    assert_eq!((vetoes.precision.count, vetoes.precision.of), (1, 2));
    assert_eq!((vetoes.recall.count, vetoes.recall.of), (1, 3));
}

#[test]
fn risk_curve_starts_with_surest_answers() {
    let summary = summary();
    let points = |at: usize| -> Vec<(String, f64, usize, usize)> {
        let points = summary.arms[at].risk.iter();
        points
            .map(|point| (point.from.clone(), point.coverage, point.errors.count, point.errors.of))
            .collect()
    };
    let at = |from: &str, coverage, errors, of| (from.to_owned(), coverage, errors, of);
    assert_eq!(
        points(0),
        [
            at("99.0 % certain", 0.2, 0, 2),
            at("97.0 % certain", 0.4, 1, 4),
            at("75.0 % certain", 0.6, 2, 6),
            at("55.0 % certain", 0.8, 4, 8),
        ]
    );
    assert_eq!(
        points(1),
        [at("independent", 0.4, 1, 4), at("within 2 rounds", 0.6, 2, 6), at("within 3 rounds", 0.7, 2, 7)]
    );
    let bins: Vec<(f64, usize, usize)> = summary.arms[0]
        .calibration
        .iter()
        .map(|bin| (bin.certainty, bin.right.count, bin.right.of))
        .collect();
    let expected = [(0.55, 0, 2), (0.75, 1, 2), (0.98, 3, 4)];
    assert_eq!(bins.len(), expected.len(), "{bins:?}");
    for (bin, expected) in bins.iter().zip(expected) {
        assert!((bin.0 - expected.0).abs() < 1e-12 && (bin.1, bin.2) == (expected.1, expected.2), "{bins:?}");
    }
}

/// The verdict on an arm. `is_right` says of each item whether its one sample is right, and whether the arm is. So many items are a
/// cluster.
fn verdict(
    items: usize,
    cluster: Option<usize>,
    effect: f64,
    is_right: impl Fn(usize) -> [bool; 2],
) -> String {
    let of = |at: usize| {
        let [sample, vote] = is_right(at);
        let samples = vec![DrawnSample { answer: Some(Digest::new(b"4")), is_right: sample }];
        let bank = BankItem { samples, models: BTreeSet::new(), tokens: 20.0 };
        let arms = vec![Some(run(vote, None, 20)), Some(run(false, None, 20))];
        let cluster = cluster.map(|of| (at / of).to_string());
        Item { id: at.to_string(), cluster, banks: vec![Some(bank)], arms }
    };
    let mut plan = plan();
    (plan.items, plan.samples, plan.effect) = (items, 1, effect);
    plan.cluster = cluster.map(|_| "text".to_owned());
    let summary = Summary::new(&plan, &EvalResults { items: (0..items).map(of).collect() });
    summary.arms[0].verdict.unwrap().summary()
}

/// The exact bound of 97.5 % on one item of 183 is 3 %.
#[test]
fn single_differing_item_widens_bound() {
    let differing = |count: usize| verdict(183, None, 0.02, |at| [true, at >= count]);
    assert_eq!(differing(0), "equivalent");
    assert!(differing(1).starts_with("not enough data"), "{}", differing(1));
    let of_many = verdict(2000, None, 0.02, |at| [at % 20 != 0, at % 20 != 1]);
    assert_eq!(of_many, "equivalent", "as many differ on either side");
}

/// Twenty-five texts of forty questions each, of which the arm answers four more than the samples do.
#[test]
fn a_clear_difference_between_clusters_is_found() {
    let gained = verdict(1000, Some(40), 0.02, |at| [at % 40 < 20, at % 40 < 23 + (at / 40) % 3]);
    assert_eq!(gained, "helps");
    let lost = verdict(1000, Some(40), 0.02, |at| [at % 40 < 20, at % 40 < 15 + (at / 40) % 3]);
    assert_eq!(lost, "hurts");
    // Ten texts that all gain one question of five are as sure as their signs, and not more.
    let alike = |at: usize| [at % 5 < 2, at % 5 < 3];
    assert_eq!(verdict(50, Some(5), 0.02, alike), "helps");
    assert!(verdict(25, Some(5), 0.02, alike).starts_with("not enough data"), "five signs are too few");
    // Two texts of twenty-five decide nothing, however many questions they have.
    let of_two = |at: usize| [at % 40 < 20, at % 40 < if at < 80 { 40 } else { 20 }];
    let conclusion = verdict(1000, Some(40), 0.02, of_two);
    assert!(conclusion.starts_with("not enough data"), "{conclusion}");
}
