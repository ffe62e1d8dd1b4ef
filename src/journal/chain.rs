//! The lines of a journal as a chain: each line holds the digest of the line before it.

use std::io::ErrorKind;
use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::gaps::Gaps;
use super::{Record, VERSION};
use crate::files::LINE_BYTES_MAX;
use crypto::Digest;
use protocol::text::check_depth;

/// The end of a chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    /// The number of lines in the chain, with those that were removed.
    pub(super) lines: u64,
    /// The SHA-256 of the last line.
    pub(super) head: Digest,
}

/// The digests that make lines a chain.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Links {
    /// Each line follows from the line before it in its file.
    OfFile,
    /// Each line follows from the line before it of the same run.
    OfRun,
    /// The first line says which of the two it is.
    AsFirst,
}

impl Default for Chain {
    fn default() -> Self {
        Self { lines: 0, head: Digest::ZERO }
    }
}

impl Chain {
    /// Adds a record, and appends its line to `out`: whole, or not at all.
    pub(super) fn append<E: Serialize>(
        &mut self,
        run: &str,
        run_prev: Option<Digest>,
        event: E,
        out: &mut Vec<u8>,
    ) -> std::io::Result<Record<E>> {
        let at = humantime::format_rfc3339_micros(SystemTime::now()).to_string();
        let run = run.to_owned();
        let record = Record { v: VERSION, run, seq: self.lines, at, event, prev: self.head, run_prev };
        let start = out.len();
        if let Err(why) = serde_json::to_writer(&mut *out, &record) {
            out.truncate(start);
            return Err(why.into());
        }
        // A line that no reader takes would make all lines after it worthless.
        let is_too_long = (out.len() - start) as u64 >= LINE_BYTES_MAX;
        if is_too_long || !std::str::from_utf8(&out[start..]).is_ok_and(check_depth) {
            out.truncate(start);
            let why = if is_too_long {
                format!("a record is longer than {LINE_BYTES_MAX} bytes, the limit for a line")
            } else {
                "a record is nested too deeply".to_owned()
            };
            return Err(std::io::Error::new(ErrorKind::InvalidData, why));
        }
        *self = Self { lines: self.lines + 1, head: Digest::new(&out[start..]) };
        out.push(b'\n');
        Ok(record)
    }

    /// Takes the next line, without its line break, if it continues the chain of these links, or that of the file behind one of these gaps.
    /// Otherwise returns what is wrong.
    pub(super) fn check<E: DeserializeOwned>(
        &mut self,
        line: &[u8],
        links: Links,
        gaps: &Gaps,
    ) -> Result<Record<E>, String> {
        let text = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())?;
        if !check_depth(text) {
            return Err("its JSON is nested too deeply".to_owned());
        }
        let record: Record<E> = serde_json::from_str(text).map_err(|e| format!("it cannot be read: {e}"))?;
        if record.v != VERSION {
            return Err(format!("its format is version {}; this program reads version {VERSION}", record.v));
        }
        let is_of_run = match links {
            Links::OfFile => false,
            Links::OfRun => true,
            Links::AsFirst => record.run_prev.is_some(),
        };
        let before = if is_of_run { record.run_prev } else { Some(record.prev) };
        // A gap skips lines, so no other line takes the place of one that is gone.
        if !is_of_run && record.seq > self.lines && gaps.are_before(record.seq, record.prev) {
            *self = Self { lines: record.seq, head: record.prev };
        }
        let is_cut_out = links == Links::AsFirst && !is_of_run && record.seq > 0;
        if is_cut_out || before.is_none() {
            let why = "it has no `run_prev`, so it can be checked only in the whole journal that it is from";
            return Err(why.to_owned());
        }
        if before != Some(self.head) {
            return Err("it does not follow from the line before it: the chain is broken".to_owned());
        }
        // Lines of other runs were between those of one run.
        if !is_of_run && record.seq != self.lines {
            return Err(format!("its sequence number {} is out of order", record.seq));
        }
        *self = Self { lines: self.lines + 1, head: Digest::new(line) };
        Ok(record)
    }
}
