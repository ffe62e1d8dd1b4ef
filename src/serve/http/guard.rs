//! The guard of the server: which requests are heard at all.
//!
//! The input is the headers of a request. The output is the caller, or a refusal. A page in a browser can send requests to a server on
//! its own machine, under a name of its choice or across sites. So the name in `Host` must be one of the server's, or an address, and a
//! page that sends a request must come from the same port of the server. A token is compared in a time that does not depend on it.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use axum::http::{HeaderMap, header};
use subtle::ConstantTimeEq as _;

use super::api_error::ApiError;
use super::caller::{Caller, CallerKey};
use crate::files::{SMALL_BYTES_MAX, read_text};
use crate::serve::error::ServeError;
use crypto::Digest;

/// The shortest token, in characters.
const TOKEN_CHARS_MIN: usize = 16;

/// The words that limit what a token may use in a day.
const RUNS_A_DAY: &str = "runs-a-day";
const TOKENS_A_DAY: &str = "tokens-a-day";

/// The limits of a caller for one day. A missing limit does not bind.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::serve) struct Allowance {
    /// The most runs that begin.
    pub(in crate::serve) runs: Option<u64>,
    /// The most tokens of prompts and replies.
    pub(in crate::serve) tokens: Option<u64>,
}

/// The tokens of a server; without any, each request is heard.
#[derive(Clone, Debug, Default)]
pub struct Tokens(Vec<KnownToken>);

/// A token of a server.
#[derive(Clone, Debug)]
struct KnownToken {
    sha256: Digest,
    /// The caller who sends it. Before the folder of the runs is known, the digest of the token stands for it.
    caller: Caller,
    /// The limits of what the caller may use in a day.
    allowance: Allowance,
}

impl Tokens {
    /// Reads a file with a token on each line, and behind it `runs-a-day=N` or `tokens-a-day=N` if it has such a limit. Empty lines and
    /// lines that begin with `#` do not count.
    ///
    /// Returns [`ServeError::Tokens`] if the file cannot be read, has no token or a short one, or a word that is no limit.
    pub fn read(path: &Path) -> Result<Self, ServeError> {
        let text = read_text(path, SMALL_BYTES_MAX).map_err(|why| why.to_string());
        let tokens = text.and_then(|text| parse_tokens(&text));
        tokens.map(Self).map_err(|why| ServeError::Tokens { path: path.to_owned(), why })
    }
}

/// Reads the tokens of a file from its text.
fn parse_tokens(text: &str) -> Result<Vec<KnownToken>, String> {
    let mut tokens = Vec::new();
    for (at, line) in text.lines().map(str::trim).enumerate() {
        if !line.is_empty() && !line.starts_with('#') {
            tokens.push(parse_token(line).map_err(|why| format!("line {}: {why}", at + 1))?);
        }
    }
    if tokens.is_empty() {
        return Err("it has no token".to_owned());
    }
    Ok(tokens)
}

/// Reads a token and its limits.
fn parse_token(line: &str) -> Result<KnownToken, String> {
    let mut words = line.split_whitespace();
    let token = words.next().unwrap_or_default();
    if token.chars().count() < TOKEN_CHARS_MIN {
        return Err(format!("the token has fewer than {TOKEN_CHARS_MIN} characters"));
    }
    let mut allowance = Allowance::default();
    for word in words {
        let (name, most) = word.split_once('=').unwrap_or((word, ""));
        let place = match name {
            RUNS_A_DAY => &mut allowance.runs,
            TOKENS_A_DAY => &mut allowance.tokens,
            _ => return Err(format!("a token is followed by `{RUNS_A_DAY}=N` or `{TOKENS_A_DAY}=N` alone")),
        };
        *place = Some(most.parse().map_err(|_| format!("`{name}` needs a number, as in `{name}=1000`"))?);
    }
    let sha256 = Digest::new(token.as_bytes());
    Ok(KnownToken { sha256, caller: Caller(sha256), allowance })
}

/// The rules by which requests are heard; by default those of a single client that no one else can reach.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    tokens: Tokens,
    /// The names under which the server may be called, in lower case and without a port.
    hosts: BTreeSet<String>,
}

impl Guard {
    /// Makes the guard of a server at this address, which may also be called by the names in `hosts`.
    ///
    /// Returns [`ServeError::Open`] if other machines can reach the address and no token is wanted.
    pub fn new(address: SocketAddr, tokens: Tokens, hosts: &[String]) -> Result<Self, ServeError> {
        if !address.ip().is_loopback() && tokens.0.is_empty() {
            return Err(ServeError::Open(address));
        }
        let own = [
            "localhost".to_owned(),
            "127.0.0.1".to_owned(),
            "[::1]".to_owned(),
            host_name(&address.to_string()),
        ];
        let hosts = own.into_iter().chain(hosts.iter().map(|host| host_name(host))).collect();
        Ok(Self { tokens, hosts })
    }

    /// Returns whether requests need no token.
    pub fn is_open(&self) -> bool {
        self.tokens.0.is_empty()
    }

    /// Returns whether there are several tokens.
    pub(in crate::serve) fn has_several_callers(&self) -> bool {
        self.tokens.0.iter().any(|token| token.sha256 != self.tokens.0[0].sha256)
    }

    /// Returns the same guard, whose callers are named by the key of this folder. Without tokens there is no such key.
    pub(in crate::serve) fn in_folder(mut self, folder: &Path) -> Result<Self, ServeError> {
        if !self.is_open() {
            let key = CallerKey::open(folder)?;
            for token in &mut self.tokens.0 {
                token.caller = key.caller(token.sha256);
            }
        }
        Ok(self)
    }

