//! The graph of the modules: which source file uses what another one defines.
//!
//! In: the files below `src/`. Out: [`Graph`], with an arrow from each file to every file that defines an item which
//! it names, by `use`, by an inline path or inside a macro call. Re-exports are followed to the file of the
//! definition, so that a `mod.rs` hides no arrow. Test code and a re-export itself are no arrows. A method of a type
//! that a file never names is not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::{self, Visit};

use crate::names;

/// A module's path below the crate, for example `["protocol", "pair", "machine"]`; the crate's root is empty.
pub(crate) type Module = Vec<String>;

/// Files and the arrows between them.
pub(crate) struct Graph {
    /// For each module with a file, the modules that it uses, without itself.
    pub(crate) arrows: BTreeMap<Module, BTreeSet<Module>>,
}

/// What one file declares and uses.
#[derive(Default)]
struct File {
    /// Names that `use` brings in, with the absolute path that each stands for.
    bindings: BTreeMap<String, Module>,
    /// Modules of which every name is brought in.
    globs: Vec<Module>,
    /// Names that the file defines itself.
    defines: BTreeSet<String>,
    /// Absolute paths that the file's own code names.
    uses: Vec<Module>,
    /// Relative paths in code, to be resolved by the file's bindings.
    paths: Vec<Module>,
}

impl Graph {
    /// Reads every source file of a crate; `main.rs` is a crate of its own.
    pub(crate) fn of_crate(src: &Path, files: &[std::path::PathBuf]) -> Self {
        let mut parsed: BTreeMap<Module, File> = BTreeMap::new();
        let mut tests: BTreeSet<Module> = BTreeSet::new();
        for path in files.iter().filter(|path| !path.ends_with("src/main.rs")) {
            let module = module_of(path.strip_prefix(src).unwrap());
            let text = std::fs::read_to_string(path).unwrap();
            let syntax = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let mut reader = UseReader { module: module.clone(), file: File::default(), tests: &mut tests };
            reader.visit_file(&syntax);
            let file = reader.file;
            parsed.insert(module, file);
        }
        parsed.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        let arrows = parsed.keys().map(|module| (module.clone(), arrows_of(module, &parsed))).collect();
        Self { arrows }
    }

    /// Returns every set of files that use each other in a circle, largest first.
    pub(crate) fn circles(&self) -> Vec<Vec<Module>> {
        let modules: Vec<&Module> = self.arrows.keys().collect();
        let index: BTreeMap<&Module, usize> = self.arrows.keys().zip(0..).collect();
        let mut graph: DiGraphMap<usize, ()> = DiGraphMap::new();
        for (from, to) in &self.arrows {
            for to in to {
                graph.add_edge(index[from], index[to], ());
            }
        }
        let groups = tarjan_scc(&graph).into_iter().filter(|group| group.len() > 1);
        let mut found: Vec<Vec<Module>> =
            groups.map(|group| group.into_iter().map(|node| modules[node].clone()).collect()).collect();
        for group in &mut found {
            group.sort();
        }
        found.sort_by_key(|group| std::cmp::Reverse(group.len()));
        found
    }

    /// Returns the arrows among some files, one a line.
    pub(crate) fn among(&self, group: &[Module]) -> String {
        let mut text = format!("a circle of {} files:\n", group.len());
        for from in group {
            let to: Vec<String> =
                group.iter().filter(|to| self.arrows[from].contains(*to)).map(|to| name(to)).collect();
            let _ = writeln!(text, "  {} uses {}", name(from), to.join(", "));
        }
        text
    }
}

/// Returns a module's name as it stands in code.
pub(crate) fn name(module: &[String]) -> String {
    if module.is_empty() { "crate".to_owned() } else { module.join("::") }
}

fn module_of(path: &Path) -> Module {
    let mut parts: Module =
        path.with_extension("").iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib")) {
        parts.pop();
    }
    parts
}

fn arrows_of(module: &Module, parsed: &BTreeMap<Module, File>) -> BTreeSet<Module> {
    let file = &parsed[module];
    let mut found: BTreeSet<Module> = file.uses.iter().filter_map(|path| resolve(path, parsed, 0)).collect();
    for path in &file.paths {
        let child = [module.as_slice(), &path[..1]].concat();
        let absolute = if let Some(bound) = file.bindings.get(&path[0]) {
            [bound.as_slice(), &path[1..]].concat()
        } else if path.len() > 1 && parsed.contains_key(&child) {
            [module.as_slice(), path].concat()
        } else if let Some(glob) = file.brings(&path[0], parsed) {
            [glob.as_slice(), path].concat()
        } else {
            continue;
        };
        found.extend(resolve(&absolute, parsed, 0));
    }
    found.remove(module);
    found
}

