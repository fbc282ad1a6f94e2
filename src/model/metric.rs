//! The numbers a step gives, by name: what claims and comparisons may ask for.

use super::Measurement;

/// A number that every measurement may have, under the name of its column in the results.
#[derive(Debug, Clone, Copy)]
pub struct MetricKind {
    /// Name: `rows_per_second`, `wal_bytes`.
    pub name: &'static str,
    /// What kind of number it is.
    pub nature: Nature,
    /// The value; `None` where the step did not give one.
    pub value: fn(&Measurement) -> Option<f64>,
}

/// Kinds of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// Something per second: more is better.
    Rate,
    /// Seconds; may be added over steps.
    Time,
    /// Seconds at the far end of many, such as a percentile: less is better, and not to be added.
    Longest,
    /// Bytes and counts that do not depend on how fast the machine is; may be added over steps.
    Counter,
    /// The size of something after the step; like a counter, but not to be added.
    Size,
}

impl MetricKind {
    /// Whether values of several steps may be added: `copy+index.seconds`.
    #[must_use]
    pub fn additive(&self) -> bool {
        matches!(self.nature, Nature::Time | Nature::Counter)
    }

    /// Whether it is a result that a noisy machine does not blur.
    #[must_use]
    pub fn counter(&self) -> bool {
        matches!(self.nature, Nature::Counter | Nature::Size)
    }
}

/// Every number by name.
pub const METRICS: &[MetricKind] = &[
    metric("rows_per_second", Nature::Rate, Measurement::rows_per_second),
    metric("payload_bytes_per_second", Nature::Rate, Measurement::payload_bytes_per_second),
    metric("seconds", Nature::Time, |m| Some(m.spans.seconds)),
    metric("transfer_seconds", Nature::Time, |m| m.spans.transfer),
    metric("commit_seconds", Nature::Time, |m| m.spans.commit),
    metric("first_row_seconds", Nature::Time, |m| m.spans.first_row),
    metric("flush_seconds", Nature::Time, |m| m.spans.flush),
    metric("settle_seconds", Nature::Time, |m| m.spans.settle),
    metric("durable_seconds", Nature::Time, Measurement::durable_seconds),
    metric("client_cpu_seconds", Nature::Time, |m| m.client_cpu_seconds),
    metric("server_cpu_seconds", Nature::Time, |m| m.counters.server_cpu_seconds),
    metric("longest_gap_seconds", Nature::Longest, |m| m.longest_gap),
    metric("batch_p99_seconds", Nature::Longest, |m| m.batch_latency.map(|latency| latency.p99)),
    metric("scheduled_p99_seconds", Nature::Longest, |m| m.scheduled_latency.map(|latency| latency.p99)),
    metric("rows", Nature::Counter, |m| number(m.rows)),
    metric("payload_bytes", Nature::Counter, |m| number(m.payload_bytes)),
    metric("wal_bytes", Nature::Counter, |m| number(m.counters.wal_bytes)),
    metric("wal_records", Nature::Counter, |m| number(m.counters.wal_records)),
    metric("wal_full_page_images", Nature::Counter, |m| number(m.counters.wal_full_page_images)),
    metric("server_read_bytes", Nature::Counter, |m| number(m.counters.server_read_bytes)),
    metric("server_written_bytes", Nature::Counter, |m| number(m.counters.server_written_bytes)),
    metric("pages_hit", Nature::Counter, |m| number(m.scan.map(|scan| scan.pages_hit))),
    metric("pages_read", Nature::Counter, |m| number(m.scan.map(|scan| scan.pages_read))),
    metric("pages_dirtied", Nature::Counter, |m| number(m.scan.map(|scan| scan.pages_dirtied))),
    metric("pages_written", Nature::Counter, |m| number(m.scan.map(|scan| scan.pages_written))),
    metric("client_peak_memory_bytes", Nature::Size, |m| number(m.client_peak_memory_bytes)),
    metric("table_bytes", Nature::Size, |m| number(m.counters.table_bytes)),
    metric("index_bytes", Nature::Size, |m| number(m.counters.index_bytes)),
    metric("toast_bytes", Nature::Size, |m| number(m.counters.toast_bytes)),
];

impl Measurement {
    /// A number of the step by its name: one of [`METRICS`], or one that a program printed.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        let captured = self.captures.iter().find(|captured| captured.name == name);
        captured.map(|captured| captured.value).or_else(|| (metric_kind(name)?.value)(self))
    }
}

/// The metric of a name.
#[must_use]
pub fn metric_kind(name: &str) -> Option<&'static MetricKind> {
    METRICS.iter().find(|metric| metric.name == name)
}

const fn metric(name: &'static str, nature: Nature, value: fn(&Measurement) -> Option<f64>) -> MetricKind {
    MetricKind { name, nature, value }
}

#[expect(clippy::cast_precision_loss, reason = "counts and bytes stay far below 2^53")]
fn number(count: Option<u64>) -> Option<f64> {
    count.map(|count| count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Captured, Spans, Unit};

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
    }

    #[test]
    fn what_was_not_measured_has_no_value() {
        let nothing = Measurement::default();
        for metric in METRICS.iter().filter(|metric| metric.name != "seconds") {
            assert_eq!((metric.value)(&nothing), None, "{}", metric.name);
        }
    }

    #[test]
    fn what_a_program_printed_has_its_name() {
        let captured = Captured { name: "tps".to_owned(), unit: Unit::PerSecond, value: 7.0 };
        let measurement = Measurement { captures: vec![captured], rows: Some(3), ..Measurement::default() };
        assert_eq!(
            ["tps", "rows", "latency"].map(|name| measurement.number(name)),
            [Some(7.0), Some(3.0), None]
        );
    }

    #[test]
    fn durable_is_the_headline_and_the_flush() {
        let spans = Spans { seconds: 2.0, flush: Some(0.5), ..Spans::default() };
        let measurement = Measurement { spans, ..Measurement::default() };
        let metric = metric_kind("durable_seconds").expect("there");
        assert_eq!((metric.value)(&measurement), Some(2.5));
    }
}
