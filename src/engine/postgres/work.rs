//! What parallel clients report while and after they work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::model::{Latency, Scanned};

/// Rows moved so far by each client; read by the sampler while the clients work.
#[derive(Debug, Clone)]
pub struct Progress(Arc<[AtomicU64]>);

impl Progress {
    /// Progress of a number of clients, all at zero.
    #[must_use]
    pub fn new(clients: u32) -> Self {
        Self((0..clients).map(|_| AtomicU64::new(0)).collect())
    }

    /// Sets the rows a client has moved.
    pub fn set(&self, client: u32, rows: u64) {
        self.0[client as usize].store(rows, Ordering::Relaxed);
    }

    /// Rows by client.
    #[must_use]
    pub fn rows(&self) -> Vec<u64> {
        self.0.iter().map(|rows| rows.load(Ordering::Relaxed)).collect()
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