    /// Refuses a request that calls the server by the name of another one.
    pub(in crate::serve) fn require_host(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err(ApiError::foreign_host()) };
        let host = host.to_str().unwrap_or_default();
        if !self.is_own(host) {
            return Err(ApiError::foreign_host());
        }
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        let (_, page) = origin.to_str().unwrap_or_default().split_once("://").unwrap_or_default();
        // An address is no sign that the page is the server's, and another port belongs to another server.
        let is_ours = self.hosts.contains(&host_name(page)) && port_of(page) == port_of(host);
        if is_ours || page == host { Ok(()) } else { Err(ApiError::foreign_page()) }
    }

    /// Returns whether this is a name of the server. An address is no name that a stranger could have chosen.
    fn is_own(&self, host: &str) -> bool {
        let name = host_name(host);
        self.hosts.contains(&name) || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
    }

    /// Returns the caller of a request.
    pub(in crate::serve) fn caller(&self, headers: &HeaderMap) -> Result<Caller, ApiError> {
        if self.is_open() {
            return Ok(Caller::ANYONE);
        }
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let (scheme, token) = given.and_then(|given| given.split_once(' ')).unwrap_or_default();
        let given = Digest::new(token.trim().as_bytes());
        let mut caller = None;
        // Every token is compared, so that the time says nothing about which one it is.
        for token in &self.tokens.0 {
            if bool::from(token.sha256.as_bytes().ct_eq(given.as_bytes())) {
                caller = Some(token.caller);
            }
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(ApiError::unauthorized());
        }
        caller.ok_or_else(ApiError::unauthorized)
    }

    /// Returns what a caller may use in a day.
    pub(in crate::serve) fn allowance(&self, caller: Caller) -> Allowance {
        let of = self.tokens.0.iter().find(|token| token.caller == caller);
        of.map_or_else(Allowance::default, |token| token.allowance)
    }
}

/// Returns the name in a `Host` header or an address, without the port and in lower case.
fn host_name(host: &str) -> String {
    let host = host.trim().to_ascii_lowercase();
    match host.rsplit_once(':') {
        // An address of IPv6 without a port ends with a bracket.
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name.to_owned(),
        _ => host,
    }
}

/// Returns the port in a `Host` header or an address, if it has one.
fn port_of(host: &str) -> Option<&str> {
    let (_, port) = host.trim().rsplit_once(':')?;
    port.bytes().all(|byte| byte.is_ascii_digit()).then_some(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(hosts: &[&str]) -> Guard {
        let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        Guard::new("127.0.0.1:8700".parse().unwrap(), Tokens::default(), &hosts).unwrap()
    }

    #[test]
    fn foreign_host_name_is_refused() {
        let is_heard = |guard: &Guard, host: &str| {
            let headers = HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
            guard.require_host(&headers).is_ok()
        };
        for own in ["127.0.0.1:8700", "localhost:8700", "LOCALHOST", "[::1]:8700", "[::1]"] {
            assert!(is_heard(&guard(&[]), own), "{own}");
        }
        for other in ["evil.example", "localhost.evil.example:8700", "127.0.0.1.evil.example", ""] {
            assert!(!is_heard(&guard(&[]), other), "{other}");
        }
        for named in ["gpu7.cluster", "GPU7.cluster:8700"] {
            assert!(is_heard(&guard(&[named]), "gpu7.cluster:8700"), "{named}");
        }
        assert!(is_heard(&guard(&[]), "192.0.2.7:8700"), "an address is no name");
        let mut twice = HeaderMap::new();
        for name in ["localhost", "evil.example"] {
            twice.append(header::HOST, name.parse().unwrap());
        }
        assert!(guard(&[]).require_host(&twice).is_err(), "two names");
        assert!(guard(&[]).require_host(&HeaderMap::new()).is_err(), "no name at all");
    }

    #[test]
    fn page_of_other_site_is_refused() {
        let is_heard = |origin: &str| {
            let headers = [(header::HOST, "localhost:8700"), (header::ORIGIN, origin)];
            let headers = headers.map(|(name, value)| (name, value.parse().unwrap()));
            guard(&[]).require_host(&headers.into_iter().collect()).is_ok()
        };
        assert!(is_heard("http://localhost:8700") && is_heard("http://127.0.0.1:8700"));
        for other in ["https://evil.example", "http://203.0.113.5", "null", ""] {
            assert!(!is_heard(other), "{other}");
        }
        for other_port in ["http://localhost:8701", "http://127.0.0.1", "http://[::1]", "http://[::1]:87"] {
            assert!(!is_heard(other_port), "{other_port}");
        }
    }

    #[test]
    fn reachable_address_needs_token() {
        let open = Guard::new("0.0.0.0:8700".parse().unwrap(), Tokens::default(), &[]);
        assert!(matches!(open, Err(ServeError::Open(_))));
        let tokens = Tokens(vec![parse_token("a-token-of-sixteen").unwrap()]);
        let guard = Guard::new("0.0.0.0:8700".parse().unwrap(), tokens, &[]).unwrap();
        let caller = |value: &str| {
            guard.caller(&HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())])).is_ok()
        };
        assert!(caller("Bearer a-token-of-sixteen") && caller("bearer a-token-of-sixteen"));
        assert!(
            !caller("Bearer a-token-of-sixteem") && !caller("Basic a-token-of-sixteen") && !caller("Bearer")
        );
    }
}
