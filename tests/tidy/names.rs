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
            let is_type = matches!(
                item,
                syn::Item::Struct(_) | syn::Item::Enum(_) | syn::Item::Trait(_) | syn::Item::Type(_)
            );
            if is_type
                && let Some((visibility, name)) = defined(item)
                && !matches!(visibility, syn::Visibility::Inherited)
            {
                found.entry(name.to_string()).or_default().push(path.clone());
            }
        }
    }
    found.retain(|_, files| files.len() > 1);
    found
}

/// Returns the visibility and the name of what an item defines, if it defines something that can be used.
#[expect(clippy::wildcard_enum_match_arm, reason = "the syntax may grow")]
pub(crate) fn defined(item: &syn::Item) -> Option<(&syn::Visibility, &syn::Ident)> {
    Some(match item {
        syn::Item::Const(item) => (&item.vis, &item.ident),
        syn::Item::Enum(item) => (&item.vis, &item.ident),
        syn::Item::Fn(item) => (&item.vis, &item.sig.ident),
        syn::Item::Static(item) => (&item.vis, &item.ident),
        syn::Item::Struct(item) => (&item.vis, &item.ident),
        syn::Item::Trait(item) => (&item.vis, &item.ident),
        syn::Item::Type(item) => (&item.vis, &item.ident),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_others_can_see_are_counted() {
        let folder = std::env::temp_dir().join(format!("tidy-names-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let files = [
            "pub struct Twice;\nstruct Own;\npub fn twice() {}",
            "pub(crate) enum Twice {}\nstruct Own;\npub fn twice() {}",
        ];
        let paths: Vec<PathBuf> = (0..2).map(|at| folder.join(format!("{at}.rs"))).collect();
        for (path, text) in paths.iter().zip(files) {
            std::fs::write(path, text).unwrap();
        }
        let found = defined_twice(&paths);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found.into_keys().collect::<Vec<_>>(), ["Twice"]);
    }
}
