//! The wait that a server asks for before the next try.
//!
//! The input is the headers of an answer, and the current time. The output is a wait, if the server asks for one. This
//! module itself never waits.

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;

/// Returns the wait that a server asks for. OpenAI sends milliseconds in its own header, which comes first. The
/// standard header holds seconds or a date (RFC 9110, section 10.2.3). A number that no wait can have is the longest
/// wait.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    if let Some(text) = header_text(headers, "retry-after-ms")
        && let Some(wait) = read_wait(text, 0.001)
    {
        return Some(wait);
    }
    let text = header_text(headers, "retry-after")?;
    if let Some(wait) = read_wait(text, 1.0) {
        return Some(wait);
    }
    let date = httpdate::parse_http_date(text).ok()?;
    // A date in the past asks for no wait.
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

fn header_text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// Reads a wait in a unit of this many seconds.
fn read_wait(text: &str, unit: f64) -> Option<Duration> {
    let amount: f64 = text.parse().ok().filter(|amount: &f64| *amount >= 0.0)?;
    Some(Duration::try_from_secs_f64(amount * unit).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn every_usual_retry_after_form_is_read() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
        let in_ten = httpdate::fmt_http_date(now + Duration::from_secs(10));
        let gone = httpdate::fmt_http_date(now - Duration::from_secs(10));
        let seconds = |seconds: f64| Some(Duration::from_secs_f64(seconds));
        let table: [(&str, &str, Option<Duration>); 11] = [
            ("retry-after", "5", seconds(5.0)),
            ("retry-after", " 5.0 ", seconds(5.0)),
            ("retry-after", "0.25", seconds(0.25)),
            ("retry-after", "18446744073709551616", Some(Duration::MAX)),
            ("retry-after", "1e300", Some(Duration::MAX)),
            ("retry-after", &in_ten, seconds(10.0)),
            ("retry-after", &gone, seconds(0.0)),
            ("retry-after", "-1", None),
            ("retry-after", "soon", None),
            ("retry-after-ms", "1500", seconds(1.5)),
            ("x-other", "5", None),
        ];
        for (name, value, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_str(value).unwrap());
            assert_eq!(retry_after(&headers, now), expected, "{name}: {value}");
        }
        let mut both = HeaderMap::new();
        both.insert("retry-after", HeaderValue::from_static("7"));
        both.insert("retry-after-ms", HeaderValue::from_static("250"));
        assert_eq!(retry_after(&both, now), seconds(0.25), "the finer one counts");
    }
}
