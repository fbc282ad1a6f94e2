//! When what happened on the machine makes a number unfit for use: thresholds, each with its reason.

use crate::model::{Guard, Pressure, ServerCounters, ServerFacts};

/// Shorter windows are not judged by shares of time: a few ticks decide there.
const SHORTEST_SECONDS: f64 = 0.5;
/// A thread that is on a CPU for more of the time than this leaves the server waiting, whatever the server could do.
const BUSY_THREAD: f64 = 0.9;
/// Sessions found waiting for their client in more looks than this: the client sets the pace of a stream.
const WAITING: f64 = 0.2;
/// Above this share the window is not the machine's own any more; single per cents are usual on shared machines and are
/// what blocks are for.
const STOLEN: f64 = 0.05;
/// A few pages come back from old times without meaning anything.
const SWAPPED_BYTES: u64 = 4 * 1024 * 1024;
/// Clocks that moved apart by more than this: suspended, or set by hand.
const CLOCK_SECONDS: f64 = 0.1;

/// A synchronous commit that costs less than this did not wait for any device: an `NVMe` disk that keeps its promise takes
/// some tens of microseconds, one with a capacitor about twenty.
const SYNC_SECONDS: f64 = 20e-6;

/// What a step is judged by beside its numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Terms {
    /// The window.
    pub(super) seconds: f64,
    /// Rows flow without a question and an answer for each batch, so a session that waits for its client means that the
    /// client is the narrow place; with round trips, waiting is part of the method.
    pub(super) streams: bool,
    /// The experiment itself gives the server a CPU quota.
    pub(super) has_quota: bool,
    /// Other runs were allowed.
    pub(super) beside_others: bool,
}

/// Guards of a step's window.
pub(super) fn of_machine(pressure: &Pressure, terms: Terms) -> Vec<Guard> {
    let Terms { seconds, streams, has_quota, beside_others } = terms;
    let above = |share: Option<f64>, most: f64| seconds >= SHORTEST_SECONDS && share > Some(most);
    let some = |count: Option<u64>, most: u64| count > Some(most);
    let client = above(pressure.busiest_client_thread_share, BUSY_THREAD)
        || streams && above(pressure.client_wait_share, WAITING);
    let throttled =
        some(pressure.client_throttled_periods, 0) || some(pressure.throttled_periods, 0) && !has_quota;
    let found = [
        (Guard::ClientBound, client),
        (Guard::Throttled, throttled),
        (Guard::OutOfMemoryKill, some(pressure.memory_kills, 0)),
        (Guard::Swapped, some(pressure.swapped_bytes, SWAPPED_BYTES)),
        (Guard::CpuStolen, above(pressure.stolen_share, STOLEN)),
        (Guard::ClockDisagrees, pressure.clock_disagreement_seconds > Some(CLOCK_SECONDS)),
        (Guard::AnotherRun, some(pressure.other_runs, 0) && !beside_others),
    ];
    found.into_iter().filter(|(_, tripped)| *tripped).map(|(guard, _)| guard).collect()
}

/// Guards of what the server did by itself in a step's window.
pub(super) fn of_server(counters: &ServerCounters) -> Vec<Guard> {
    let checkpoints = counters.checkpoints_timed.unwrap_or(0) + counters.checkpoints_requested.unwrap_or(0);
    let found = [
        (Guard::AutovacuumInWindow, counters.autovacuum_runs > Some(0)),
        (Guard::CheckpointInWindow, checkpoints > 0),
    ];
    found.into_iter().filter(|(_, tripped)| *tripped).map(|(guard, _)| guard).collect()
}

/// The guard of a trial whose commits cannot be on a disk, and say they are.
pub(super) fn of_sync(server: &ServerFacts, unsafe_is_asked_for: bool) -> Option<Guard> {
    let too_fast = server.sync_seconds.is_some_and(|seconds| seconds < SYNC_SECONDS);
    (too_fast && !unsafe_is_asked_for).then_some(Guard::SyncTooFast)
}

