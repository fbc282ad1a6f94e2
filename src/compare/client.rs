//! Whether a comparison is about the server at all: what loadlab itself did on either side, and whether it was the narrow place.

use std::collections::BTreeSet;

use super::observations::find;
use crate::model::{Guard, TrialRecord};

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
    /// Parameters of the steps: how rows were made, encoded, sent and read.
    ways: BTreeSet<String>,
}

impl ClientWork {
    /// Adds the steps of a trial that make up its number.
    pub(super) fn add(&mut self, record: &TrialRecord, steps: &[String]) {
        let found = || steps.iter().flat_map(|step| find(record, step));
        self.trials += 1;
        self.bound += usize::from(found().any(|found| found.guards.contains(&Guard::ClientBound)));
        self.ways.insert(found().map(|found| found.parameters.as_str()).collect::<Vec<_>>().join("\n"));
    }

    /// Whether the client set the pace in half of the trials or more: fewer do not move a mean over blocks to where it is.
    fn is_bound(&self) -> bool {
        self.bound > 0 && 2 * self.bound >= self.trials
    }
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

    #[test]
    fn a_checkpoint_is_not_the_clients() {
        assert!(depends_on_client("seconds") && depends_on_client("rows_per_second"));
        assert!(!depends_on_client("flush_seconds"));
    }
}
