//! The servers of one provider: which of them work, which have room, and which one gets the next request.
//!
//! The input is the server of each request, and its outcome. The output is the server for the next one. A conversation
//! stays on the server that has its beginning in its cache, while that server has room; otherwise it goes to the server
//! with the most room. A server that fails three times in a row is left out for a while, and then gets one request to
//! show that it works again. The pool also says whether all servers are gone, so that a caller need not wait for one.
//! No clock is read here.

use std::time::Duration;

use tokio::time::Instant;

use super::adaptive_limit::{Limit, LoadSign};

/// The number of faults in a row after which a server is left out.
const FAULTS_MAX: u32 = 3;

/// The time for which a server is left out at first. Each further time is twice as long.
const OUT_FOR: Duration = Duration::from_secs(1);

/// The longest time for which a server is left out.
const OUT_FOR_MAX: Duration = Duration::from_secs(30);

/// The number of times that every server must have been left out for an outage. The first time may be a short fault.
const OUTAGE_OUTS: u32 = 2;

/// The fullness up to which a server takes a conversation from a full one.
const EMPTY_ENOUGH: f64 = 0.75;

/// What the outcome of a request says about its server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum End {
    /// The server was there.
    Well(LoadSign),
    /// The server was broken.
    Ill,
    /// There was no connection to the server, or it broke.
    Gone,
}

/// The servers of one provider.
#[derive(Debug)]
pub(super) struct Pool(Vec<Server>);

#[derive(Debug)]
struct Server {
    limit: Limit,
    under_way: usize,
    /// The number of faults in a row.
    faults: u32,
    /// The number of times that the server was left out since it last worked.
    outs: u32,
    out_until: Option<Instant>,
    /// Whether the last fault was that of a server that is gone.
    is_gone: bool,
}

impl Pool {
    /// Creates a pool with one server for each of these limits.
    pub(super) fn new(limits: impl IntoIterator<Item = Limit>) -> Self {
        let server =
            |limit| Server { limit, under_way: 0, faults: 0, outs: 0, out_until: None, is_gone: false };
        Self(limits.into_iter().map(server).collect())
    }

    /// Takes a server for a request of a conversation that was on `home`. Returns `None` if the request has to wait for
    /// room.
    pub(super) fn take(&mut self, now: Instant, home: Option<usize>) -> Option<usize> {
        let fullness: Vec<f64> = self.0.iter().map(|server| server.fullness(now)).collect();
        let emptiest = (0..fullness.len()).min_by(|a, b| fullness[*a].total_cmp(&fullness[*b]))?;
        let at = match home.filter(|home| *home < fullness.len()) {
            Some(home) if fullness[home] < 1.0 => home,
            Some(home) if fullness[home].is_finite() && fullness[emptiest] > EMPTY_ENOUGH => return None,
            Some(_) | None => emptiest,
        };
        if fullness[at] >= 1.0 {
            return None;
        }
        self.0[at].under_way += 1;
        Some(at)
    }

    /// Records the outcome of a request that was sent to a server at `sent`.
    pub(super) fn give(&mut self, at: usize, now: Instant, sent: Instant, end: End) {
        let server = &mut self.0[at];
        match end {
            End::Well(sign) => {
                server.limit.record(now, sent, server.under_way, sign);
                // An outcome that says nothing does not show that the server works.
                if sign != LoadSign::Nothing {
                    (server.faults, server.outs, server.out_until) = (0, 0, None);
                }
            }
            End::Ill | End::Gone => {
                server.is_gone = end == End::Gone;
                server.faults += 1;
                let is_out = server.out_until.is_some_and(|until| until > now);
                if server.faults >= FAULTS_MAX && !is_out {
                    let wait = OUT_FOR * (1 << server.outs.min(5));
                    server.out_until = Some(now + wait.min(OUT_FOR_MAX));
                    server.outs += 1;
                }
            }
        }
        server.under_way = server.under_way.saturating_sub(1);
    }

    /// Returns true if there is more than one server.
    pub(super) fn is_choice(&self) -> bool {
        self.0.len() > 1
    }

    /// Returns the number of times that the best server was left out since it last worked.
    pub(super) fn outs(&self) -> u32 {
        self.0.iter().map(|server| server.outs).min().unwrap_or_default()
    }

    /// Returns the time after which a server is tried again, if all are gone at present. A server that is being
    /// tried does not count as gone, because the reply of one that is back may take long. Nor does a server that is
    /// broken, because it may be so for one model alone.
    pub(super) fn outage(&self, now: Instant) -> Option<Duration> {
        if self.outs() < OUTAGE_OUTS {
            return None;
        }
        let mut trials = Vec::with_capacity(self.0.len());
        for server in &self.0 {
            let trial = server.out_until?;
            if !server.is_gone || trial <= now {
                return None;
            }
            trials.push(trial);
        }
        Some(trials.into_iter().min()?.saturating_duration_since(now))
    }

