//! Which rows a client sends next, and when: its own share or batches from a counter that the clients of a table
//! copy have in common, as fast as they are answered or on a schedule.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::WorkError;
use crate::engine::postgres::work::Progress;
use crate::model::Window;

/// Shorter waits are left to a thread that sleeps: the timer of tokio ticks in milliseconds.
const TICK: Duration = Duration::from_millis(2);

/// Rows of one table copy that its clients take in batches, without holes.
#[derive(Debug, Clone)]
pub struct Supply {
    first: u64,
    next: Arc<AtomicU64>,
    end: u64,
}

impl Supply {
    pub(super) fn new(rows: Range<u64>) -> Self {
        Self { first: rows.start, next: Arc::new(AtomicU64::new(rows.start)), end: rows.end }
    }

    /// The next rows, at most `most`; `None` when all are taken.
    fn take(&self, most: u64) -> Option<Range<u64>> {
        let after = |next: u64| (next < self.end).then(|| next.saturating_add(most).min(self.end));
        let start = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).ok()?;
        Some(start..start.saturating_add(most).min(self.end))
    }

    /// What has been taken so far.
    #[must_use]
    pub fn taken(&self) -> Range<u64> {
        self.first..self.next.load(Ordering::Relaxed)
    }
}

/// When batches are to begin: one schedule for all clients of a load. A batch that finds no client free begins late,
/// and its latency counts from when it was due.
#[derive(Debug)]
pub(super) struct Schedule {
    rate: u64,
    window: Option<Window>,
    issued: Mutex<Issued>,
}

/// Rows that were given a place in the schedule since `origin`.
#[derive(Debug, Default)]
struct Issued {
    origin: Duration,
    rows: u64,
}

impl Schedule {
    pub(super) fn new(rate: u64, window: Option<Window>) -> Self {
        Self { rate: rate.max(1), window, issued: Mutex::default() }
    }

    /// When the next batch of `rows` is due, as time of the step's clock; `None` when that is after the window.
    /// The first batch that is due or asked for after the warm-up begins the schedule anew at the edge of the window: what the
    /// warm-up was behind with is not made up for.
    fn slot(&self, rows: u64, now: Duration) -> Option<Duration> {
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due = issued.origin.saturating_add(self.span(issued.rows));
        if let Some(window) = &self.window {
            let opens = window.warm_up;
            if issued.origin < opens && now.max(due) >= opens {
                *issued = Issued { origin: opens, rows: 0 };
                due = opens;
            }
            if due >= window.end() {
                return None;
            }
        }
        issued.rows = issued.rows.saturating_add(rows);
        Some(due)
    }

    /// The time that rows take at the rate.
    fn span(&self, rows: u64) -> Duration {
        let nanos = u128::from(rows) * 1_000_000_000 / u128::from(self.rate);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Where the row numbers of a client come from.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// Its own share.
    Share(Range<u64>),
    /// A counter, until the window closes.
    Shared(Supply),
}

/// One batch.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    pub(super) rows: Range<u64>,
    /// When it should have begun, with a rate.
    pub(super) due: Option<Instant>,
}

/// Hands a client its batches.
#[derive(Clone)]
pub(super) struct Feed {
    pub(super) source: Source,
    pub(super) schedule: Option<Arc<Schedule>>,
    pub(super) progress: Progress,
    /// Name of the table copy, for the message that its rows are used up.
    pub(super) target: String,
}

impl Feed {
    /// The next batch, of at most `most` rows, once it is due. `None`: the client has no more to do.
    pub(super) async fn next(&mut self, most: u64) -> Result<Option<Batch>, WorkError> {
        let rows = match &self.source {
            Source::Share(left) => most.min(left.end.saturating_sub(left.start)),
            Source::Shared(_) => most,
        };
        if rows == 0 || self.is_over() {
            return Ok(None);
        }
        let due = match &self.schedule {
            None => None,
            Some(schedule) => {
                let Some(due) = schedule.slot(rows, self.progress.elapsed()) else { return Ok(None) };
                let due = self.progress.at(due);
                wait_until(due).await;
                if self.is_over() {
                    return Ok(None);
                }
                Some(due)
            }
        };
        Ok(Some(Batch { rows: self.take(rows)?, due }))
    }

    fn take(&mut self, rows: u64) -> Result<Range<u64>, WorkError> {
        match &mut self.source {
            Source::Share(left) => {
                let start = left.start;
                left.start += rows;
                Ok(start..left.start)
            }
            Source::Shared(supply) => supply.take(rows).ok_or_else(|| {
                let end = self.progress.window().map_or(Duration::ZERO, Window::end);
                WorkError::UsedUp {
                    table: self.target.clone(),
                    rows: supply.end - supply.first,
                    left: end.saturating_sub(self.progress.elapsed()).as_secs_f64(),
                }
            }),
        }
    }

