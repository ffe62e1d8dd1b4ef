//! The trial of a program: the source that makes the calls, and the results that it prints.
//!
//! Each call is made twice, with its arguments made anew. A value is shown with its type: a fraction to 12 digits, the parts of a set in
//! order. A value that cannot be shown, is too long, or differs the second time, is unknown, and unknown is equal to nothing.
//!
//! The results of Python's own interpreter and of the embedded one read the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::definitions::definitions;
use super::input::FunctionInput;
use crate::contract::ExecutionResult;
use crypto::{Digest, Hasher};

/// The beginning of every name that belongs to a trial. No program may contain it, so that it cannot change how its values are shown.
pub(super) const OWN_NAMES: &str = "consensus_";

/// Python that shows values and makes calls. It keeps the functions that it needs under its own names, because a program may give others
/// to theirs. It holds new objects between the two calls, so that an address is not the same twice.
const SHOW: &str = r#"import collections as consensus_collections
consensus_print, consensus_range, consensus_new = print, range, object
consensus_dicts = [dict, consensus_collections.Counter, consensus_collections.defaultdict]
consensus_repr, consensus_sorted, consensus_type, consensus_error = repr, sorted, type, Exception
consensus_plain = [type(None), bool, int, str, bytes]
consensus_float, consensus_listed, consensus_sets, consensus_len = float, [list, tuple], [set, frozenset], len
try:
    consensus_new()
except consensus_error:
    consensus_new = list

def consensus_show(value, depth, exact):
    kind = consensus_type(value)
    if depth > 20:
        raise consensus_error
    if kind in consensus_plain:
        return consensus_repr(value)
    if kind is consensus_float:
        return consensus_repr(value) if exact else f"float({value + 0.0:.12g})"
    if kind in consensus_dicts:
        return "dict(" + ",".join(consensus_sorted([consensus_show(key, depth + 1, exact) + ":" + consensus_show(value[key], depth + 1, exact) for key in value])) + ")"
    if kind in consensus_listed:
        return kind.__name__ + "(" + ",".join([consensus_show(part, depth + 1, exact) for part in value]) + ")"
    if kind in consensus_sets:
        return "set(" + ",".join(consensus_sorted([consensus_show(part, depth + 1, exact) for part in value])) + ")"
    raise consensus_error

def consensus_try(mark, call, stated):
    seen, exact, held = [], [], []
    for _ in consensus_range(2):
        held.append([[], {}, set(), consensus_new()])
        try:
            value = call()
        except consensus_error as error:
            seen.append("raised " + consensus_type(error).__name__)
            continue
        try:
            shown = consensus_show(value, 0, False)
            exact.append(consensus_show(value, 0, True))
        except consensus_error:
            shown = ""
        if shown == "" or consensus_len(shown) > 200:
            seen.append("unknown a value of the type " + consensus_type(value).__name__)
        elif stated is None or shown == consensus_show(stated(), 0, False) or value == stated():
            seen.append("value " + shown)
        else:
            seen.append("other " + shown)
    if seen[0] == seen[1] and exact[:1] == exact[1:]:
        consensus_print(mark + " " + seen[0])
    else:
        consensus_print(mark + " unknown a value that differs the second time")

"#;

/// What one program did with one input.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum InputResult {
    /// It returned this value, and printed what comes before it.
    Value(String),
    /// It returned this value, which is not the one that the task states.
    Contradicts(String),
    /// It raised an error of this type, and printed what comes before it.
    Raised(String),
    /// What it did cannot be compared, for this reason.
    Unknown(String),
}

impl InputResult {
    /// Returns the result in words.
    pub(crate) fn shown(&self) -> &str {
        match self {
            Self::Value(shown) | Self::Contradicts(shown) | Self::Raised(shown) | Self::Unknown(shown) => {
                shown
            }
        }
    }
}

/// Returns the source that tries a program on inputs.
pub(crate) fn trial_source(program: &str, inputs: &[FunctionInput]) -> String {
    let mark = mark(program, inputs);
    let mut source = format!("{SHOW}{}\n", definitions(program));
    for FunctionInput { call, stated } in inputs {
        let stated = stated.as_ref().map_or_else(|| "None".to_owned(), |value| format!("lambda: {value}"));
        let _ = writeln!(source, "consensus_try(\"{mark}\", lambda: {call}, {stated})");
    }
    source
}

/// Returns the word that begins the line of each result. A program cannot hold the digest of itself.
fn mark(program: &str, inputs: &[FunctionInput]) -> String {
    let mut hasher = Hasher::default();
    hasher.part(b"trial").part(program.as_bytes());
    for input in inputs {
        hasher.part(input.call.as_bytes());
    }
    hasher.finish().to_string()[..16].to_owned()
}

/// Returns what a program did with each input, from the end of its trial.
pub(crate) fn read_results(
    program: &str,
    inputs: &[FunctionInput],
    trial: &ExecutionResult,
) -> Vec<InputResult> {
    let mark = mark(program, inputs);
    let mut results = Vec::new();
    let mut printed = String::new();
    for line in trial.output.split_inclusive('\n') {
        let result = line.strip_prefix(&mark).and_then(|line| read_result(line.trim(), &printed));
        match result {
            Some(result) => {
                results.push(result);
                printed.clear();
            }
            None => printed.push_str(line),
        }
    }
    if results.len() > inputs.len() {
        results.clear();
    }
    let why = trial.last_line().filter(|_| !trial.end.is_success() && trial.tail.is_empty());
    let why = match why {
        Some(said) if results.is_empty() => format!("the program {}: {said}", trial.end),
        Some(_) | None => format!("the program {} before this input", trial.end),
    };
    results.resize(inputs.len(), InputResult::Unknown(why));
    results
}