    /// Returns the time when the next server that was left out is tried again.
    pub(super) fn next_trial(&self, now: Instant) -> Option<Instant> {
        self.0.iter().filter_map(|server| server.out_until.filter(|until| *until > now)).min()
    }
}

impl Server {
    /// Returns the share of the server's room that is taken. At 1 and above there is no room.
    fn fullness(&self, now: Instant) -> f64 {
        let room = match self.out_until {
            Some(until) if until > now => return f64::INFINITY,
            // The server gets one request at a time until one has gone well.
            Some(_) => 1,
            None => self.limit.now(),
        };
        self.under_way as f64 / room as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINE: End = End::Well(LoadSign::Answered(None));

    fn pool(servers: usize, most: usize) -> Pool {
        Pool::new((0..servers).map(|_| Limit::new(most, most)))
    }

    /// Other conversations go where there is room.
    #[test]
    fn conversation_stays_home_while_there_is_room() {
        let (mut pool, now) = (pool(3, 2), Instant::now());
        let first: Vec<Option<usize>> = (0..3).map(|_| pool.take(now, None)).collect();
        assert_eq!(first, [Some(0), Some(1), Some(2)], "each gets one");
        assert_eq!(pool.take(now, Some(1)), Some(1), "it stays at home");
        // Its home is full, and the others are half empty.
        assert_eq!(pool.take(now, Some(1)), Some(0));
        assert_eq!(pool.take(now, None), Some(2));
        assert_eq!(pool.take(now, None), None, "all are full");
        pool.give(2, now, now, FINE);
        assert_eq!(pool.take(now, None), Some(2));
    }

    /// A server that was left out is tried again with one request.
    #[test]
    fn server_is_left_out_after_three_faults() {
        let (mut pool, mut now) = (pool(2, 8), Instant::now());
        for _ in 0..3 {
            let at = pool.take(now, Some(0)).unwrap();
            assert_eq!(at, 0);
            pool.give(at, now, now, End::Ill);
        }
        assert_eq!(pool.take(now, Some(0)), Some(1), "its conversations go on elsewhere");
        pool.give(1, now, now, FINE);
        let mut wait = OUT_FOR;
        for _ in 0..7 {
            assert_eq!(pool.next_trial(now), Some(now + wait));
            now += wait;
            assert_eq!(pool.take(now, Some(0)), Some(0), "one request shows how it is");
            assert_eq!(pool.take(now, Some(0)), Some(1), "and one alone");
            pool.give(1, now, now, FINE);
            pool.give(0, now, now, End::Ill);
            wait = (wait * 2).min(OUT_FOR_MAX);
        }
        now += wait;
        assert_eq!(pool.take(now, Some(0)), Some(0));
        pool.give(0, now, now, FINE);
        assert_eq!((0..8).map(|_| pool.take(now, Some(0))).filter(|at| *at == Some(0)).count(), 8);
    }

    /// An outage begins with a failed trial.
    #[test]
    fn outage_lasts_until_next_trial() {
        let (mut pool, mut now) = (pool(1, 8), Instant::now());
        let fail = |pool: &mut Pool, now, end| {
            let at = pool.take(now, None).unwrap();
            pool.give(at, now, now, end);
        };
        for _ in 0..3 {
            assert_eq!(pool.outage(now), None);
            fail(&mut pool, now, End::Gone);
        }
        assert_eq!(pool.outage(now), None, "a fault may be short");
        now += OUT_FOR;
        fail(&mut pool, now, End::Ill);
        assert_eq!(pool.outage(now), None, "it is there again");
        now += OUT_FOR * 2;
        fail(&mut pool, now, End::Gone);
        assert_eq!(pool.outage(now), Some(OUT_FOR * 4));
        now += OUT_FOR * 4;
        assert_eq!(pool.outage(now), None, "it is time for a trial");
        assert_eq!(pool.take(now, None), Some(0));
        assert_eq!(pool.outage(now), None, "the server may be back");
        pool.give(0, now, now, FINE);
        assert_eq!(pool.outage(now), None);
    }

    #[test]
    fn one_server_that_works_is_no_outage() {
        let (mut pool, mut now) = (pool(2, 8), Instant::now());
        for _ in 0..8 {
            assert_eq!(pool.take(now, Some(0)), Some(0));
            pool.give(0, now, now, End::Gone);
            now = pool.next_trial(now).unwrap_or(now);
        }
        assert_eq!(pool.outage(now - OUT_FOR), None);
    }

    #[test]
    fn neutral_outcome_leaves_server_unchanged() {
        let (mut pool, now) = (pool(1, 4), Instant::now());
        for end in [End::Ill, End::Ill, End::Well(LoadSign::Nothing), End::Ill] {
            let at = pool.take(now, None).unwrap();
            pool.give(at, now, now, end);
        }
        assert_eq!(pool.take(now, None), None);
    }
}
