//! Redaction takes time in proportion to a text, whatever the text says.

use nix::sys::resource::{UsageWho, getrusage};
use protocol::text::redact::Redactor;

/// What a text is made of: its beginning, what is repeated, and its end. Each is the worst that is known for a form.
const TEXTS: [(&str, &str, &str); 41] = [
    // Values inside of values.
    ("", "password=", ")"),
    ("", "pw='x pw=abcde ", ""),
    ("", "--a", "-token none"),
    ("", "-", ""),
    ("", "password is ", ""),
    ("", "token   ", ""),
    // Forms that fail late beside others that match.
    ("", "curl sk-aaaaaaaaaaaaaaaa ", ""),
    ("", "eyJ-AKIAAAAAAAAAAAAAAAAA-", ""),
    ("", "pypi-AKIAAAAAAAAAAAAAAAAA-", ""),
    ("", "-----BEGIN RSA PRIVATE KEY----- ", ""),
    ("", "-----END ", ""),
    ("", "a://b:c", ""),
    ("", "authorization:", ""),
    // Addresses and numbers that run into each other.
    ("", "a@b.cc.1.", ""),
    ("", "a%40b.cc.1", ""),
    ("", "\"a@", ""),
    ("", "0612345678 ", ""),
    ("", "2222 ", ""),
    ("", "+1 ", ""),
    ("", "a:b:", ""),
    ("", "[A_1", ""),
    ("", "a at b dot ", ""),
    ("", "a [at] b (dot) ", ""),
    ("", "a @ b . ", ""),
    ("", "a&#64;b.", ""),
    ("", "4111,", ""),
    ("", "4111/", ""),
    ("", "020 123 ", ""),
    ("", "(020", ""),
    ("", "12345678901", ""),
    ("", "061234567890123 ", ""),
    ("", "٠٠٣١٢٣٤٥٦٧٨ ", ""),
    ("", "0031 20 ", ""),
    ("", "00", ""),
    // Keys and secrets: prefixes, cookies, phrases, words.
    ("", "sk-", ""),
    ("", "AKIA", ""),
    ("", "v1.0-", ""),
    ("", "cookie: a=b; ", ""),
    ("", "passphrase: a b ", ""),
    ("", "password: abc ", ""),
    ("", "machine a login ", ""),
];

/// The length of the shorter of two texts, in bytes.
const SHORT: usize = 64 << 10;

/// How many times as long the other one is.
const FACTOR: usize = 4;

/// Returns the time that this thread spends on a text, in microseconds; what else the machine does is not in it.
fn cost(text: &str) -> i64 {
    let spent = || {
        let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
        let time = usage.user_time();
        time.tv_sec() * 1_000_000 + time.tv_usec()
    };
    let mut redactor = Redactor::default();
    let before = spent();
    let redacted = redactor.redact(text);
    let after = spent();
    assert_eq!(redactor.redactions().restore(&redacted), text);
    after - before
}

/// A text four times as long takes at most about eight times the time, where quadratic work takes sixteen.
#[test]
#[cfg(target_os = "linux")]
fn redaction_time_stays_near_linear() {
    for (start, unit, end) in TEXTS {
        let text = |bytes: usize| format!("{start}{}{end}", unit.repeat(bytes / unit.len()));
        let (short, long) = (text(SHORT), text(FACTOR * SHORT));
        // The first pass fills caches; of what disturbs, some may be in any.
        let least = |text: &str| (0..3).map(|_| cost(text)).min().unwrap();
        let (short, long) = (least(&short), least(&long));
        // Work that grows with the square takes sixteen times as long.
        let most = 2 * i64::try_from(FACTOR).unwrap() * short + 40_000;
        assert!(long <= most, "`{start}{unit}…{end}`: {short} µs, and {long} µs for {FACTOR} times as much");
    }
}
