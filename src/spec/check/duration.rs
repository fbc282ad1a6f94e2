//! Rules for loads by duration and for loads at a rate.

use std::time::Duration;

use super::finding::Finding;
use crate::model::{Copy, CopySource, Load, LoadMethod, SameTransaction, Window};

/// Distances of samples that make sense: closer, they cost more than they show; further apart, a stall hides in one.
const SAMPLE_EVERY: std::ops::RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_mins(1);
/// Most samples of a step, over all clients: they are held in memory until the step ends.
const MOST_SAMPLES: u64 = 500_000;
/// What a step by duration takes beside its time, at least: connecting, the last transactions, verification.
const MARGIN: Duration = Duration::from_secs(10);

/// All findings about duration and rate of a load step.
pub(super) fn check(base: &str, load: &Load, timeout: Duration) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(window) = &load.duration {
        findings.extend(method(&format!("{base}.duration"), &load.method));
        findings.extend(samples(&format!("{base}.duration.sample_every"), window, load.clients));
        findings.extend(in_time(base, window, timeout));
    }
    if let Some(rate) = load.rate {
        findings.extend(paced(&format!("{base}.rate"), load, rate));
    }
    findings
}

/// A load by duration stops between batches, and counts by COMMIT.
fn method(pointer: &str, method: &LoadMethod) -> Option<Finding> {
    const COUNTS: &str = "a row counts in the phase in which its COMMIT was acknowledged: without \
        `rows_per_commit` all rows would come at the end";
    if let Some(finding) = no_batches(pointer, method, "a load by duration") {
        return Some(finding);
    }
    if let LoadMethod::Copy(copy) = method
        && (copy.freeze || copy.same_transaction != SameTransaction::None)
    {
        return Some(one_transaction(pointer, copy));
    }
    if method.rows_per_commit().is_none() {
        let finding = Finding::new(pointer, "a load by duration needs `rows_per_commit` in its method");
        return Some(finding.expected("such as `rows_per_commit: 1_000`").hint(COUNTS));
    }
    None
}

fn one_transaction(pointer: &str, copy: &Copy) -> Finding {
    let what = if copy.freeze { "FREEZE" } else { "`same_transaction`" };
    let message = format!("a load by duration has many transactions, and {what} needs a single one");
    Finding::new(pointer, message).hint("take `duration` out, or create the table in a step before")
}

/// Methods whose rows are not sent by clients, batch by batch.
fn no_batches(pointer: &str, method: &LoadMethod, what: &str) -> Option<Finding> {
    let (name, instead, hint) = match method {
        LoadMethod::Copy(copy) if copy.source == CopySource::Server => (
            "`copy: {source: server}`",
            "source: client",
            "the server's file is written before the clock starts, with all rows, and the server reads it as fast as it can",
        ),
        LoadMethod::Generate(_) => ("`generate`", "insert, copy or unnest", IN_THE_SERVER),
        LoadMethod::Procedure(_) => ("`procedure`", "insert, copy or unnest", IN_THE_SERVER),
        LoadMethod::Insert(_) | LoadMethod::Copy(_) | LoadMethod::Unnest(_) => return None,
    };
    let finding = Finding::new(pointer, format!("{what} is impossible with {name}"));
    Some(finding.expected(instead).hint(hint))
}

const IN_THE_SERVER: &str =
    "the server makes all rows by itself: no client sends batches that could begin or end by the clock";

fn samples(pointer: &str, window: &Window, clients: u32) -> Option<Finding> {
    let every = window.sample_every;
    if !SAMPLE_EVERY.contains(&every) {
        let message = format!("samples every {every:?} are not possible");
        return Some(Finding::new(pointer, message).expected("10ms to 1m"));
    }
    let points = window.points().saturating_mul(u64::from(clients));
    if points <= MOST_SAMPLES {
        return None;
    }
    let least = window.end().as_millis() * u128::from(clients) / u128::from(MOST_SAMPLES) + 1;
    let message = format!("{clients} clients over {:?} would give {points} samples", window.end());
    let finding = Finding::new(pointer, message).expected(format!("at most {MOST_SAMPLES}"));
    Some(finding.hint(format!("write `sample_every: {}ms` or more", least.max(10))))
}

fn in_time(base: &str, window: &Window, timeout: Duration) -> Option<Finding> {
    let needed = window.end().saturating_add(MARGIN);
    if needed <= timeout {
        return None;
    }
    let message = format!(
        "warm-up and window take {:?}, which leaves less than {MARGIN:?} of the step's timeout of {timeout:?}",
        window.end()
    );
    let finding = Finding::new(format!("{base}.duration.measure"), message);
    Some(finding.hint(format!(
        "write `timeout: {}s` or more: connecting, the last transactions and verification take time as well",
        needed.as_secs() + u64::from(needed.subsec_nanos() > 0)
    )))
}

/// A rate is kept by beginning batches in time.
fn paced(pointer: &str, load: &Load, rate: u64) -> Option<Finding> {
    if let Some(finding) = no_batches(pointer, &load.method, "a rate") {
        return Some(finding);
    }
    let Some(rows) = load.method.rows_per_batch() else {
        let finding = Finding::new(pointer, "a rate needs `rows_per_commit` in its method");
        let hint = "each COPY begins at its time, and without `rows_per_commit` a client has only one";
        return Some(finding.expected("such as `rows_per_commit: 1_000`").hint(hint));
    };
    let window = load.duration?;
    // Products instead of quotients: rows of a batch / rate > window.
    let due = u128::from(rows) * 1_000_000_000;
    if due <= window.measure.as_nanos() * u128::from(rate) {
        return None;
    }
    let message = format!(
        "at {rate} rows per second a batch of {rows} rows is due every {:.1} s, and the window is {:?} long",
        Duration::from_nanos(u64::try_from(due / u128::from(rate.max(1))).unwrap_or(u64::MAX)).as_secs_f64(),
        window.measure
    );
    Some(Finding::new(pointer, message).hint("take smaller batches, a higher rate or a longer window"))
}
