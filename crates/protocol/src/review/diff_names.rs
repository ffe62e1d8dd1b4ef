//! The names of files in a diff, as git and other programs write them.
//!
//! The input is a name with its prefix and its quotes. The output is the name of the file. No name is looked up anywhere.

/// The prefixes of the two names of a file, as git writes them: by default, and with `diff.mnemonicPrefix`.
const PREFIXES: [[&str; 2]; 9] = [
    ["a/", "b/"],
    ["b/", "a/"],
    ["i/", "w/"],
    ["w/", "i/"],
    ["c/", "i/"],
    ["i/", "c/"],
    ["c/", "w/"],
    ["w/", "c/"],
    ["o/", "w/"],
];

/// Returns the name in a `---` or `+++` line, whose time comes after a tab.
pub(super) fn written_name(written: &str) -> String {
    if written.starts_with('"') {
        unquote(written)
    } else {
        written.split(['\t', '\r']).next().unwrap_or_default().to_owned()
    }
}

/// Returns a name without its prefix: that of a pair of prefixes, if `other` has the other of the two, or else git's usual one.
pub(super) fn strip_side<'a>(name: &'a str, other: &str) -> &'a str {
    let of_pair = PREFIXES.iter().find_map(|[old, new]| {
        let rest = name.strip_prefix(new)?;
        if other.strip_prefix(old)? == rest { Some(rest) } else { None }
    });
    of_pair.or_else(|| name.strip_prefix("a/")).or_else(|| name.strip_prefix("b/")).unwrap_or(name)
}

/// Returns the name of a file in the two names of a `diff --git` line, if they differ in their prefixes alone.
pub(super) fn name_of_both(names: &str) -> Option<String> {
    let (old, new) = if let Some(rest) = names.strip_prefix('"') {
        let end = end_of_quoted(rest)?;
        (unquote(&names[..end + 2]), unquote(rest[end + 1..].trim_start()))
    } else {
        let middle = names.len() / 2;
        let halves = names.split_at_checked(middle);
        match halves.and_then(|(old, new)| Some((old, new.strip_prefix(' ')?))) {
            Some((old, new)) => (old.to_owned(), unquote(new)),
            None => names.split_once(" b/").map(|(old, new)| (old.to_owned(), format!("b/{new}")))?,
        }
    };
    Some(strip_side(&new, &old).to_owned())
}

/// Returns the place of the quote that ends a quoted text, without the quote that begins it.
fn end_of_quoted(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

/// Returns a name as it is, where git has quoted it because of signs that are not ASCII (`core.quotePath`).
pub(super) fn unquote(name: &str) -> String {
    let Some(rest) = name.strip_prefix('"') else { return name.to_owned() };
    let Some(end) = end_of_quoted(rest) else { return name.to_owned() };
    let mut bytes = Vec::new();
    let mut written = rest[..end].bytes().peekable();
    while let Some(byte) = written.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let next = written.next().unwrap_or_default();
        bytes.push(match next {
            b'0'..=b'7' => {
                // Three digits, as git writes them.
                let mut value = next - b'0';
                for _ in 0..2 {
                    if let Some(digit) = written.next_if(|digit| (b'0'..=b'7').contains(digit)) {
                        value = value.wrapping_mul(8).wrapping_add(digit - b'0');
                    }
                }
                value
            }
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            other => other,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
