//! The trial of a program: the source that makes the calls, and the results that it prints.
//!
//! Each call is made twice, with its arguments made anew. A value is shown with its type: a fraction to 12 digits, the parts of a set in
//! order. Of a call that returns nothing, the arguments that it has changed are shown. A value that cannot be shown, is too long, or differs
//! the second time, is unknown, and unknown is equal to nothing.
//!
//! The results of Python's own interpreter and of the embedded one read the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::input::{FunctionInput, InputArgument};
use super::program::{OWN_NAMES, without_demonstration};
use crate::contract::ExecutionResult;
use crypto::{Digest, Hasher};

/// Python that shows values and makes calls. It keeps the functions that it needs under its own names, because a program may give others
/// to theirs. It holds new objects between the two calls, so that an address is not the same twice.
const SHOW: &str = r#"import collections as own_of_consensus_collections
own_of_consensus_print, own_of_consensus_range, own_of_consensus_new = print, range, object
own_of_consensus_dicts = [dict, own_of_consensus_collections.Counter, own_of_consensus_collections.defaultdict]
own_of_consensus_repr, own_of_consensus_sorted, own_of_consensus_type = repr, sorted, type
own_of_consensus_error, own_of_consensus_len, own_of_consensus_round = Exception, len, round
own_of_consensus_plain = [type(None), bool, int, str, bytes]
own_of_consensus_float, own_of_consensus_str, own_of_consensus_set = float, str, set
own_of_consensus_listed, own_of_consensus_sets = [list, tuple], [set, frozenset]
try:
    own_of_consensus_new()
except own_of_consensus_error:
    own_of_consensus_new = list

def own_of_consensus_is_one(kind, kinds):
    for one in kinds:
        if kind is one:
            return True
    return False

def own_of_consensus_show(value, depth, exact):
    kind = own_of_consensus_type(value)
    if depth > 20:
        raise own_of_consensus_error
    if own_of_consensus_is_one(kind, own_of_consensus_plain):
        return own_of_consensus_repr(value)
    if kind is own_of_consensus_float:
        return own_of_consensus_repr(value) if exact else f"float({value + 0.0:.12g})"
    if own_of_consensus_is_one(kind, own_of_consensus_dicts):
        return "dict(" + ",".join(own_of_consensus_sorted([own_of_consensus_show(key, depth + 1, exact) + ":" + own_of_consensus_show(value[key], depth + 1, exact) for key in value])) + ")"
    if own_of_consensus_is_one(kind, own_of_consensus_listed):
        return kind.__name__ + "(" + ",".join([own_of_consensus_show(part, depth + 1, exact) for part in value]) + ")"
    if own_of_consensus_is_one(kind, own_of_consensus_sets):
        return kind.__name__ + "(" + ",".join(own_of_consensus_sorted([own_of_consensus_show(part, depth + 1, exact) for part in value])) + ")"
    raise own_of_consensus_error

def own_of_consensus_is_as_stated(value, shown, stated, digits):
    wanted = stated()
    if value == wanted or shown == own_of_consensus_show(wanted, 0, False):
        return True
    if own_of_consensus_type(value) is own_of_consensus_str and value == own_of_consensus_repr(wanted):
        return True
    return digits is not None and own_of_consensus_type(value) is own_of_consensus_float and own_of_consensus_round(value, digits) == wanted

def own_of_consensus_try(mark, call, arguments, stated, digits):
    seen, exact, held = [], [], []
    for _ in own_of_consensus_range(2):
        held.append([[], {}, own_of_consensus_set(), own_of_consensus_new()])
        try:
            given = arguments()
            value = call(given)
        except own_of_consensus_error as error:
            seen.append("raised " + own_of_consensus_type(error).__name__)
            continue
        is_stated = True
        try:
            shown = own_of_consensus_show(value, 0, False)
            exact.append(own_of_consensus_show(value, 0, True))
            if value is None and given != arguments():
                shown = shown + ", with the arguments " + own_of_consensus_show(given, 0, False)
            if stated is not None:
                is_stated = own_of_consensus_is_as_stated(value, shown, stated, digits)
        except own_of_consensus_error:
            shown = ""
        if shown == "" or own_of_consensus_len(shown) > 200:
            seen.append("unknown a value of the type " + own_of_consensus_type(value).__name__)
        elif is_stated:
            seen.append("value " + shown)
        else:
            seen.append("other " + shown)
    own_of_consensus_print()
    if seen[0] == seen[1] and exact[:1] == exact[1:]:
        own_of_consensus_print(mark + " " + seen[0])
    else:
        own_of_consensus_print(mark + " unknown a value that differs the second time")

