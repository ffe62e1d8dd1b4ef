//! A command prints and exits as the README says, takes a roleset that suits the question, and follows no order of a folder
//! that its user does not trust.

mod built_in_rolesets;
mod default_roleset;
mod first_words;
mod output_and_exit_codes;
mod prometheus_metrics;
mod untrusted_folder;
mod untrusted_names;
