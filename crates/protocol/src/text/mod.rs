//! The texts that models write, and the rules for which of them count as the same text.
//!
//! A reply enters as an untrusted string. [`extract`] finds the one JSON object in it, [`Envelope::parse`] reads it
//! strictly, and [`schema`] checks it. The [`Canonicalizer`] gives its final text one form and one digest. Texts that
//! say nothing or break a stated rule are refused by [`vacuity`] and [`Constraint`]. The functions of [`escape`] make
//! such text safe to show to another model.
//!
//! Everything here is pure: no clock, file, network or randomness, and no repair. A reply is either taken unchanged or
//! refused with a [`Violation`], whose words are sent back to its author. Nothing is ever filled in or mended on an
//! agent's behalf.

mod answer_schema;
mod canonical;
mod constraint;
mod decimal;
pub mod decoding;
mod demand;
mod echo;
mod envelope;
pub mod escape;
pub mod evidence;
mod extract;
mod failed_check;
mod final_text;
mod likeness;
mod measure;
mod memo;
pub mod program;
mod reading;
pub mod redact;
pub mod schema;
mod sentences;
mod shape;
mod short_answer;
mod strict_json;
mod substance;
mod text_memos;
pub mod vacuity;
mod verbatim;
mod violation;
mod wording;

pub use answer_schema::AnswerSchema;
pub use canonical::{Canonical, CanonicalKind, CanonicalRule, Canonicalizer, NotCanonical};
pub use constraint::{Bounds, Constraint};
pub use decimal::{DecimalSign, NotANumber};
pub use demand::{Demand, find_demands};
pub use envelope::{AnswerChange, Artifact, ChangeBy, Envelope, FinalSolution, Meta, SOLVED_MARKER, Status};
pub use escape::one_line;
pub use extract::{Extracted, REPLY_BYTES_MAX, extract, read_one};
pub use failed_check::FailedCheck;
pub use final_text::FinalText;
pub use likeness::Likeness;
pub(crate) use likeness::{LIKE, TextProfile, find_medoid};
pub(crate) use measure::strip_fence;
pub use measure::{LetterCase, TextLanguage};
pub use memo::Memo;
pub use program::{ProgramFault, print_the_same};
pub(crate) use reading::TextReading;
pub use sentences::listed_sentences;
pub(crate) use shape::{AnswerForm, CHOICES_MAX, closed, non_empty_string};
pub(crate) use short_answer::ShortAnswer;
pub use short_answer::is_short;
pub use strict_json::{DEPTH_MAX, StrictValue, check_depth};
pub use substance::{DifferenceKind, TextDifference};
pub(crate) use substance::{SortedText, differences};
pub use text_memos::TextMemos;
pub use verbatim::find_verbatim;
pub use violation::Violation;
pub use wording::{counted, excerpts, grouped, percent};
