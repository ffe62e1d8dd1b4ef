//! A protocol finds an agreement by its rules alone: the same events give the same actions, blind answers are blind, a long
//! document is read to its end, and no hostile reply, no nonsense and no lookalike is agreed on.

mod council_confidence;
mod council_counts;
mod determinism;
mod hostile_replies;
mod long_documents;
mod lookalike_numbers;
mod lost_members;
mod no_agreement_on_nonsense;
mod pair_counts;
mod panel_counts;
mod panel_end_to_end;
mod panel_is_fair;
mod task_suite_is_solvable;
mod votes_settle;
mod what_agents_read;
