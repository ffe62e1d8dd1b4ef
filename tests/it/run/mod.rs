//! A run keeps every reply that was paid for when a signal or a kill ends it, shows each change of its journal, cites its
//! documents word for word, and sends no text that is redacted.

mod cited_documents;
mod damaged_journal;
mod impossible_token_counts;
mod interrupted_by_signal;
mod lost_servers;
mod programs;
mod redaction_corpus;
mod redaction_in_linear_time;
mod redaction_round_trip;
mod resume_after_kill;
mod run_page;
mod session_chat;
mod session_memory;
mod traces;
mod votes;
