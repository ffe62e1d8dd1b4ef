//! The ledger of a budget, made from the journal of a shard.
//!
//! The input is records in the order of the journal, or the states that follow from them. The output is the ledger, or the first permit that
//! does not follow from the records before it. A batch that continues and `verify` read it in the same way. Nothing is permitted here.

mod ledger_reader;

pub(super) use ledger_reader::{read_ledger, take_record};
