//! Notices for people while a service works; its caller decides where they go.

use std::time::Duration;

/// Where notices go.
pub trait Notices {
    /// Takes a line of the story, which may be left out where no story is wanted.
    fn status(&self, line: &str);

    /// Takes a line that matters also where no story is wanted.
    fn warn(&self, line: &str);

    /// Takes the beginning of a wait for something outside.
    fn wait_for(&self, what: &str) -> Box<dyn Waiting + '_>;
}

/// A wait for something outside.
pub trait Waiting {
    /// Takes what is waited for by now.
    fn now(&self, what: &str);

    /// Takes a line that matters and is not what is waited for.
    fn tell(&self, line: &str);

    /// Takes how long it has taken by now.
    fn since(&self, after: Duration);

    /// Takes the end of the wait, with a last line.
    fn done(self: Box<Self>, line: &str);
}
