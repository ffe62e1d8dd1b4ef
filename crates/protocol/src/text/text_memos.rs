//! The stores that the machines of many runs share.
//!
//! The program that runs machines makes them once and gives them to each setup. A setup that is read from a record, or
//! made in a test, has none. No result depends on a store, so all are equal, and no record has them.

use std::sync::Arc;

use jsonschema::Validator;

use super::decoding::Decoder;
use super::memo::Memo;
use super::schema::SchemaText;

/// The stores of many runs. The default has no room, and keeps nothing.
///
/// A batch makes the same schemas for each of its runs, which takes longer than a turn.
#[derive(Clone, Debug, Default)]
pub struct TextMemos {
    /// The decoders of asks.
    pub(crate) decoders: Memo<Arc<Decoder>>,
    /// The schemas of asks, by their texts.
    pub(crate) schemas: Memo<SchemaText>,
    /// Folded instructions, by their texts.
    pub(crate) folded: Memo<Arc<str>>,
    /// Compiled schemas that check the form alone.
    pub forms: Memo<Arc<Validator>>,
}

impl TextMemos {
    /// Creates stores with room, which clones share.
    pub fn shared() -> Self {
        Self {
            decoders: Memo::new(1024),
            schemas: Memo::new(1024),
            folded: Memo::new(256),
            // A compiled schema may take a megabyte.
            forms: Memo::new(32),
        }
    }
}

impl PartialEq for TextMemos {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
