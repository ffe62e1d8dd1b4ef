//! How long it takes to redact sixteen megabytes: of what a form takes longest for, of much to replace, and of prose.

use std::time::{Duration, Instant};

use protocol::text::redact::Redactor;

use crate::Result;

const BYTES: usize = 16_000_000;

/// The most that any of them may take.
const GOAL: Duration = Duration::from_secs(2);

/// Prints the rows.
pub(super) fn measure() -> Result<()> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut drawn = |signs: &str| -> String {
        let signs: Vec<char> = signs.chars().collect();
        (0..BYTES).map(|_| signs[random.usize(..signs.len())]).collect()
    };
    let hex = drawn("0123456789ABCDEF");
    let base32 = drawn("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567");
    let filled = |mut next: Box<dyn FnMut() -> String>| {
        let mut text = String::new();
        while text.len() < BYTES {
            text.push_str(&next());
        }
        text
    };
    let mut random = fastrand::Rng::with_seed(2);
    let emails = filled(Box::new(move || format!("ann{}@mail.example.org, ", random.u32(..1_000_000))));
    let mut random = fastrand::Rng::with_seed(3);
    let digits = filled(Box::new(move || format!("{:04} ", random.u32(..10_000))));
    let mut random = fastrand::Rng::with_seed(5);
    let phones = filled(Box::new(move || format!("{}\n", random.u64(1_000_000_000..10_000_000_000))));
    let words =
        "the harbour lies in the north and there was ice when Ottilie Brandt kept its lighthouse about 1877";
    let words: Vec<&str> = words.split(' ').collect();
    let mut random = fastrand::Rng::with_seed(4);
    let prose = filled(Box::new(move || {
        let line: Vec<&str> = (0..12).map(|_| words[random.usize(..words.len())]).collect();
        format!("{}.\n", line.join(" "))
    }));
    println!("{:52} {:>12} {:>12} {:>8}", "redacting 16 MB", "seconds", "tokens", "goal");
    for (name, text) in [
        ("upper-case hex in one line", hex.clone()),
        ("the same after a line break", format!("a\n\n{hex}")),
        ("base32 in one line", base32),
        ("`AB12` in one line", "AB12".repeat(BYTES / 4)),
        ("e-mail addresses, nearly all different", emails),
        ("prose in lines", prose),
        ("groups of four digits in one line", digits),
        ("numbers of ten digits, one in a line", phones),
    ] {
        let mut redactor = Redactor::default();
        let began = Instant::now();
        let redacted = redactor.redact(&text);
        let took = began.elapsed();
        if redactor.redactions().restore(&redacted) != text {
            return Err(format!("{name}: it does not come back").into());
        }
        let goal = if took <= GOAL { "met" } else { "MISSED" };
        println!("{name:52} {:>12.2} {:>12} {goal:>8}", took.as_secs_f64(), redactor.redactions().count());
    }
    Ok(())
}