/// Returns the module whose file defines what a path names, or `None` for a module itself and for other crates.
fn resolve(path: &[String], parsed: &BTreeMap<Module, File>, depth: usize) -> Option<Module> {
    let mut module = Module::new();
    for (index, segment) in path.iter().enumerate() {
        let child = [module.as_slice(), std::slice::from_ref(segment)].concat();
        let is_last = index + 1 == path.len();
        if parsed.contains_key(&child) {
            // A module and an item of it may have the same name: `pub use transcript::transcript`.
            let item = parsed.get(&module).and_then(|file| file.bindings.get(segment));
            if let Some(item) = item.filter(|item| is_last && depth < 20 && **item != child) {
                return resolve(item, parsed, depth + 1);
            }
            module = child;
            continue;
        }
        let file = parsed.get(&module)?;
        if !file.defines.contains(segment) && depth < 20 {
            let rest = &path[index + 1..];
            if let Some(bound) = file.bindings.get(segment) {
                return resolve(&[bound.as_slice(), rest].concat(), parsed, depth + 1);
            }
            if let Some(glob) = file.brings(segment, parsed) {
                return resolve(&[glob.as_slice(), &path[index..]].concat(), parsed, depth + 1);
            }
        }
        let is_foreign = module.is_empty() && !file.defines.contains(segment);
        return (!is_foreign).then_some(module);
    }
    None
}

impl File {
    /// Returns the module of which every name is brought in, this one among them.
    fn brings<'a>(&'a self, item: &str, parsed: &BTreeMap<Module, File>) -> Option<&'a Module> {
        let knows = |file: &File| file.defines.contains(item) || file.bindings.contains_key(item);
        self.globs.iter().find(|glob| parsed.get(*glob).is_some_and(knows))
    }
}

/// Collects what one file declares and uses.
struct UseReader<'a> {
    module: Module,
    file: File,
    tests: &'a mut BTreeSet<Module>,
}

impl UseReader<'_> {
    /// Makes a path that begins with `crate`, `self` or `super` absolute; `None` if it begins otherwise.
    fn absolute(&self, path: &[String]) -> Option<Module> {
        let mut at = match path.first()?.as_str() {
            "crate" => Module::new(),
            "self" | "super" => self.module.clone(),
            _ => return None,
        };
        let ups = path.iter().take_while(|part| *part == "super").count();
        at.truncate(at.len().saturating_sub(ups));
        let named = path.iter().skip_while(|part| matches!(part.as_str(), "crate" | "self" | "super"));
        at.extend(named.cloned());
        Some(at)
    }

    fn note(&mut self, path: Module) {
        match self.absolute(&path) {
            Some(absolute) => self.file.uses.push(absolute),
            None => self.file.paths.push(path),
        }
    }

    /// Notes the leaves of a `use`; a re-export is no arrow.
    fn bind(&mut self, tree: &syn::UseTree, before: &[String], is_arrow: bool) {
        match tree {
            syn::UseTree::Path(path) => {
                self.bind(&path.tree, &[before, &[path.ident.to_string()]].concat(), is_arrow);
            }
            syn::UseTree::Name(leaf) => self.bind_leaf(before, &leaf.ident, &leaf.ident, is_arrow),
            syn::UseTree::Rename(leaf) => self.bind_leaf(before, &leaf.ident, &leaf.rename, is_arrow),
            syn::UseTree::Glob(_) => self.file.globs.extend(self.absolute(before)),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.bind(tree, before, is_arrow);
                }
            }
        }
    }

    fn bind_leaf(&mut self, before: &[String], item: &syn::Ident, shown: &syn::Ident, is_arrow: bool) {
        let mut path = before.to_vec();
        let mut shown = shown.to_string();
        if item == "self" {
            shown = before.last().cloned().unwrap_or(shown);
        } else {
            path.push(item.to_string());
        }
        // `use machine::Pair;` in a `mod.rs` names a child without `self`.
        let absolute = self.absolute(&path).unwrap_or_else(|| [self.module.as_slice(), &path].concat());
        if is_arrow {
            self.file.uses.push(absolute.clone());
        }
        self.file.bindings.insert(shown, absolute);
    }

    /// Finds paths in the words of a macro call, which are no syntax yet.
    fn scan(&mut self, tokens: TokenStream) {
        let mut path: Module = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(word) => {
                    if colons != 2 {
                        self.end(&mut path);
                    }
                    path.push(word.to_string());
                    colons = 0;
                }
                TokenTree::Punct(sign) if sign.as_char() == ':' && !path.is_empty() => colons += 1,
                TokenTree::Group(group) => {
                    self.end(&mut path);
                    self.scan(group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => self.end(&mut path),
            }
        }
        self.end(&mut path);
    }

    fn end(&mut self, path: &mut Module) {
        let path = std::mem::take(path);
        if !path.is_empty() {
            self.note(path);
        }
    }
}

