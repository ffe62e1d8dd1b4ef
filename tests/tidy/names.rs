//! Names of types: which are defined more than once.
//!
//! In: source files. Out: each name that two or more files define for others to see, with these files. A type that its
//! own file alone can see is no concern of anybody else's.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Returns each type name that more than one file defines with a visibility, with the files.
pub(crate) fn defined_twice(files: &[PathBuf]) -> BTreeMap<String, Vec<PathBuf>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for path in files {
        let text = std::fs::read_to_string(path).unwrap();
        let syntax = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for item in &syntax.items {
            let Some((visibility, name)) = type_of(item) else { continue };
            if !matches!(visibility, syn::Visibility::Inherited) {
                found.entry(name.to_string()).or_default().push(path.clone());
            }
        }
    }
    found.retain(|_, files| files.len() > 1);
    found
}

/// Returns the visibility and the name of a type that an item defines, if it defines one.
fn type_of(item: &syn::Item) -> Option<(&syn::Visibility, &syn::Ident)> {
    if let syn::Item::Struct(item) = item {
        return Some((&item.vis, &item.ident));
    }
    if let syn::Item::Enum(item) = item {
        return Some((&item.vis, &item.ident));
    }
    if let syn::Item::Trait(item) = item {
        return Some((&item.vis, &item.ident));
    }
    if let syn::Item::Type(item) = item { Some((&item.vis, &item.ident)) } else { None }
}
