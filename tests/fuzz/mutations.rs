//! Inputs that are nearly right: seeds as they are, then with some of their bytes changed.
//!
//! In: seeds, and which inputs were taken. Out: further inputs, always the same ones. An input that was taken is changed
//! further, so that the code behind a first check is reached too. Nothing here knows the form of an input.

use fastrand::Rng;

/// Longer inputs only take time.
const BYTES_MAX: usize = 1 << 15;

/// So many inputs that were taken are changed further.
const LEARNT_MAX: usize = 64;

/// Words at which readers stumble.
const WORDS: [&str; 40] = [
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\n",
    "\r\n",
    "\t",
    "\0",
    "null",
    "true",
    "-1",
    "0",
    "1e999",
    "18446744073709551615",
    "9007199254740993",
    "0.1",
    "\\u0000",
    "\\ud800",
    "\u{feff}",
    "\u{202e}",
    "\u{200b}",
    "é",
    "\u{1f600}",
    "<think>",
    "</think>",
    "```json\n",
    "```",
    "data: ",
    "[DONE]",
    "===\n",
    "@@ -1 +1 @@\n",
    "diff --git a/x b/x\n",
    "[EMAIL_1]",
    "a@b.example",
    "../",
    "==",
];

/// Makes inputs.
pub(crate) struct Mutator {
    rng: Rng,
    /// Seeds, then inputs that were taken.
    pool: Vec<Vec<u8>>,
    seeds: usize,
    /// So many inputs were made.
    made: usize,
}

impl Mutator {
    /// Begins with these seeds.
    pub(crate) fn new(seeds: Vec<Vec<u8>>) -> Self {
        assert!(!seeds.is_empty(), "there is a seed");
        Self { rng: Rng::with_seed(20_261_125), seeds: seeds.len(), pool: seeds, made: 0 }
    }

    /// Returns the next input: each seed once, then mutations.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        self.made += 1;
        if self.made <= self.seeds {
            return self.pool[self.made - 1].clone();
        }
        let mut input = self.one_of_pool();
        for _ in 0..self.rng.usize(1..=4) {
            input = self.changed(input);
        }
        input.truncate(BYTES_MAX);
        input
    }

    /// Notes that an input was taken.
    pub(crate) fn learn(&mut self, input: Vec<u8>) {
        if self.made <= self.seeds || self.pool.contains(&input) {
            return;
        }
        if self.pool.len() < self.seeds + LEARNT_MAX {
            self.pool.push(input);
        } else {
            // A seed stays for ever.
            let at = self.rng.usize(self.seeds..self.pool.len());
            self.pool[at] = input;
        }
    }

    fn one_of_pool(&mut self) -> Vec<u8> {
        let at = self.rng.usize(..self.pool.len());
        self.pool[at].clone()
    }

    /// Changes an input in one of seven ways.
    fn changed(&mut self, mut input: Vec<u8>) -> Vec<u8> {
        let (start, end) = self.range(input.len());
        match self.rng.u8(..7) {
            0 => {
                if let Some(byte) = input.get_mut(start) {
                    *byte ^= 1 << self.rng.u8(..8);
                }
            }
            1 => drop(input.drain(start..end)),
            2 => {
                let doubled = input[start..end].to_vec();
                input.splice(start..start, doubled);
            }
            3 => {
                let word = WORDS[self.rng.usize(..WORDS.len())];
                input.splice(start..start, word.bytes());
            }
            4 => {
                let word = WORDS[self.rng.usize(..WORDS.len())];
                input.splice(start..end, word.bytes());
            }
            5 => {
                // The beginning of one, and the end of another.
                let other = self.one_of_pool();
                let (at, _) = self.range(other.len());
                input.truncate(start);
                input.extend_from_slice(&other[at..]);
            }
            _ => {
                // A part of another in place of a part.
                let other = self.one_of_pool();
                let (from, to) = self.range(other.len());
                input.splice(start..end, other[from..to].iter().copied());
            }
        }
        input
    }

    /// Returns a range of so many bytes, mostly a short one.
    fn range(&mut self, length: usize) -> (usize, usize) {
        let start = self.rng.usize(..=length);
        let most = if self.rng.u8(..4) == 0 { length } else { 16 };
        let end = (start + self.rng.usize(..=most)).min(length);
        (start, end)
    }
}
