//! Finding passages in a user's documents.
//!
//! ```text
//!  files ──read──► text ──cut──► passages ──► BM25 index on disk
//!                                                 │
//!  words to search for ───────────────────────────┴──► the best passages within a budget
//! ```
//!
//! The input is files and folders that the user names, and words. The output is passages, each with its file and its
//! offset in bytes, so that a quotation can be checked by anyone who has the file. Nothing leaves the machine,
//! nothing is run, and no file is changed. The index is in the user's cache and contains nothing that is not in the
//! files. A file that cannot be read is reported, never silently skipped.
//!
//! An index is kept for each set of places, and brought up to date when it is opened: only files that are new or have
//! changed are read again. For HTML and PDF the extracted text is indexed, and offsets count its bytes.

mod corpus;
mod cut;
mod error;
mod files;
mod passages;
mod pdf;
mod pieces;

pub use corpus::{Corpus, IndexUpdate};
pub use error::RetrievalError;
pub use files::SkippedFile;
pub use pdf::{PdfReader, READ_PDF, read_pdf_within_limits};
pub use pieces::pieces;