impl<'ast> Visit<'ast> for UseReader<'_> {
    /// The `super` of `pub(super)` uses nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_item(&mut self, item: &'ast syn::Item) {
        if let syn::Item::Mod(module) = item {
            let is_test = module.attrs.iter().any(|attribute| {
                attribute.path().is_ident("cfg")
                    && attribute.meta.to_token_stream().to_string().contains("test")
            });
            if is_test {
                self.tests.insert([self.module.as_slice(), &[module.ident.to_string()]].concat());
                return;
            }
        }
        self.file.defines.extend(names::defined(item).map(|(_, name)| name.to_string()));
        visit::visit_item(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_private = matches!(item.vis, syn::Visibility::Inherited);
        self.bind(&item.tree, &[], is_private);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.note(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.scan(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        // serde takes paths as texts.
        if attribute.path().is_ident("serde")
            && let syn::Meta::List(list) = &attribute.meta
        {
            for token in list.tokens.clone() {
                if let TokenTree::Literal(text) = token
                    && let Ok(path) = syn::parse_str::<syn::LitStr>(&text.to_string())
                    && let Ok(path) = path.parse::<syn::Path>()
                {
                    self.visit_path(&path);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the graph of a crate with these files.
    fn graph(files: &[(&str, &str)]) -> Graph {
        let src = std::env::temp_dir().join(format!("tidy-{}-{:p}", std::process::id(), files));
        let paths: Vec<_> = files.iter().map(|(name, _)| src.join(name)).collect();
        for (path, (_, text)) in paths.iter().zip(files) {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let graph = Graph::of_crate(&src, &paths);
        std::fs::remove_dir_all(&src).unwrap();
        graph
    }

    /// Returns the arrows of a graph, each as `from uses to`.
    fn arrows(graph: &Graph) -> Vec<String> {
        let mut arrows = Vec::new();
        for (from, used) in &graph.arrows {
            arrows.extend(used.iter().map(|to| format!("{} uses {}", name(from), name(to))));
        }
        arrows
    }

    /// A folder `a` whose `mod.rs` only re-exports what `a/inner.rs` defines, and a file that names it in some way.
    fn through_a_re_export(user: &str) -> Vec<String> {
        let reexport = "mod inner;\npub use inner::Thing;\n";
        let inner = "pub struct Thing;\npub fn make() -> Thing { Thing }\n";
        arrows(&graph(&[
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a/mod.rs", reexport),
            ("a/inner.rs", inner),
            ("b.rs", user),
        ]))
    }

    /// Each way to name an item is an arrow to the file that defines it.
    #[test]
    fn every_named_item_is_an_arrow() {
        for user in [
            "use crate::a::Thing;\nfn f(_: Thing) {}",
            "use crate::a::{self};\nfn f(_: a::Thing) {}",
            "use super::a as other;\nfn f(_: other::Thing) {}",
            "use crate::a::*;\nfn f(_: Thing) {}",
            "fn f(_: crate::a::Thing) {}",
            "fn f() { println!(\"{}\", size_of::<crate::a::Thing>()) }",
            "#[derive(X)]\nstruct S { #[serde(with = \"crate::a::Thing\")] x: u8 }",
        ] {
            assert_eq!(through_a_re_export(user), ["b uses a::inner"], "{user}");
        }
    }

    /// A module alone, a re-export, test code and other crates add no arrows.
    #[test]
    fn other_mentions_add_no_arrows() {
        for user in [
            "use crate::a;",
            "pub use crate::a::Thing;",
            "#[cfg(test)]\nmod tests { use crate::a::Thing; fn f(_: Thing) {} }",
            "use std::fmt;\nfn f(_: &mut fmt::Formatter<'_>) {}",
        ] {
            assert!(through_a_re_export(user).is_empty(), "{user}");
        }
    }

    #[test]
    fn function_named_like_module_is_arrow() {
        let found = arrows(&graph(&[
            ("lib.rs", "mod a;\n"),
            ("a/mod.rs", "mod inner;\nmod other;\npub use inner::inner;\n"),
            ("a/inner.rs", "pub fn inner() {}\n"),
            ("a/other.rs", "use super::inner;\npub(super) fn f() { inner() }\n"),
        ]));
        assert_eq!(found, ["a::other uses a::inner"]);
    }

    #[test]
    fn a_circle_is_found_through_a_re_export() {
        let found = graph(&[
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a/mod.rs", "mod inner;\npub use inner::Thing;\n"),
            ("a/inner.rs", "pub struct Thing(crate::b::Other);\n"),
            ("b.rs", "use crate::a::Thing;\npub struct Other(Box<Thing>);\n"),
        ]);
        assert_eq!(arrows(&found), ["a::inner uses b", "b uses a::inner"]);
        let names: Vec<String> = found.circles().concat().iter().map(|module| name(module)).collect();
        assert_eq!(names, ["a::inner", "b"]);
    }
}
