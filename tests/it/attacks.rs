//! Every way to cheat that is known to have broken such a protocol, and the tests that try it here.

/// An attack, and what it is tried by: functions of the tests, or faults that the simulation and the model must find.
const ATTACKS: [(&str, &[&str]); 33] = [
    (
        "too small a quorum for five or six reviewers",
        &[
            "sizes_are_those_of_the_table",
            "two_quorums_share_an_honest_reviewer_and_the_honest_ones_are_a_quorum",
        ],
    ),
    (
        "the one who proposes shows two changes",
        &["an_orchestrator_who_shows_two_changes_gets_at_most_one_and_is_accused"],
    ),
    (
        "one digest, and another text for each",
        &["a_change_with_another_text_than_the_digest_says_is_not_read"],
    ),
    (
        "a reviewer votes for one thing here and another there",
        &["a_reviewer_who_tells_each_something_else_splits_nobody_and_is_accused"],
    ),
    ("one commit, many times", &["the_same_commit_many_times_counts_once"]),
    ("a forged vote in place of a valid one", &["a_vote_is_not_withdrawn_by_one_that_is_forged"]),
    (
        "one key under two names, and keys under which anything verifies",
        &["nobody_has_two_seats", "a_key_under_which_anything_verifies_is_none"],
    ),
    (
        "a certificate with a stranger, or of another roster",
        &["a_proof_with_a_stranger_or_from_another_roster_is_none"],
    ),
    (
        "what was signed for another place, repository or view",
        &["what_was_said_elsewhere_counts_for_nothing_here"],
    ),
    ("old view changes", &["an_old_view_change_takes_nobody_back"]),
    (
        "a view that begins without locks, or with forged ones",
        &[
            "a_new_view_begins_with_what_a_quorum_approved_and_with_nothing_else",
            "a_lock_that_does_not_hold_hides_no_other",
            "what_was_stripped_or_padded_on_the_way_does_not_stand_in_the_way_of_the_whole",
        ],
    ),
    ("help until a quorum approves, then silence", &["a_reviewer_who_helps_and_then_is_silent_stops_nobody"]),
    (
        "as many silent as may be, and one more",
        &["with_f_silent_there_is_a_decision_and_with_more_there_is_none_until_they_are_back"],
    ),
    (
        "rejected and approved at once by one who votes twice",
        &["a_double_voter_cannot_have_it_both_rejected_and_approved"],
    ),
    (
        "abstentions, and one vote too few",
        &[
            "abstentions_and_a_quorum_less_one_approve_nothing",
            "silence_and_abstention_help_no_quorum_and_make_none_smaller",
        ],
    ),
    (
        "death between writing and saying",
        &[
            "whoever_starts_again_says_the_same_bytes_and_asks_no_model_twice",
            "a_reviewer_that_dies_after_any_post_says_the_same_and_is_asked_once",
            "whoever_is_killed_on_the_way_goes_on_and_the_change_lands_once",
        ],
    ),
    (
        "a log that is torn, changed, lost, or cannot be written",
        &[
            "a_log_that_was_changed_is_not_gone_on_with_and_a_torn_one_is",
            "a_key_whose_log_was_lost_signs_nothing_once_it_learns_of_it",
            "a_reviewer_that_cannot_write_its_log_says_nothing",
            "a_post_that_is_written_oddly_spoils_no_log",
        ],
    ),
    (
        "numbers that nobody has reached, and floods",
        &[
            "a_flood_of_numbers_that_nobody_has_reached_is_not_remembered",
            "whoever_says_a_lot_keeps_nobody_from_a_decision",
            "whoever_says_a_lot_is_read_in_turn_with_the_others",
            "silent_strangers_keep_nobody_from_being_heard",
        ],
    ),
    ("one wrong signature among many", &["one_wrong_signature_spoils_its_own_statement_alone"]),
    (
        "a ledger that is bent, cut, in another order, written anew, or an older copy",
        &[
            "a_ledger_with_a_flipped_byte_or_lines_that_are_gone_or_elsewhere_does_not_verify",
            "a_ledger_that_somebody_has_written_anew_does_not_verify",
            "keys_whose_ledger_is_an_older_copy_sign_nothing",
        ],
    ),
    (
        "death at any step of landing, with a lock left behind",
        &[
            "a_kill_at_any_call_of_git_leaves_the_change_landed_once_or_not_at_all",
            "a_ledger_that_ends_anywhere_is_brought_to_the_same_end",
            "a_lock_that_a_killed_git_has_left_is_named_and_the_change_lands_once_it_is_gone",
        ],
    ),
    (
        "a branch that somebody moves meanwhile, and a base that was left behind",
        &[
            "a_branch_that_has_gone_on_is_not_moved",
            "a_branch_that_somebody_else_has_moved_is_left_alone",
            "nobody_approves_of_a_base_that_was_left_behind",
        ],
    ),
    (
        "a branch that is checked out, with work in it",
        &[
            "a_branch_where_somebody_works_is_not_moved_under_the_files",
            "a_checkout_is_brought_along_if_that_is_wanted_and_nothing_in_it_is_written_over",
        ],
    ),
    (
        "patches that leave the repository or hide what they bring",
        &[
            "a_change_that_leaves_the_repository_or_hides_something_is_refused",
            "a_patch_gives_the_tree_of_its_author_whatever_the_repository_has_set",
            "names_mean_branches_and_whatever_git_calls_binary_is_read",
            "nothing_that_a_compiler_sees_is_hidden_from_a_reviewer",
            "a_change_of_modes_alone_can_be_rejected",
        ],
    ),
    (
        "a change whose tests look for keys and the repository, kill their parent, talk or run for ever",
        &[
            "the_command_sees_the_changed_files_and_nothing_else_and_nobody_is_asked_if_it_fails",
            "a_command_that_kills_its_guard_or_looks_for_the_repository_changes_nothing",
            "a_command_that_stops_its_guard_is_ended_all_the_same",
            "a_command_that_talks_without_end_fills_no_disk",
        ],
    ),
    (
        "a change that brings the rules by which it is decided on",
        &["no_change_is_decided_on_by_its_own_rules"],
    ),
    (
        "a change that talks reviewers into approving",
        &[
            "a_line_that_looks_like_structure_is_shown_as_data",
            "each_reviewer_runs_its_own_command_on_the_tree_that_it_has_made",
            "reviewers_on_one_model_fail_together",
        ],
    ),
    (
        "models that say nothing, too much, or no review",
        &[
            "whatever_a_model_says_that_is_no_review_is_no_vote_for_a_change",
            "a_refused_form_is_asked_for_again_and_its_author_abstains_in_the_end",
        ],
    ),
    (
        "a critical finding, on a line that is there and on one that is not",
        &[
            "one_critical_finding_stops_a_change_if_the_roleset_says_so",
            "a_critical_finding_is_a_veto_if_the_roleset_says_so",
            "a_finding_is_on_a_line_of_the_diff",
        ],
    ),
    (
        "clocks that jump, reviewers that stand still, and networks that carry one way only",
        &[
            "every_schedule_is_safe_and_ends_in_decisions_that_all_know",
            "a_reviewer_that_stands_still_stops_nobody_and_comes_back",
        ],
    ),
    (
        "as many liars as may be, with one who proposes and a torn network",
        &[
            "every_schedule_is_safe_and_ends_in_decisions_that_all_know",
            "four_reviewers_decide_one_thing_in_three_views",
        ],
    ),
    ("a landing that must be taken back", &["a_change_lands_once_as_the_same_commit_and_can_be_taken_back"]),
    (
        "records and envelopes that were changed anywhere",
        &[
            "whatever_is_changed_in_a_record_it_does_not_verify",
            "a_record_of_what_was_not_approved_cannot_be_made_one_of_something_else",
            "a_proposal_whose_tree_is_not_what_its_diff_makes_is_rejected_by_all_who_look",
        ],
    ),
];

#[test]
fn every_known_attack_is_tried() {
    let mut sources = String::new();
    for folder in ["src", "tests"] {
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
