//! The names and marks that a server gave to one reply, so that its provider can be asked about it later.
//!
//! The input is fields of an answer and a header, as the server sent them. The output is a [`Receipt`], bounded and
//! without keys. Nothing here is compared with anything, because a receipt is only the server's word.

use reqwest::Response;

use super::secret::Cleaner;
use protocol::core::Receipt;
use protocol::text::escape;

/// The most characters of each text of a receipt. Providers use about 40.
const TEXT_CHARS_MAX: usize = 200;

/// Returns a name that a server gave, without keys and within its bound; nothing for an empty one.
pub(super) fn clean_name(cleaner: &mut Cleaner<'_>, text: String) -> Option<String> {
    limit_text(&cleaner.text(text))
}

fn limit_text(text: &str) -> Option<String> {
    let text: String = escape::plain(text).chars().take(TEXT_CHARS_MAX).collect();
    if text.trim().is_empty() { None } else { Some(text) }
}

/// The parts of a receipt, as they arrive.
#[derive(Debug, Default)]
pub(super) struct ReceiptParts {
    pub(super) id: Option<String>,
    pub(super) system_fingerprint: Option<String>,
    pub(super) created: Option<u64>,
    pub(super) request_id: Option<String>,
}

impl ReceiptParts {
    /// Starts with the request's name, from the header `name` of an answer.
    pub(super) fn new(response: &Response, name: &str) -> Self {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        Self { request_id: value.map(str::to_owned), ..Self::default() }
    }

    /// Returns the receipt, or nothing if the server sent no part of one.
    pub(super) fn into_receipt(self, cleaner: &mut Cleaner<'_>) -> Option<Receipt> {
        let receipt = Receipt {
            id: self.id.and_then(|text| clean_name(cleaner, text)),
            system_fingerprint: self.system_fingerprint.and_then(|text| clean_name(cleaner, text)),
            created: self.created,
            request_id: self.request_id.map(|text| cleaner.header(text)).and_then(|text| limit_text(&text)),
        };
        if receipt == Receipt::default() { None } else { Some(receipt) }
    }
}