/// Whether a kind of step writes, so that its time depends on what a sync costs.
pub(super) fn writes(kind: &str) -> bool {
    matches!(kind, "load" | "restore" | "index" | "create" | "sql" | "command")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(seconds: f64, streams: bool) -> Terms {
        Terms { seconds, streams, ..Terms::default() }
    }

    #[test]
    fn a_quiet_machine_trips_nothing() {
        let quiet = Pressure {
            busiest_client_thread_share: Some(0.5),
            client_wait_share: Some(0.9),
            stolen_share: Some(0.01),
            swapped_bytes: Some(4096),
            throttled_periods: Some(0),
            client_throttled_periods: Some(0),
            memory_kills: Some(0),
            clock_disagreement_seconds: Some(0.001),
            other_runs: Some(0),
            ..Pressure::default()
        };
        assert_eq!(of_machine(&quiet, terms(10.0, false)), []);
        assert_eq!(of_machine(&Pressure::default(), terms(10.0, true)), []);
    }

    #[test]
    fn waiting_for_the_client_counts_for_streams_only() {
        let waiting = Pressure { client_wait_share: Some(0.5), ..Pressure::default() };
        assert_eq!(of_machine(&waiting, terms(10.0, true)), [Guard::ClientBound]);
        assert_eq!(of_machine(&waiting, terms(10.0, false)), []);
        assert_eq!(of_machine(&waiting, terms(0.1, true)), []);
    }

    #[test]
    fn each_sabotage_has_its_guard() {
        let bad = Pressure {
            busiest_client_thread_share: Some(0.95),
            client_wait_share: None,
            stolen_share: Some(0.2),
            swapped_bytes: Some(1 << 30),
            throttled_periods: Some(1),
            client_throttled_periods: Some(0),
            memory_kills: Some(1),
            clock_disagreement_seconds: Some(3.0),
            other_runs: Some(2),
            ..Pressure::default()
        };
        let expected = [
            Guard::ClientBound,
            Guard::Throttled,
            Guard::OutOfMemoryKill,
            Guard::Swapped,
            Guard::CpuStolen,
            Guard::ClockDisagrees,
            Guard::AnotherRun,
        ];
        assert_eq!(of_machine(&bad, terms(10.0, false)), expected);
    }

    #[test]
    fn what_was_asked_for_trips_nothing() {
        let held = Pressure { throttled_periods: Some(3), other_runs: Some(1), ..Pressure::default() };
        let asked = Terms { has_quota: true, beside_others: true, ..terms(10.0, true) };
        assert_eq!(of_machine(&held, asked), []);
        // A quota of the server's is none of the client's.
        let both = Pressure { client_throttled_periods: Some(1), ..held };
        assert_eq!(of_machine(&both, asked), [Guard::Throttled]);
    }

    #[test]
    fn a_sync_that_waits_for_nothing_is_found() {
        let server = |seconds| ServerFacts { sync_seconds: seconds, ..blank_server() };
        assert_eq!(of_sync(&server(Some(4e-6)), false), Some(Guard::SyncTooFast));
        assert_eq!(of_sync(&server(Some(0.0)), false), Some(Guard::SyncTooFast));
        assert_eq!(of_sync(&server(Some(4e-6)), true), None);
        assert_eq!(of_sync(&server(Some(40e-6)), false), None);
        assert_eq!(of_sync(&server(None), false), None);
        assert!(writes("load") && !writes("read") && !writes("dump"));
    }

    fn blank_server() -> ServerFacts {
        ServerFacts {
            backend: crate::model::Backend::Local,
            environment: String::new(),
            version_num: 150_000,
            identity: String::new(),
            fresh: String::new(),
            storage: String::new(),
            connection: String::new(),
            cpuset: None,
            client_cpuset: None,
            durable: true,
            sync_seconds: None,
            cluster: None,
        }
    }
}