"#;

/// The characters of the word that begins the line of each result.
const MARK_CHARS: usize = 16;

/// What one program did with one input.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum InputResult {
    /// It returned this value, and printed what comes before it.
    Value(String),
    /// It returned this value, which is not the one that the task states.
    Contradicts(String),
    /// It raised an error of this type, and printed what comes before it.
    Raised(String),
    /// Its result cannot be compared, for this reason.
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
pub(crate) fn trial_source(program: &str, function: &str, inputs: &[FunctionInput]) -> String {
    let mark = mark(program, inputs);
    let mut source = format!("{SHOW}{}\n{OWN_NAMES}print()\n", without_demonstration(program, function));
    let _ = writeln!(source, "{OWN_NAMES}print(\"{mark}-start\")");
    for (number, FunctionInput { arguments, stated, .. }) in inputs.iter().enumerate() {
        let (mut passed, mut values) = (Vec::new(), Vec::new());
        for (at, InputArgument { name, value }) in arguments.iter().enumerate() {
            let name = name.as_ref().map(|name| format!("{name}=")).unwrap_or_default();
            passed.push(format!("{name}given[{at}]"));
            values.push(value.as_str());
        }
        let (passed, values) = (passed.join(", "), values.join(", "));
        let digits = stated.as_deref().and_then(decimals);
        let digits = digits.map_or_else(|| "None".to_owned(), |digits| digits.to_string());
        let stated = stated.as_ref().map_or_else(|| "None".to_owned(), |value| format!("lambda: {value}"));
        let _ = writeln!(
            source,
            "{OWN_NAMES}try(\"{mark}-{number}\", lambda given: {function}({passed}), lambda: [{values}], {stated}, {digits})"
        );
    }
    source
}

/// Returns the number of decimals to which a stated fraction is rounded. A task that states `3.14` means a value near it, and one that states
/// `0.5` means that value.
fn decimals(stated: &str) -> Option<usize> {
    let (whole, decimals) = stated.strip_prefix('-').unwrap_or(stated).split_once('.')?;
    let is_plain = whole.chars().chain(decimals.chars()).all(|c| c.is_ascii_digit());
    if is_plain && decimals.len() > 1 { Some(decimals.len()) } else { None }
}

/// Returns the word that begins the line of each result. A program cannot hold the digest of itself.
fn mark(program: &str, inputs: &[FunctionInput]) -> String {
    let mut hasher = Hasher::default();
    hasher.part(b"trial").part(program.as_bytes());
    for input in inputs {
        hasher.part(input.call.as_bytes());
    }
    hasher.finish().to_string()[..MARK_CHARS].to_owned()
}

/// Returns the part of the source of a trial that belongs to the program and its inputs, for people: without the part that is the same for
/// every program.
pub fn trial_calls(source: &str) -> &str {
    source.strip_prefix(SHOW).unwrap_or(source)
}

/// Returns the results that a trial has printed, without the marks before them, for people.
pub fn trial_results(output: &str) -> Vec<&str> {
    let is_mark = |word: &str| word.split_once('-').is_some_and(|(mark, _)| mark.len() == MARK_CHARS);
    let mut results = Vec::new();
    for line in output.lines() {
        if let Some((_, shown)) = line.split_once(' ').filter(|(word, _)| is_mark(word)) {
            results.push(shown);
        }
    }
    results
}

