//! The results of calls and their errors, as the protocol has them.

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Resource};
use serde::Serialize;
use serde_json::json;

use crate::serve::http::ApiError;

/// Returns a report as the result of a call. The text is for clients that read no structured results.
pub(super) fn report_result(report: &impl Serialize) -> CallToolResult {
    let value = json!(report);
    let mut content = vec![ContentBlock::text(value.to_string())];
    if let Some(whole) = value["whole"].as_str() {
        content.push(ContentBlock::resource_link(Resource::new(whole, "the whole result")));
    }
    let mut result = CallToolResult::success(content);
    result.structured_content = Some(value);
    result
}

/// Returns the result of a call as an object, which every such result is.
pub(super) fn to_object(result: &CallToolResult) -> JsonObject {
    serde_json::from_value(json!(result)).unwrap_or_default()
}

/// Returns an error that the calling model is to read: it can do better next time.
pub(super) fn error_result(why: &ApiError) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(error_text(why))])
}

/// Returns an error of a request that no model has made.
pub(super) fn refuse(why: &ApiError) -> ErrorData {
    ErrorData::invalid_params(error_text(why), None)
}

/// Returns an error in words that mean something to a client of this protocol. Its runs have no keys.
fn error_text(why: &ApiError) -> String {
    if why.is_put_down() {
        "the server stops; the run goes on when it is started again, and `result` finds it then".to_owned()
    } else if why.is_cancelled() {
        "the run was cancelled".to_owned()
    } else {
        why.to_string()
    }
}
