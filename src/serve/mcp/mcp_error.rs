//! Errors of a call, as the protocol has them.

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};

use crate::serve::api_error::ApiError;

/// Returns an error that the calling model is to read: it can do better next time.
pub(super) fn told(why: &ApiError) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(words(why))])
}

/// Returns an error of a request that no model has made.
pub(super) fn refused(why: &ApiError) -> ErrorData {
    ErrorData::invalid_params(words(why), None)
}

/// Returns an error in words that mean something to a client of this protocol. Its runs have no keys.
fn words(why: &ApiError) -> String {
    if why.is_put_down() {
        "the server stops; the run goes on when it is started again, and `result` finds it then".to_owned()
    } else if why.is_cancelled() {
        "the run was cancelled".to_owned()
    } else {
        why.to_string()
    }
}
