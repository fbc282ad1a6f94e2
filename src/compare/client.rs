//! Whether a comparison is about the server at all: what loadlab itself did on either side, and whether it was the narrow place.

use std::collections::BTreeSet;

use serde_json::Value;

use super::observations::find;
use crate::model::{Guard, Measurement, TrialRecord};

/// Numbers of a step that do not depend on how fast the client is.
const NOT_THE_CLIENTS: [&str; 5] =
    ["flush_seconds", "settle_seconds", "commit_seconds", "server_cpu_seconds", "client_cpu_seconds"];

/// Whether a time or rate is the client's when the client is the narrow place.
pub(super) fn depends_on_client(metric: &str) -> bool {
    !NOT_THE_CLIENTS.contains(&metric)
}

/// What the client did in the valid trials of a treatment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ClientWork {
    trials: usize,
    /// Those in which the client was the narrow place.
    bound: usize,
    /// How rows were made, encoded, sent and read.
    ways: BTreeSet<String>,
}

impl ClientWork {
    /// Adds the steps of a trial that make up its number.
    pub(super) fn add(&mut self, record: &TrialRecord, steps: &[String]) {
        let found = || steps.iter().flat_map(|step| find(record, step));
        self.trials += 1;
        self.bound += usize::from(found().any(|found| found.guards.contains(&Guard::ClientBound)));
        self.ways.insert(found().map(way).collect::<Vec<_>>().join("\n"));
    }

    /// Whether the client set the pace in half of the trials or more: fewer do not move a mean over blocks to where it is.
    fn is_bound(&self) -> bool {
        self.bound > 0 && 2 * self.bound >= self.trials
    }
}

/// Parameters of steps that change nothing of what the client does: they are the server's, or say what is done beside the clock. The
/// table is told by its rows, since its number depends on what else the experiment has.
const THE_SERVERS: [&str; 7] = ["table", "freeze", "same_transaction", "until", "verify", "cache", "state"];

/// What the client did in a step: its parameters, and how large a row was.
#[expect(clippy::cast_precision_loss, reason = "bytes of a row need not be exact")]
fn way(found: &Measurement) -> String {
    let parameters = match serde_json::from_str(&found.parameters) {
        Ok(parameters) => clients(parameters).to_string(),
        Err(_) => found.parameters.clone(),
    };
    let row = found.payload_bytes.zip(found.rows).filter(|(_, rows)| *rows > 0);
    let row = row.map_or(0.0, |(bytes, rows)| (bytes as f64 / rows as f64 + 0.5).floor());
    format!("{parameters} {row}")
}

/// The same without what is the server's.
fn clients(value: Value) -> Value {
    let Value::Object(entries) = value else { return value };
    let kept = entries.into_iter().filter(|(key, _)| !THE_SERVERS.contains(&key.as_str()));
    Value::Object(kept.map(|(key, value)| (key, clients(value))).collect())
}

/// Whether a ratio is the client's and no difference between servers or their settings: in a pair of treatments that did the same client
/// work, the client set the pace on one side at least. Where it did something else, such as another format or batch, ways of the
/// client are what is compared. One such pair is enough: an average with it says as little.
pub(super) fn hides_the_server<'a>(
    ours: impl IntoIterator<Item = &'a ClientWork>,
    theirs: impl IntoIterator<Item = &'a ClientWork, IntoIter: Clone>,
) -> bool {
    let theirs = theirs.into_iter();
    let hidden =
        |a: &ClientWork, b: &ClientWork| (a.is_bound() || b.is_bound()) && !a.ways.is_disjoint(&b.ways);
    ours.into_iter().any(|a| theirs.clone().any(|b| hidden(a, b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(bound: usize, way: &str) -> ClientWork {
        ClientWork { trials: 6, bound, ways: BTreeSet::from([way.to_owned()]) }
    }

    #[test]
    fn the_same_client_at_its_limit_says_nothing_about_the_server() {
        assert!(hides_the_server([&work(6, "copy")], [&work(0, "copy")]));
        assert!(hides_the_server([&work(0, "copy")], [&work(3, "copy")]));
        assert!(!hides_the_server([&work(2, "copy")], [&work(2, "copy")]), "a few do not set the pace");
        assert!(!hides_the_server([&work(0, "copy")], [&work(0, "copy")]));
        assert!(!hides_the_server([&ClientWork::default()], []));
    }

    #[test]
    fn ways_of_the_client_may_be_compared() {
        assert!(!hides_the_server([&work(6, "text")], [&work(6, "binary")]));
        let (text, binary) = (work(6, "text"), work(6, "binary"));
        let quiet = work(0, "binary");
        assert!(hides_the_server([&text, &binary], [&quiet]), "a pair of them did the same");
    }

    /// The mistake of comparing whole parameters: FREEZE is nothing to the client, a wider table is.
    #[test]
    fn what_the_client_does_is_told_from_what_the_server_does() {
        let step = |parameters: &str, bytes| Measurement {
            parameters: parameters.to_owned(),
            rows: Some(10),
            payload_bytes: Some(bytes),
            ..Measurement::default()
        };
        let plain = r#"{"load":{"table":0,"method":{"copy":{"format":"binary","freeze":false}},"until":"committed"}}"#;
        let freeze =
            r#"{"load":{"table":1,"method":{"copy":{"format":"binary","freeze":true}},"until":"durable"}}"#;
        let text =
            r#"{"load":{"table":0,"method":{"copy":{"format":"text","freeze":false}},"until":"committed"}}"#;
        assert_eq!(way(&step(plain, 200)), way(&step(freeze, 200)));
        assert_ne!(way(&step(plain, 200)), way(&step(text, 200)));
        assert_ne!(way(&step(plain, 200)), way(&step(plain, 900)), "wider rows");
        assert_eq!(way(&step("no JSON", 0)), "no JSON 0");
    }

    #[test]
    fn a_checkpoint_is_not_the_clients() {
        assert!(depends_on_client("seconds") && depends_on_client("rows_per_second"));
        assert!(!depends_on_client("flush_seconds"));
    }
}
