//! Counts of what plain Rust does not have. Each count may only fall.
//!
//! The input is source files. The output is each count with its places. The counts of today are in `ceilings.txt`: a higher one fails the
//! test, and so does a lower one until the file says it. `CONSENSUS_REWRITE` writes lower counts, and never a higher one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

/// A function has at most this many closures with a name.
const CLOSURES_MAX: usize = 2;

/// The name of a test has at most this many words.
const TEST_WORDS_MAX: usize = 8;

/// A shorter file is a part of its one user.
const FILE_LINES_MIN: usize = 45;

/// Files that others are under.
const ROOTS: [&str; 3] = ["lib.rs", "main.rs", "mod.rs"];

/// The beginnings of names that ask a question. A function with such a name returns its answer.
const QUESTIONS: [&str; 4] = ["is_", "has_", "can_", "not_"];

/// Words that plain English does not use so, as parts of identifiers.
const BANNED: [&str; 6] = ["told", "so_far", "gone_on", "goes_on", "standing", "whoever"];

/// The kinds of what is counted, each with its cure.
const KINDS: [(&str, &str); 9] = [
    ("closures", "a function with more than two named closures: write functions"),
    ("filter(|_| …)", "a condition is an `if`"),
    ("match ()", "a condition is an `if`"),
    ("tuple parameters", "a tuple has no name: write a struct, or pass its parts"),
    ("questions without an answer", "`is_…` returns a bool: call it `require_…`"),
    ("private type names", "a type name means one thing: write another name"),
    (
        "banned words",
        "`told`, `standing` and their like say too little: write a verb, or a noun of the glossary",
    ),
    ("test names", "a test name has at most eight words: its sentence is the doc comment"),
    ("short files", "a file of fewer than 45 lines is a part of its one user"),
];

/// The places of each kind, in one group of files.
pub(crate) struct Counted(BTreeMap<&'static str, Vec<String>>);

impl Counted {
    /// Counts everything in these files. `name` is the group's name in `ceilings.txt`.
    pub(crate) fn of(files: &[PathBuf]) -> Self {
        let mut found: BTreeMap<&'static str, Vec<String>> =
            KINDS.iter().map(|(kind, _)| (*kind, Vec::new())).collect();
        let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for path in files {
            let text = std::fs::read_to_string(path).unwrap();
            let place = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string();
            let lines = text.lines().count();
            if lines < FILE_LINES_MIN && !ROOTS.iter().any(|root| path.ends_with(root)) {
                found.entry("short files").or_default().push(format!("{place}: {lines} lines"));
            }
            let syntax = syn::parse_file(&text).unwrap_or_else(|why| panic!("{place}: {why}"));
            let mut walk = Walk { place: &place, function: Vec::new(), found: &mut found, types: &mut types };
            walk.visit_file(&syntax);
        }
        for (name, places) in types {
            if places.len() > 1 {
                found.entry("private type names").or_default().push(format!("{name}: {}", places.join(", ")));
            }
        }
        Self(found)
    }

    /// Compares the counts with those of a group in `ceilings.txt`. Returns what a person has to do.
    pub(crate) fn faults(&self, group: &str, ceilings: &Ceilings) -> Vec<String> {
        let mut faults = Vec::new();
        for (kind, cure) in KINDS {
            let (places, ceiling) = (&self.0[kind], ceilings.get(group, kind));
            let count = places.len();
            if count > ceiling {
                let places = places.join("\n  ");
                faults.push(format!("{group}, {kind}: {count} and not {ceiling}; {cure}:\n  {places}"));
            } else if count < ceiling {
                faults.push(format!(
                    "{group}, {kind}: {count} and not {ceiling}; CONSENSUS_REWRITE=1 cargo test --test tidy lowers the ceiling"
                ));
            }
        }
        faults
    }
}

/// The counts that no change may raise.
pub(crate) struct Ceilings {
    path: PathBuf,
    lines: Vec<(String, String, usize)>,
}

impl Ceilings {
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let line = |line: &str| {
            let [group, kind, count] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            (group.to_owned(), kind.to_owned(), count.parse().unwrap())
        };
        Self { path: path.to_owned(), lines: text.lines().map(line).collect() }
    }

    fn get(&self, group: &str, kind: &str) -> usize {
        let found = self.lines.iter().find(|(of, what, _)| of == group && what == kind);
        found.map_or(0, |(_, _, count)| *count)
    }

    /// Writes the counts that have fallen.
    pub(crate) fn lower(&self, counts: &[(&str, Counted)]) {
        let mut text = String::new();
        for (group, counted) in counts {
            for (kind, _) in KINDS {
                let count = counted.0[kind].len().min(self.get(group, kind));
                let _ = writeln!(text, "{group}\t{kind}\t{count}");
            }
        }
        std::fs::write(&self.path, text).unwrap();
    }
}

