//! When what happened on the machine makes a number unfit for use: thresholds, each with its reason.

use crate::model::{Guard, Pressure, ServerCounters};

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

/// Guards of a step's window. `streams`: rows flow without a question and an answer for each batch, so a session that waits
/// for its client means that the client is the narrow place; with round trips, waiting is part of the method.
pub(super) fn of_machine(pressure: &Pressure, seconds: f64, streams: bool) -> Vec<Guard> {
    let above = |share: Option<f64>, most: f64| seconds >= SHORTEST_SECONDS && share > Some(most);
    let some = |count: Option<u64>, most: u64| count > Some(most);
    let client = above(pressure.busiest_client_thread_share, BUSY_THREAD)
        || streams && above(pressure.client_wait_share, WAITING);
    let found = [
        (Guard::ClientBound, client),
        (Guard::Throttled, some(pressure.throttled_periods, 0)),
        (Guard::OutOfMemoryKill, some(pressure.memory_kills, 0)),
        (Guard::Swapped, some(pressure.swapped_bytes, SWAPPED_BYTES)),
        (Guard::CpuStolen, above(pressure.stolen_share, STOLEN)),
        (Guard::ClockDisagrees, pressure.clock_disagreement_seconds > Some(CLOCK_SECONDS)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_machine_trips_nothing() {
        let quiet = Pressure {
            busiest_client_thread_share: Some(0.5),
            client_wait_share: Some(0.9),
            stolen_share: Some(0.01),
            swapped_bytes: Some(4096),
            throttled_periods: Some(0),
            memory_kills: Some(0),
            clock_disagreement_seconds: Some(0.001),
        };
        assert_eq!(of_machine(&quiet, 10.0, false), []);
        assert_eq!(of_machine(&Pressure::default(), 10.0, true), []);
    }

    #[test]
    fn waiting_for_the_client_counts_for_streams_only() {
        let waiting = Pressure { client_wait_share: Some(0.5), ..Pressure::default() };
        assert_eq!(of_machine(&waiting, 10.0, true), [Guard::ClientBound]);
        assert_eq!(of_machine(&waiting, 10.0, false), []);
        assert_eq!(of_machine(&waiting, 0.1, true), []);
    }

    #[test]
    fn each_sabotage_has_its_guard() {
        let bad = Pressure {
            busiest_client_thread_share: Some(0.95),
            client_wait_share: None,
            stolen_share: Some(0.2),
            swapped_bytes: Some(1 << 30),
            throttled_periods: Some(1),
            memory_kills: Some(1),
            clock_disagreement_seconds: Some(3.0),
        };
        let expected = [
            Guard::ClientBound,
            Guard::Throttled,
            Guard::OutOfMemoryKill,
            Guard::Swapped,
            Guard::CpuStolen,
            Guard::ClockDisagrees,
        ];
        assert_eq!(of_machine(&bad, 10.0, false), expected);
    }
}