/// Returns what a trial prints for a program that returns 0 for every input, whatever the task states.
pub fn zero_results(source: &str) -> String {
    let mut printed = String::new();
    for line in trial_calls(source).lines() {
        let mark = line.strip_prefix(OWN_NAMES).and_then(|line| line.split('"').nth(1));
        match mark {
            Some(mark) if mark.ends_with("-start") => printed = format!("\n{mark}\n"),
            Some(mark) => printed.extend(["\n", mark, " value 0\n"]),
            None => {}
        }
    }
    printed
}

/// Returns what a program did with each input, from the end of its trial.
pub(crate) fn read_results(
    program: &str,
    inputs: &[FunctionInput],
    trial: &ExecutionResult,
) -> Vec<InputResult> {
    let mark = mark(program, inputs);
    let mut results: Vec<Option<InputResult>> = vec![None; inputs.len()];
    let (mut printed, mut is_whole) = (String::new(), true);
    // What the program prints before the first call is no result of any.
    let calls = trial.output.split_once(&format!("\n{mark}-start\n")).map_or("", |(_, calls)| calls);
    for line in calls.split_inclusive('\n') {
        let Some(rest) = line.strip_prefix(&mark).and_then(|rest| rest.strip_prefix('-')) else {
            printed.push_str(line);
            continue;
        };
        // Each result begins with a line break of its own.
        printed.truncate(printed.len().saturating_sub(1));
        let read = rest.split_once(' ').and_then(|(number, shown)| {
            Some((number.parse::<usize>().ok()?, read_result(shown.trim(), &printed)?))
        });
        match read {
            Some((number, result)) if results.get(number).is_some_and(Option::is_none) => {
                results[number] = Some(result);
            }
            Some(_) | None => is_whole = false,
        }
        printed.clear();
    }
    let said = if trial.end.is_success() || !trial.tail.is_empty() { None } else { trial.last_line() };
    let why = match said {
        _ if !is_whole => "it printed results of its own".to_owned(),
        Some(said) if results.iter().all(Option::is_none) => format!("the program {}: {said}", trial.end),
        Some(_) | None => format!("the program {} before this input", trial.end),
    };
    let unknown = InputResult::Unknown(why);
    if !is_whole {
        return vec![unknown; inputs.len()];
    }
    results.into_iter().map(|result| result.unwrap_or_else(|| unknown.clone())).collect()
}

/// Returns the result on the line behind its mark.
fn read_result(line: &str, printed: &str) -> Option<InputResult> {
    let (kind, shown) = line.split_once(' ')?;
    let is_printer = shown == "None" && !printed.is_empty();
    let shown = format!("{printed}{shown}");
    match kind {
        "value" => Some(InputResult::Value(shown)),
        // A task may state what the function prints.
        "other" if is_printer => Some(InputResult::Value(shown)),
        "other" => Some(InputResult::Contradicts(shown)),
        "raised" => Some(InputResult::Raised(shown)),
        "unknown" => Some(InputResult::Unknown(shown)),
        _ => None,
    }
}

/// The results of several programs on the same inputs, compared.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Fingerprints {
    /// Whether each input counts: the task states no result for it, and more than half of the programs return a value.
    pub(crate) counts: Vec<bool>,
    /// The fingerprint of each program that can be compared, by its number. Programs with one fingerprint did the same.
    pub(crate) of_programs: BTreeMap<usize, Digest>,
}

