//! A collector of traces, and the way to it.
//!
//! The input is spans. The output is a request of OTLP over HTTP in its binary form, again and again while the collector says that it is
//! busy, up to a limit.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use reqwest::{Client, Url};

use super::error::OtlpError;
use super::spans::spans;
use crate::journal::Record;
use crate::provider::plain_client;

/// The variable with the headers of each request, which may hold a key.
pub const HEADERS_VARIABLE: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// The end of the path to which spans are sent.
const PATH: &str = "v1/traces";

/// The time of one request.
const WAIT: Duration = Duration::from_secs(5);

/// The most requests for the spans of one run.
const TIMES: usize = 4;

/// A collector of traces.
#[derive(Clone, Debug)]
pub struct Collector {
    client: Client,
    url: Url,
    headers: HeaderMap,
    has_content: bool,
}

impl Collector {
    /// Makes the way to the collector at this address. `headers` is what OpenTelemetry's variable says, and `has_content` decides whether
    /// spans have the texts of prompts and replies.
    ///
    /// Returns [`OtlpError::Address`] and [`OtlpError::Headers`].
    pub fn new(url: &str, headers: Option<&str>, has_content: bool) -> Result<Self, OtlpError> {
        let mut place: Url = url.parse().map_err(|why| wrong_address(url, &why))?;
        if !matches!(place.scheme(), "http" | "https") || place.host().is_none() {
            return Err(wrong_address(url, &"it does not begin with http:// or https://"));
        }
        if !place.username().is_empty() || place.password().is_some() {
            let _ = (place.set_username(""), place.set_password(None));
            let why = format!("a password in it would be logged; put it into {HEADERS_VARIABLE}");
            return Err(OtlpError::Address { url: place.to_string(), why });
        }
        if !place.path().ends_with(PATH) {
            let path = format!("{}/{PATH}", place.path().trim_end_matches('/'));
            place.set_path(&path);
        }
        let client = plain_client(WAIT).map_err(|why| wrong_address(url, &why))?;
        let headers = headers.map(read_headers).transpose()?.unwrap_or_default();
        Ok(Self { client, url: place, headers, has_content })
    }

    /// Sends the spans of a run that has ended.
    ///
    /// Returns [`OtlpError::Refused`] if the collector does not take them, and [`OtlpError::Replay`].
    pub async fn send(&self, records: &[Record]) -> Result<(), OtlpError> {
        let body = spans(records, self.has_content)?;
        let sent = (|| self.request(&body)).retry(ExponentialBuilder::default().with_max_times(TIMES - 1));
        let sent = sent.sleep(tokio::time::sleep).when(|(_, is_busy): &(String, bool)| *is_busy).await;
        // The address has no secret, as was checked.
        sent.map_err(|(why, _)| OtlpError::Refused { url: self.url.to_string(), why })
    }

    /// Sends one request. The error says whether another one may succeed.
    async fn request(&self, body: &ExportTraceServiceRequest) -> Result<(), (String, bool)> {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone());
        let request = request.header(http::header::CONTENT_TYPE, "application/x-protobuf");
        let answer = request.body(body.encode_to_vec()).send().await;
        let status =
            answer.map_err(|why| (format!("{:#}", anyhow::Error::from(why.without_url())), true))?.status();
        // OTLP names these as the ones after which a client asks again.
        let is_busy = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        if status.is_success() {
            Ok(())
        } else {
            Err((format!("it answered with the status {status}"), is_busy))
        }
    }
}

/// Reads headers as OpenTelemetry's variable writes them: `NAME=VALUE,…`, with percent encoding in values.
fn read_headers(text: &str) -> Result<HeaderMap, OtlpError> {
    let mut headers = HeaderMap::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(wrong_headers("a part has no `=`"));
        };
        let value = percent_encoding::percent_decode_str(value.trim()).collect::<Vec<u8>>();
        let mut value =
            HeaderValue::from_bytes(&value).map_err(|_| wrong_headers("a value is not one of a header"))?;
        value.set_sensitive(true);
        let name = HeaderName::from_bytes(name.trim().as_bytes())
            .map_err(|_| wrong_headers("a name is not one of a header"))?;
        headers.append(name, value);
    }
    Ok(headers)
}

fn wrong_address(url: &str, why: &dyn std::fmt::Display) -> OtlpError {
    OtlpError::Address { url: url.to_owned(), why: why.to_string() }
}

fn wrong_headers(why: &str) -> OtlpError {
    OtlpError::Headers { name: HEADERS_VARIABLE, why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_may_name_collector_or_traces() {
        let url = |url: &str| Collector::new(url, None, false).map(|collector| collector.url.to_string());
        for (given, sent) in [
            ("http://localhost:4318", "http://localhost:4318/v1/traces"),
            ("http://localhost:4318/", "http://localhost:4318/v1/traces"),
            ("https://otel.example/otlp", "https://otel.example/otlp/v1/traces"),
            ("https://otel.example/v1/traces", "https://otel.example/v1/traces"),
        ] {
            assert_eq!(url(given).unwrap(), sent);
        }
        for wrong in ["localhost:4318", "ftp://x", "http://user:pw@x", ""] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn headers_are_read_as_opentelemetry_writes_them() {
        let headers = read_headers("api-key=abc, x-scope = a%20b,").unwrap();
        assert_eq!(
            (headers["api-key"].to_str().unwrap(), headers["x-scope"].to_str().unwrap()),
            ("abc", "a b")
        );
        assert!(format!("{headers:?}").contains("Sensitive"), "{headers:?}");
        assert!(read_headers("abc").is_err() && read_headers("a b=c").is_err());
    }
}
