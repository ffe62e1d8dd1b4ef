//! The number of requests that one server gets at once: more while all goes well, fewer at signs of overload.
//!
//! The input is the outcome of each request, with its time. The output is a number between two bounds. It doubles with
//! every round of good answers until the first sign of overload. It is cut by half at a refusal, and by a fifth if
//! answers begin later and later, but only once a round. After that it grows by one a round: additive increase,
//! multiplicative decrease (Chiu and Jain 1989; RFC 5681 for the slow start). No clock is read here.

use std::time::Duration;

use tokio::time::Instant;

/// The share of the limit that is left after a refusal.
const AFTER_REFUSAL: f64 = 0.5;

/// The share of the limit that is left when answers begin later and later.
const AFTER_DELAY: f64 = 0.8;

/// The factor by which the recent delay must exceed that of the long run for answers to count as later. A long prompt
/// takes long as well, and is not a sign: a mixture that remains the same has one delay in both.
const LATER: f64 = 2.0;

/// The delay below which no answer is late, in seconds.
const LATE_MIN: f64 = 2.0;

/// The weight of a new delay in the recent average, and in that of the long run.
const SMOOTH: [f64; 2] = [0.1, 0.005];

/// The outcome of a request, as a sign of the server's load.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum LoadSign {
    /// The server has answered, and began after this time, if it is known.
    Answered(Option<Duration>),
    /// The server says that it has too much to do.
    Refused,
    /// The request met another fault, which says nothing about the load.
    Nothing,
}

/// The limit of one server.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    now: f64,
    max: f64,
    is_slow_start: bool,
    /// The time of the last cut. Requests from before it say nothing new.
    cut_at: Option<Instant>,
    /// The delay until an answer begins, in seconds: recently, and in the long run.
    delays: Option<[f64; 2]>,
}

impl Limit {
    /// Creates a limit that begins at `start` and stays between 1 and `max`.
    pub(super) fn new(start: usize, max: usize) -> Self {
        let max = max.max(1) as f64;
        let now = (start as f64).clamp(1.0, max);
        Self { now, max, is_slow_start: true, cut_at: None, delays: None }
    }

    /// Returns the number of requests that may be under way.
    pub(super) fn now(&self) -> usize {
        // The value is between 1 and a number that was an integer.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is small and positive"
        )]
        let now = self.now as usize;
        now
    }

    /// Records the outcome of a request that was sent at `sent`, while this many requests were under way.
    pub(super) fn record(&mut self, now: Instant, sent: Instant, under_way: usize, sign: LoadSign) {
        match sign {
            LoadSign::Refused => self.cut(now, sent, AFTER_REFUSAL),
            LoadSign::Answered(Some(delay)) if self.is_later(delay) => self.cut(now, sent, AFTER_DELAY),
            // If the limit does not bind, nothing is known about a higher one. While it doubles, the requests lag
            // behind it.
            LoadSign::Answered(_)
                if (under_way as f64) < self.now * if self.is_slow_start { 0.5 } else { 0.9 } => {}
            LoadSign::Answered(_) => {
                let more = if self.is_slow_start { 1.0 } else { 1.0 / self.now };
                self.now = (self.now + more).min(self.max);
            }
            LoadSign::Nothing => {}
        }
    }

    /// Records the delay until an answer began. Returns true if the delay is growing.
    fn is_later(&mut self, delay: Duration) -> bool {
        let new = delay.as_secs_f64();
        let [lately, long] = self.delays.get_or_insert([new; 2]);
        *lately += SMOOTH[0] * (new - *lately);
        *long += SMOOTH[1] * (new - *long);
        *lately > (*long * LATER).max(LATE_MIN)
    }

    fn cut(&mut self, now: Instant, sent: Instant, part: f64) {
        self.is_slow_start = false;
        if self.cut_at.is_some_and(|cut| sent <= cut) {
            return;
        }
        self.cut_at = Some(now);
        self.now = (self.now * part).max(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: LoadSign = LoadSign::Answered(Some(Duration::from_millis(50)));

    /// Sends one round of requests at the limit, all at the same time.
    fn round(limit: &mut Limit, sent: Instant, signs: impl Fn(usize) -> LoadSign) {
        let under_way = limit.now();
        for number in 0..under_way {
            limit.record(sent + Duration::from_millis(50), sent, under_way, signs(number));
        }
    }

    /// After that the limit grows by one a round.
    #[test]
    fn limit_doubles_until_first_refusal() {
        let mut limit = Limit::new(4, 1000);
        let mut now = Instant::now();
        let mut next = || {
            now += Duration::from_secs(1);
            now
        };
        for expected in [8, 16, 32, 64] {
            round(&mut limit, next(), |_| QUICK);
            assert_eq!(limit.now(), expected);
        }
        // Many refusals in one round are one sign.
        round(&mut limit, next(), |number| if number % 2 == 0 { LoadSign::Refused } else { QUICK });
        let cut = limit.now();
        assert!((32..=33).contains(&cut), "{cut}");
        for more in 1..=5 {
            round(&mut limit, next(), |_| QUICK);
            assert!(limit.now().abs_diff(cut + more) <= 1, "{} after {more} rounds from {cut}", limit.now());
        }
    }

    /// A limit that does not bind learns nothing.
    #[test]
    fn limit_stays_between_its_bounds() {
        let mut limit = Limit::new(8, 10);
        let start = Instant::now();
        for second in 0..50 {
            round(&mut limit, start + Duration::from_secs(second), |_| QUICK);
        }
        assert_eq!(limit.now(), 10);
        for second in 50..80 {
            let now = start + Duration::from_secs(second);
            limit.record(now, now, 1, LoadSign::Refused);
        }
        assert_eq!(limit.now(), 1);
        let mut limit = Limit::new(8, 100);
        for second in 0..50 {
            limit.record(start + Duration::from_secs(second), start, 2, QUICK);
        }
        assert_eq!(limit.now(), 8);
    }

    /// Answers that begin later and later are a sign of load. Answers that always take long are not.
    #[test]
    fn later_answers_lower_the_limit() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let slow = |seconds| LoadSign::Answered(Some(Duration::from_secs(seconds)));
        let mut limit = Limit::new(64, 64);
        for second in 0..20 {
            // The prompts are a mixture of short ones and long ones.
            round(&mut limit, after(second), |number| if number % 4 == 0 { slow(30) } else { QUICK });
        }
        assert_eq!(limit.now(), 64, "a mixture");
        let mut limit = Limit::new(64, 64);
        for second in 0..20 {
            round(&mut limit, after(second), |_| QUICK);
        }
        round(&mut limit, after(100), |_| slow(9));
        assert!(limit.now() <= 52, "{}", limit.now());
        let before = limit.now();
        round(&mut limit, after(900), |_| LoadSign::Nothing);
        round(&mut limit, after(901), |_| LoadSign::Answered(None));
        assert_eq!(limit.now(), before + 1, "other faults are none, and an answer is one of health");
    }
}
