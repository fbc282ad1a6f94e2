//! From when to when a number is taken: without it, two numbers of one name cannot be compared.

use crate::model::{Metric, Nature, TrialRecord, metric_kind};

/// The end point of a metric, in words.
pub(super) fn end_point(metric: &Metric, used: &[&TrialRecord]) -> String {
    let steps =
        || used.iter().flat_map(|record| &record.measurements).filter(|m| metric.steps.contains(&m.step));
    let has = |kind: &str| steps().any(|step| step.kind == kind);
    let mut text = match metric.name.as_str() {
        "transfer_seconds" => "until the last row is accepted, COMMIT left out",
        "commit_seconds" => "in COMMIT, on the slowest client",
        "first_row_seconds" => "until the first row",
        "flush_seconds" => "the CHECKPOINT after the commit",
        "settle_seconds" => "the VACUUM (ANALYZE) after the commit",
        "durable_seconds" => "until a CHECKPOINT after the commit is done",
        "client_cpu_seconds" | "server_cpu_seconds" => "CPU time during the step",
        name => match metric_kind(name).map(|kind| kind.nature) {
            Some(Nature::Counter) => "counted over the step",
            Some(Nature::Size) => "the size after the step",
            Some(Nature::Longest) => "the longest, or a high percentile, of many",
            _ if has("load") || has("restore") => "until the last COMMIT is acknowledged",
            _ if has("read") => "until the last row",
            _ => "until the last statement is answered",
        },
    }
    .to_owned();
    if metric.steps.len() > 1 {
        text += ", added over the steps";
    }
    text
}
