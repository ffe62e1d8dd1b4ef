//! The look of pages for people, and the parts that pages share.
//!
//! ```text
//!  figures ──► scale: positions on an axis, and the numbers along it ─┐
//!  transcripts ──► blocks: parts that look different ─────────────────┴─► a template, with the look and the marks
//! ```
//!
//! The input is figures and texts. The output is values for templates, and an environment in which a template finds the beginning of a
//! page `head.html`, its style sheet `look.css`, and the marks of drawings `marks.html`. A page loads nothing and runs nothing, and shows
//! every text as plain text.

mod blocks;
mod mark;
mod scale;

use minijinja::{AutoEscape, Environment};

pub use blocks::Blocks;
pub use mark::{PlotMark, point_labels};
pub use scale::{LogScale, Scale, Tick};

/// The name of the style sheet, the only template that is no HTML.
const LOOK: &str = "look.css";

/// The style sheet of all pages.
pub const LOOK_OF_PAGES: &str = include_str!("look.css");

/// Returns the environment of all pages.
///
/// # Panics
///
/// Never panics: the templates in it are read by the program's tests.
pub fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment
        .set_auto_escape_callback(|name| if name == LOOK { AutoEscape::None } else { AutoEscape::Html });
    let templates = [
        (LOOK, LOOK_OF_PAGES),
        ("head.html", include_str!("head.html")),
        ("marks.html", include_str!("marks.html")),
    ];
    for (name, template) in templates {
        environment.add_template(name, template).expect("the built-in templates are read by the tests");
    }
    environment
}
