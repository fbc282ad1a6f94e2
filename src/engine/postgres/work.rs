//! What parallel clients report while and after they work.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::timeline::Timeline;
use crate::model::{Latency, Scanned, Window};

/// Rows moved so far by each client; read by the sampler while the clients work.
#[derive(Debug, Clone)]
pub struct Progress {
    rows: Arc<[AtomicU64]>,
    window: Option<Window>,
    start: Arc<OnceLock<Instant>>,
    timeline: Arc<Mutex<Timeline>>,
}

impl Progress {
    /// Progress of a number of clients, all at zero.
    #[must_use]
    pub fn new(clients: u32) -> Self {
        Self::timed(clients, None)
    }

    /// Progress of clients of a step that may have a measured window.
    #[must_use]
    pub fn timed(clients: u32, window: Option<Window>) -> Self {
        Self {
            rows: (0..clients).map(|_| AtomicU64::new(0)).collect(),
            window,
            start: Arc::default(),
            timeline: Arc::new(Mutex::new(Timeline::new(clients, window))),
        }
    }

    /// The clock of the step starts. Only the first call counts.
    pub fn begin(&self, start: Instant) {
        // A second start would be a mistake of the runner; the first holds.
        let _first = self.start.set(start);
    }

    /// Sets the rows a client has moved.
    pub fn set(&self, client: u32, rows: u64) {
        self.rows[client as usize].store(rows, Ordering::Relaxed);
    }

    /// Rows by client.
    #[must_use]
    pub fn rows(&self) -> Vec<u64> {
        self.rows.iter().map(|rows| rows.load(Ordering::Relaxed)).collect()
    }

    /// The server answered a batch of rows just now.
    pub fn acknowledged(&self, rows: u64) {
        let mut timeline = self.lock();
        // The time is taken under the lock: entries are in the order of their times.
        timeline.acknowledged(self.elapsed(), rows);
    }

    /// The server acknowledged a client's COMMIT of rows just now.
    pub fn committed(&self, client: u32, rows: u64) {
        let mut timeline = self.lock();
        timeline.committed(self.elapsed(), client, rows);
    }

    /// Time since the start, and rows committed until now.
    #[must_use]
    pub fn so_far(&self) -> (Duration, u64) {
        let timeline = self.lock();
        (self.elapsed(), timeline.rows())
    }

    /// Everything until now.
    #[must_use]
    pub fn timeline(&self) -> Timeline {
        let mut timeline = self.lock();
        timeline.advance(self.elapsed());
        timeline.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Timeline> {
        self.timeline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time since the start; zero before it.
    pub(super) fn elapsed(&self) -> Duration {
        self.start.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// The moment at a time of the step's clock.
    pub(super) fn at(&self, elapsed: Duration) -> Instant {
        self.start.get().copied().unwrap_or_else(Instant::now) + elapsed
    }

    /// The measured window, if the step has one.
    pub(super) fn window(&self) -> Option<&Window> {
        self.window.as_ref()
    }

    /// Whether work that begins now is measured: all of a step without a window.
    pub(super) fn is_measured(&self, begun: Instant) -> bool {
        self.window.is_none_or(|window| begun >= self.at(window.warm_up) && begun < self.at(window.end()))
    }
}

/// Latencies from a microsecond to an hour, three significant digits.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, 3_600_000_000, 3).expect("the bounds are constant and legal"))
    }
}

impl Latencies {
    /// Adds one value.
    pub fn add(&mut self, span: Duration) {
        self.0.saturating_record(u64::try_from(span.as_micros()).unwrap_or(u64::MAX));
    }

    /// Adds all values of another.
    ///
    /// # Panics
    /// Never: all histograms have the same bounds.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// Percentiles in seconds; `None` without a value.
    #[must_use]
    pub fn percentiles(&self) -> Option<Latency> {
        let seconds = |micros: u64| Duration::from_micros(micros).as_secs_f64();
        (!self.0.is_empty()).then(|| Latency {
            count: self.0.len(),
            p50: seconds(self.0.value_at_quantile(0.5)),
            p90: seconds(self.0.value_at_quantile(0.9)),
            p99: seconds(self.0.value_at_quantile(0.99)),
            max: seconds(self.0.max()),
        })
    }
}

/// What one client did.
#[derive(Debug, Clone, Default)]
pub struct WorkDone {
    /// Rows sent or received.
    pub rows: u64,
    /// Bytes of row data.
    pub payload_bytes: u64,
    /// Round trips of batches or fetches.
    pub batches: Latencies,
    /// Batches from their intended start, with a rate only.
    pub scheduled: Option<Latencies>,
    /// Round trips of COMMIT.
    pub commits: Latencies,
    /// Time spent in COMMIT.
    pub commit: Duration,
    /// From the start to the first row (reads).
    pub first_row: Option<Duration>,
    /// Content of the decoded values (reads).
    pub content: Option<crate::data::Content>,
    /// What the server did to scan (`scan` only).
    pub scanned: Option<Scanned>,
}

impl WorkDone {
    /// Counts one COMMIT that began at `start`.
    pub fn committed(&mut self, start: Instant) {
        let span = start.elapsed();
        self.commits.add(span);
        self.commit += span;
    }

    /// What several clients did together: sums, the slowest COMMIT total, the earliest first row.
    #[must_use]
    pub fn together(all: Vec<Self>) -> Self {
        let mut total = Self::default();
        for one in all {
            total.rows += one.rows;
            total.payload_bytes += one.payload_bytes;
            total.batches.merge(&one.batches);
            if let Some(scheduled) = &one.scheduled {
                total.scheduled.get_or_insert_default().merge(scheduled);
            }
            total.commits.merge(&one.commits);
            total.commit = total.commit.max(one.commit);
            total.first_row = match (total.first_row, one.first_row) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            total.content = match (total.content, one.content) {
                (Some(a), Some(b)) => Some(a.merge(b)),
                (a, b) => a.or(b),
            };
            total.scanned = match (total.scanned, one.scanned) {
                (Some(a), Some(b)) => Some(a.plus(b)),
                (a, b) => a.or(b),
            };
        }
        total
    }
}
