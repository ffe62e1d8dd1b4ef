//! Every way to cheat that is known to have broken such a protocol, and the tests that try it here.

/// An attack, and what it is tried by: functions of the tests, or faults that the simulation and the model must find.
const ATTACKS: [(&str, &[&str]); 33] = [
    (
        "too small a quorum for five or six reviewers",
        &["sizes_are_those_of_the_table", "two_quorums_share_an_honest_reviewer"],
    ),
    ("the one who proposes shows two changes", &["orchestrator_proposing_two_changes_is_accused"]),
    ("one digest, and another text for each", &["change_with_wrong_digest_is_not_read"]),
    ("a reviewer votes for one thing here and another there", &["reviewer_voting_both_ways_is_accused"]),
    ("one commit, many times", &["the_same_commit_many_times_counts_once"]),
    ("a forged vote in place of a valid one", &["forged_vote_withdraws_no_real_vote"]),
    (
        "one key under two names, and keys under which anything verifies",
        &["nobody_has_two_seats", "a_key_under_which_anything_verifies_is_none"],
    ),
    ("a certificate with a stranger, or of another roster", &["proof_with_stranger_is_refused"]),
    (
        "what was signed for another place, repository or view",
        &["what_was_said_elsewhere_counts_for_nothing_here"],
    ),
    ("old view changes", &["an_old_view_change_takes_nobody_back"]),
    (
        "a view that begins without locks, or with forged ones",
        &[
            "new_view_keeps_locked_change",
            "invalid_lock_hides_no_other",
            "altered_copies_do_not_block_whole_message",
        ],
    ),
    ("help until a quorum approves, then silence", &["silence_after_vote_stops_no_decision"]),
    ("as many silent as may be, and one more", &["more_than_f_silent_delay_decision"]),
    ("rejected and approved at once by one who votes twice", &["double_voter_gets_one_outcome"]),
    (
        "abstentions, and one vote too few",
        &["abstentions_and_a_quorum_less_one_approve_nothing", "silence_and_abstention_help_no_quorum"],
    ),
    (
        "death between writing and saying",
        &[
            "restarted_replica_sends_same_bytes",
            "reviewer_death_causes_no_contradiction",
            "killed_processes_resume_and_change_lands_once",
        ],
    ),
    (
        "a log that is torn, changed, lost, or cannot be written",
        &[
            "changed_log_is_refused",
            "key_with_lost_log_is_stopped",
            "reviewer_without_writable_log_stays_silent",
            "oddly_written_packet_spoils_no_log",
        ],
    ),
    (
        "numbers that nobody has reached, and floods",
        &[
            "flood_of_numbers_is_not_remembered",
            "long_opinions_prevent_no_decision",
            "talkative_party_is_read_in_turn",
            "silent_strangers_keep_nobody_from_being_heard",
        ],
    ),
    ("one wrong signature among many", &["one_wrong_signature_spoils_its_own_statement_alone"]),
    (
        "a ledger that is bent, cut, in another order, written anew, or an older copy",
        &[
            "damaged_ledger_does_not_verify",
            "rewritten_ledger_does_not_verify",
            "older_ledger_copy_signs_nothing",
        ],
    ),
    (
        "death at any step of landing, with a lock left behind",
        &[
            "change_lands_once_after_any_kill",
            "truncated_ledger_reaches_same_end",
            "leftover_git_lock_is_named",
        ],
    ),
    (
        "a branch that somebody moves meanwhile, and a base that was left behind",
        &["advanced_branch_is_not_moved", "moved_branch_is_left_alone", "outdated_base_gets_an_abstention"],
    ),
    (
        "a branch that is checked out, with work in it",
        &["checked_out_branch_is_not_moved", "checkout_follows_branch_without_overwriting"],
    ),
    (
        "patches that leave the repository or hide what they bring",
        &[
            "change_outside_repository_is_refused",
            "patch_gives_tree_of_its_author",
            "names_mean_branches_and_not_tags",
            "hidden_characters_and_long_lines_are_shown",
            "a_change_of_modes_alone_can_be_rejected",
        ],
    ),
    (
        "a change whose tests look for keys and the repository, kill their parent, talk or run for ever",
        &[
            "failing_command_prevents_review",
            "hostile_command_changes_nothing",
            "command_that_stops_its_guard_is_ended",
            "endless_command_output_is_truncated",
        ],
    ),
    ("a change that brings the rules by which it is decided on", &["no_change_is_decided_by_own_rules"]),
    (
        "a change that talks reviewers into approving",
        &[
            "structure_like_line_is_shown_as_data",
            "each_reviewer_runs_its_own_command",
            "reviewers_on_one_model_fail_together",
        ],
    ),
    (
        "models that say nothing, too much, or no review",
        &["invalid_review_counts_as_abstention", "refused_form_is_asked_for_again"],
    ),
    (
        "a critical finding, on a line that is there and on one that is not",
        &[
            "critical_finding_vetoes_change",
            "critical_finding_vetoes_if_roleset_says_so",
            "finding_is_on_a_diff_line",
        ],
    ),
    (
        "clocks that jump, reviewers that stand still, and networks that carry one way only",
        &["every_schedule_is_safe_and_decides", "paused_reviewer_blocks_no_decision"],
    ),
    (
        "as many liars as may be, with one who proposes and a torn network",
        &["every_schedule_is_safe_and_decides", "four_reviewers_decide_one_thing_in_three_views"],
    ),
    ("a landing that must be taken back", &["change_lands_once_as_same_commit"]),
    (
        "records and envelopes that were changed anywhere",
        &[
            "changed_record_does_not_verify",
            "rejection_record_cannot_name_another_change",
            "proposal_with_wrong_tree_is_rejected",
        ],
    ),
];

#[test]
fn every_known_attack_is_tried() {
    let mut sources = String::new();
    for folder in ["crates", "src", "tests"] {
        let mut open = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                sources.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    for (attack, tests) in ATTACKS {
        for test in tests {
            assert!(sources.contains(&format!("fn {test}(")), "{attack}: nothing tries it by {test}");
        }
    }
}
