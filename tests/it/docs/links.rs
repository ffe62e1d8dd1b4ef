//! Links of the README and the book.

use std::collections::BTreeSet;
use std::path::Path;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::{pages, repository, text_of};

/// Returns the links of a page that lead to files of the repository.
fn links(text: &str) -> Vec<String> {
    let is_local = |to: &str| !to.contains("://") && !to.starts_with("mailto:");
    let events = Parser::new_ext(text, Options::ENABLE_TABLES);
    events
        .filter_map(|event| {
            let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event else {
                return None;
            };
            Some(dest_url.to_string())
        })
        .filter(|to| !to.is_empty() && is_local(to))
        .collect()
}

/// Returns the anchors of a page, as the book makes them of its headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open: Option<String> = None;
    for event in Parser::new(text) {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "most events of Markdown are no part of a heading"
        )]
        match event {
            Event::Start(Tag::Heading { .. }) => open = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => found.extend(open.take()),
            Event::Text(words) | Event::Code(words) => {
                if let Some(open) = &mut open {
                    let words = words.to_lowercase();
                    open.extend(words.chars().filter_map(|c| match c {
                        ' ' | '-' => Some('-'),
                        c => (c.is_alphanumeric() || c == '_').then_some(c),
                    }));
                }
            }
            _ => {}
        }
    }
    found
}

#[test]
fn local_links_lead_to_pages_and_headings() {
    let mut broken = Vec::new();
    for page in
        [pages("docs/src"), vec!["README.md".to_owned(), ".github/CONTRIBUTING.md".to_owned()]].concat()
    {
        let text = text_of(&page);
        let folder = repository(&page).parent().unwrap().to_owned();
        for link in links(&text) {
            let (file, anchor) =
                link.split_once('#').map_or((&*link, None), |(file, anchor)| (file, Some(anchor)));
            let target = if file.is_empty() { repository(&page) } else { folder.join(file) };
            let has_anchor = |anchor: &str| {
                std::fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(anchor))
            };
            if !target.exists() || !anchor.is_none_or(has_anchor) {
                broken.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_table_of_contents_has_every_page() {
    let listed: BTreeSet<String> =
        links(&text_of("docs/src/SUMMARY.md")).into_iter().map(|page| format!("docs/src/{page}")).collect();
    let written: BTreeSet<String> = pages("docs/src")
        .into_iter()
        .filter(|page| Path::new(page).file_name().unwrap() != "SUMMARY.md")
        .collect();
    assert_eq!(listed, written);
}