/// A walk through one file.
struct Walk<'a> {
    place: &'a str,
    /// The functions that the walk is in, each with its number of named closures.
    function: Vec<(String, usize)>,
    found: &'a mut BTreeMap<&'static str, Vec<String>>,
    types: &'a mut BTreeMap<String, Vec<String>>,
}

impl Walk<'_> {
    fn add(&mut self, kind: &'static str, what: &str) {
        self.found.entry(kind).or_default().push(format!("{}: {what}", self.place));
    }

    fn signature(&mut self, attributes: &[syn::Attribute], signature: &syn::Signature) {
        let name = signature.ident.to_string();
        let is_test =
            attributes.iter().any(|of| of.path().segments.last().is_some_and(|last| last.ident == "test"));
        if is_test && name.split('_').count() > TEST_WORDS_MAX {
            self.add("test names", &name);
        }
        let has_tuple = signature.inputs.iter().any(|input| match input {
            syn::FnArg::Typed(typed) => is_tuple(&typed.ty),
            syn::FnArg::Receiver(_) => false,
        });
        if has_tuple {
            self.add("tuple parameters", &name);
        }
        if QUESTIONS.iter().any(|question| name.starts_with(question))
            && returns_unit_result(&signature.output)
        {
            self.add("questions without an answer", &name);
        }
    }

    fn body(&mut self, name: &syn::Ident, walk: impl FnOnce(&mut Self)) {
        self.function.push((name.to_string(), 0));
        walk(self);
        if let Some((name, closures)) = self.function.pop()
            && closures > CLOSURES_MAX
        {
            self.add("closures", &format!("{name} has {closures}"));
        }
    }

    fn define(&mut self, name: &syn::Ident) {
        self.types.entry(name.to_string()).or_default().push(self.place.to_owned());
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.signature(&item.attrs, &item.sig);
        self.body(&item.sig.ident, |walk| visit::visit_item_fn(walk, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.signature(&item.attrs, &item.sig);
        self.body(&item.sig.ident, |walk| visit::visit_impl_item_fn(walk, item));
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        let is_closure = local.init.as_ref().is_some_and(|init| matches!(*init.expr, syn::Expr::Closure(_)));
        if let Some((_, closures)) = self.function.last_mut()
            && is_closure
        {
            *closures += 1;
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let ignores = |argument: &syn::Expr| matches!(argument, syn::Expr::Closure(closure) if matches!(closure.inputs.first(), Some(syn::Pat::Wild(_))));
        if call.method == "filter" && call.args.iter().any(ignores) {
            let name = self.function.last().map_or_else(String::new, |(name, _)| name.clone());
            self.add("filter(|_| …)", &name);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_match(&mut self, expression: &'ast syn::ExprMatch) {
        if matches!(&*expression.expr, syn::Expr::Tuple(tuple) if tuple.elems.is_empty()) {
            let name = self.function.last().map_or_else(String::new, |(name, _)| name.clone());
            self.add("match ()", &name);
        }
        visit::visit_expr_match(self, expression);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.define(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.define(&item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_ident(&mut self, name: &'ast syn::Ident) {
        let name = name.to_string();
        let words = format!("_{}_", snake(&name));
        if BANNED.iter().any(|banned| words.contains(&format!("_{banned}_"))) {
            self.add("banned words", &name);
        }
    }
}

/// Returns a name in small letters, with its words apart.
fn snake(name: &str) -> String {
    let mut words = String::new();
    for (at, c) in name.chars().enumerate() {
        if c.is_uppercase() && at > 0 {
            words.push('_');
        }
        words.extend(c.to_lowercase());
    }
    words
}

fn is_tuple(kind: &syn::Type) -> bool {
    if let syn::Type::Reference(reference) = kind {
        return is_tuple(&reference.elem);
    }
    matches!(kind, syn::Type::Tuple(tuple) if !tuple.elems.is_empty())
}

/// Returns true for `Result<()>` and `Result<(), E>`.
fn returns_unit_result(output: &syn::ReturnType) -> bool {
    let syn::ReturnType::Type(_, kind) = output else { return false };
    let syn::Type::Path(path) = &**kind else { return false };
    let Some(last) = path.path.segments.last() else { return false };
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else { return false };
    let is_unit = |argument: &syn::GenericArgument| matches!(argument, syn::GenericArgument::Type(syn::Type::Tuple(tuple)) if tuple.elems.is_empty());
    last.ident == "Result" && arguments.args.first().is_some_and(is_unit)
}
