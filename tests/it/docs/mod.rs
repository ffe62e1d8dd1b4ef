//! The README and the book: their commands run, their generated pages are fresh, and their links lead somewhere.

mod commands;
mod generated;
mod links;

use std::path::{Path, PathBuf};

/// Returns the path of a file of the repository.
fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Returns the text of a file of the repository.
fn text_of(name: &str) -> String {
    std::fs::read_to_string(repository(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

/// Returns the pages of a folder of the book, by the names that they have in the repository.
fn pages(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(repository(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{folder}/{}", entry.file_name().into_string().unwrap());
        if entry.path().is_dir() {
            found.extend(pages(&name));
        } else if Path::new(&name).extension().is_some_and(|ending| ending == "md") {
            found.push(name);
        }
    }
    found.sort();
    found
}