    /// Whether the window has closed: no batch is begun after it.
    fn is_over(&self) -> bool {
        self.progress.window().is_some_and(|window| self.progress.elapsed() >= window.end())
    }
}

/// Waits for a moment to about a tenth of a millisecond.
async fn wait_until(due: Instant) {
    let left = |margin: Duration| due.checked_duration_since(Instant::now() + margin);
    if let Some(long) = left(TICK) {
        tokio::time::sleep(long).await;
    }
    if let Some(short) = left(Duration::ZERO) {
        // An error means that the runtime ends, and this task with it.
        drop(tokio::task::spawn_blocking(move || std::thread::sleep(short)).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn window(warm_up: u64, measure: u64) -> Window {
        Window { warm_up: ms(warm_up), measure: ms(measure), sample_every: ms(100) }
    }

    #[test]
    fn a_supply_is_taken_without_holes_and_ends() {
        let supply = Supply::new(100..110);
        let other = supply.clone();
        assert_eq!(supply.taken(), 100..100);
        assert_eq!(
            [supply.take(4), other.take(4), supply.take(4), other.take(4)],
            [Some(100..104), Some(104..108), Some(108..110), None]
        );
        assert_eq!(other.taken(), 100..110);
    }

    #[test]
    fn batches_are_due_at_the_rate_however_late_they_are_asked_for() {
        let schedule = Schedule::new(1000, None);
        let due: Vec<_> = [0, 0, 900, 901].map(|now| schedule.slot(50, ms(now))).to_vec();
        assert_eq!(due, [Some(ms(0)), Some(ms(50)), Some(ms(100)), Some(ms(150))]);
    }

    /// sysbench 167 and 408: what queued up in the warm-up was counted as work of the measured phase.
    #[test]
    fn a_backlog_of_the_warm_up_ends_with_it() {
        let schedule = Schedule::new(1000, Some(window(1000, 200)));
        assert_eq!(schedule.slot(100, ms(0)), Some(ms(0)));
        assert_eq!(schedule.slot(100, ms(10)), Some(ms(100)));
        // The server hung until the window had been open for 50 ms.
        assert_eq!(schedule.slot(100, ms(1050)), Some(ms(1000)));
        assert_eq!(schedule.slot(100, ms(1051)), Some(ms(1100)));
        assert_eq!(schedule.slot(100, ms(1052)), None);
    }

    #[test]
    fn a_batch_that_is_due_after_the_warm_up_opens_the_window() {
        let schedule = Schedule::new(100, Some(window(1500, 1000)));
        assert_eq!(schedule.slot(100, ms(0)), Some(ms(0)));
        assert_eq!(schedule.slot(100, ms(1)), Some(ms(1000)));
        assert_eq!(schedule.slot(100, ms(1001)), Some(ms(1500)));
        assert_eq!(schedule.slot(100, ms(1501)), None, "it would be due when the window closes");
    }

    #[tokio::test]
    async fn used_up_rows_are_an_error_that_says_what_to_do() {
        let progress = Progress::timed(1, Some(window(0, 60_000)));
        progress.begin(Instant::now());
        let source = Source::Shared(Supply::new(0..5));
        let mut feed = Feed { source, schedule: None, progress, target: "t".to_owned() };
        assert_eq!(feed.next(3).await.unwrap().unwrap().rows, 0..3);
        assert_eq!(feed.next(3).await.unwrap().unwrap().rows, 3..5);
        let error = feed.next(3).await.unwrap_err().to_string();
        assert!(error.starts_with("all 5 rows of table t were loaded 60.0 s before"), "{error}");
        assert!(error.contains("raise `rows`"), "{error}");
    }

    #[tokio::test]
    async fn a_share_ends_with_its_last_row_and_a_window_with_its_time() {
        let progress = Progress::new(1);
        let source = Source::Share(7..10);
        let mut feed = Feed { source, schedule: None, progress, target: "t".to_owned() };
        assert_eq!(feed.next(2).await.unwrap().unwrap().rows, 7..9);
        assert_eq!(feed.next(2).await.unwrap().unwrap().rows, 9..10);
        assert!(feed.next(2).await.unwrap().is_none());
        let closed = Progress::timed(1, Some(window(0, 1)));
        closed.begin(Instant::now().checked_sub(ms(2)).unwrap());
        let mut feed = Feed { source: Source::Shared(Supply::new(0..5)), progress: closed, ..feed };
        assert!(feed.next(2).await.unwrap().is_none());
    }
}