/// Compares programs by their results. The key of a program is its number. An input whose result the task states tells no votes apart,
/// because every vote has that result.
pub(crate) fn fingerprints(
    inputs: &[FunctionInput],
    results: &BTreeMap<usize, Vec<InputResult>>,
) -> Fingerprints {
    let mut counts = Vec::new();
    for (input, FunctionInput { stated, .. }) in inputs.iter().enumerate() {
        let values = results
            .values()
            .filter(|of_one| matches!(of_one.get(input), Some(InputResult::Value(_))))
            .count();
        counts.push(stated.is_none() && 2 * values > results.len());
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
    use crate::behaviour::find_inputs;
    use crate::core::CommandEnd;

    const PROGRAM: &str = "def f(x):\n    return x";

    fn inputs(count: usize) -> Vec<FunctionInput> {
        let calls: Vec<String> = (0..count).map(|number| format!("f({number})")).collect();
        find_inputs(&calls.join("\n"), "f")
    }

    fn read(end: CommandEnd, lines: &str, count: usize) -> Vec<InputResult> {
        let inputs = inputs(count);
        let output = format!("1\n\nMARK-start\n{lines}").replace("MARK", &mark(PROGRAM, &inputs));
        let output_sha256 = Digest::new(output.as_bytes());
        read_results(PROGRAM, &inputs, &ExecutionResult { end, output, tail: String::new(), output_sha256 })
    }

    #[test]
    fn results_are_read_in_order() {
        let printed = "\nMARK-0 value 1\nhello\nMARK-1 raised KeyError\n\nMARK-2 other 'x'\n";
        let results = read(CommandEnd::Time, printed, 4);
        assert_eq!(results[0], InputResult::Value("1".to_owned()));
        assert_eq!(results[1], InputResult::Raised("helloKeyError".to_owned()));
        assert_eq!(results[2], InputResult::Contradicts("'x'".to_owned()));
        assert!(matches!(&results[3], InputResult::Unknown(why) if why.contains("before this input")));
    }

    #[test]
    fn printed_results_of_its_own_count_for_nothing() {
        let is_unknown = |result: &InputResult| matches!(result, InputResult::Unknown(_));
        for own in
            ["\nMARK-0 value 1\n\nMARK-0 value 2\n", "\nMARK-1 value 1\n", "\nMARK-0 good 1\n", "value 1\n"]
        {
            assert!(read(CommandEnd::Exit(0), own, 1).iter().all(is_unknown), "{own}");
        }
        assert_eq!(read(CommandEnd::Exit(0), "\nMARK-0 value 1\n", 1), [InputResult::Value("1".to_owned())]);
    }

    #[test]
    fn stated_fractions_are_rounded_values() {
        for (stated, digits) in [
            ("3.14", Some(2)),
            ("-0.333", Some(3)),
            ("0.5", None),
            ("3", None),
            ("1e300", None),
            ("[3.14]", None),
        ] {
            assert_eq!(decimals(stated), digits, "{stated}");
        }
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
        let Fingerprints { counts, of_programs } = fingerprints(&inputs(3), &results);
        assert_eq!(counts, [true, true, false], "most programs raise an error for the last");
        assert_eq!(of_programs.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 4]);
        assert_eq!(of_programs[&0], of_programs[&1]);
        assert_ne!(of_programs[&0], of_programs[&2]);
        assert_ne!(of_programs[&0], of_programs[&4], "an error is no value");
        let stated: Vec<FunctionInput> = inputs(3)
            .into_iter()
            .map(|input| FunctionInput { stated: Some("1".to_owned()), ..input })
            .collect();
        assert!(fingerprints(&stated, &results).of_programs.is_empty(), "they tell nothing apart");
    }

    #[test]
    fn a_trial_runs_the_program_and_calls() {
        let inputs = find_inputs(">>> f(1, y=2)\n3.14", "f");
        let source = trial_source("def f(x, y):\n    return x\nprint(f(2))", "f", &inputs);
        let calls = trial_calls(&source);
        assert!(calls.starts_with("def f(x, y):\n    return x\npass\nown_of_consensus_print()\n"), "{calls}");
        assert!(
            calls
                .ends_with("-0\", lambda given: f(given[0], y=given[1]), lambda: [1, 2], lambda: 3.14, 2)\n"),
            "{calls}"
        );
        let zero = zero_results(&source);
        let output_sha256 = Digest::new(zero.as_bytes());
        let trial = ExecutionResult {
            end: CommandEnd::Exit(0),
            output: zero.clone(),
            tail: String::new(),
            output_sha256,
        };
        let read = read_results("def f(x, y):\n    return x\nprint(f(2))", &inputs, &trial);
        assert_eq!(read, [InputResult::Value("0".to_owned())]);
        assert_eq!(trial_results(&zero), ["value 0"]);
    }
}