/// Returns the result on the line behind its mark.
fn read_result(line: &str, printed: &str) -> Option<InputResult> {
    let (kind, shown) = line.split_once(' ')?;
    let shown = format!("{printed}{shown}");
    match kind {
        "value" => Some(InputResult::Value(shown)),
        "other" => Some(InputResult::Contradicts(shown)),
        "raised" => Some(InputResult::Raised(shown)),
        "unknown" => Some(InputResult::Unknown(shown)),
        _ => None,
    }
}

/// The results of several programs on the same inputs, compared.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Fingerprints {
    /// Whether each input counts: more than half of the programs return a value for it.
    pub(crate) counts: Vec<bool>,
    /// The fingerprint of each program that can be compared, by its number. Programs with one fingerprint did the same.
    pub(crate) of_programs: BTreeMap<usize, Digest>,
}

/// Compares programs by their results. The key of a program is its number.
pub(crate) fn fingerprints(results: &BTreeMap<usize, Vec<InputResult>>) -> Fingerprints {
    let inputs = results.values().map(Vec::len).max().unwrap_or(0);
    let mut counts = Vec::new();
    for input in 0..inputs {
        let values = results
            .values()
            .filter(|of_one| matches!(of_one.get(input), Some(InputResult::Value(_))))
            .count();
        counts.push(2 * values > results.len());
    }
    let of_programs =
        results.iter().filter_map(|(number, of_one)| Some((*number, fingerprint(of_one, &counts)?)));
    Fingerprints { of_programs: of_programs.collect(), counts }
}

/// Returns the fingerprint of one program by the inputs that count, if there is such an input and its result is known for all of them.
fn fingerprint(results: &[InputResult], counts: &[bool]) -> Option<Digest> {
    let mut hasher = Hasher::default();
    hasher.part(b"behaviour");
    let mut is_empty = true;
    for (number, (result, counts)) in results.iter().zip(counts).enumerate() {
        let kind: &[u8] = match result {
            _ if !counts => continue,
            InputResult::Value(_) => b"value",
            InputResult::Raised(_) => b"raised",
            InputResult::Contradicts(_) | InputResult::Unknown(_) => return None,
        };
        is_empty = false;
        hasher.part(&number.to_be_bytes()).part(kind).part(result.shown().as_bytes());
    }
    if is_empty { None } else { Some(hasher.finish()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::CommandEnd;

    const PROGRAM: &str = "def f(x):\n    return x";

    fn inputs(count: usize) -> Vec<FunctionInput> {
        (0..count).map(|number| FunctionInput { call: format!("f({number})"), stated: None }).collect()
    }

    fn read(end: CommandEnd, lines: &str, count: usize) -> Vec<InputResult> {
        let inputs = inputs(count);
        let output = lines.replace("MARK", &mark(PROGRAM, &inputs));
        let output_sha256 = Digest::new(output.as_bytes());
        read_results(PROGRAM, &inputs, &ExecutionResult { end, output, tail: String::new(), output_sha256 })
    }

    #[test]
    fn results_are_read_in_order() {
        let printed = "MARK value 1\nhello\nMARK raised KeyError\nMARK other 'x'\n";
        let results = read(CommandEnd::Time, printed, 4);
        assert_eq!(results[0], InputResult::Value("1".to_owned()));
        assert_eq!(results[1], InputResult::Raised("hello\nKeyError".to_owned()));
        assert_eq!(results[2], InputResult::Contradicts("'x'".to_owned()));
        assert!(matches!(&results[3], InputResult::Unknown(why) if why.contains("before this input")));
    }

    #[test]
    fn a_program_that_prints_results_of_its_own_has_none() {
        assert!(
            read(CommandEnd::Exit(0), "MARK value 1\nMARK value 2\n", 1)
                .iter()
                .all(|result| matches!(result, InputResult::Unknown(_)))
        );
        assert!(matches!(read(CommandEnd::Exit(0), "value 1\n", 1)[0], InputResult::Unknown(_)));
    }

    #[test]
    fn programs_with_one_behaviour_have_one_fingerprint() {
        let value = |text: &str| InputResult::Value(text.to_owned());
        let results = BTreeMap::from([
            (0, vec![value("1"), value("2"), InputResult::Raised("KeyError".to_owned())]),
            (1, vec![value("1"), value("2"), InputResult::Raised("TypeError".to_owned())]),
            (2, vec![value("1"), value("3"), value("4")]),
            (3, vec![value("1"), InputResult::Unknown("range".to_owned()), value("4")]),
            (
                4,
                vec![
                    value("1"),
                    InputResult::Raised("2".to_owned()),
                    InputResult::Raised("KeyError".to_owned()),
                ],
            ),
        ]);
        let Fingerprints { counts, of_programs } = fingerprints(&results);
        assert_eq!(counts, [true, true, false], "most programs raise an error for the last");
        assert_eq!(of_programs.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 4]);
        assert_eq!(of_programs[&0], of_programs[&1]);
        assert_ne!(of_programs[&0], of_programs[&2]);
        assert_ne!(of_programs[&0], of_programs[&4], "an error is no value");
        assert_eq!(fingerprints(&BTreeMap::new()), Fingerprints::default());
    }

    #[test]
    fn a_trial_runs_definitions_and_calls() {
        let source = trial_source(
            "def f(x):\n    return x\nprint(f(2))",
            &[FunctionInput { call: "f(1)".to_owned(), stated: Some("1".to_owned()) }],
        );
        assert!(source.starts_with("import collections as consensus_"), "{source}");
        assert!(source.contains("\ndef f(x):\n    return x\n\nconsensus_try("), "{source}");
        assert!(source.ends_with(", lambda: f(1), lambda: 1)\n"), "{source}");
    }
}
