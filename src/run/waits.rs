//! What the server's working sessions wait for while a step runs: looks at `pg_stat_activity` at intervals.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::engine::postgres::{Session, counters};

/// Time between two looks. A look is one short query on the server inside the window; so few of them are
/// the price of knowing who waits for whom.
const INTERVAL: Duration = Duration::from_millis(200);
/// With fewer looks at a session than this there is no share worth naming.
const FEWEST: u64 = 10;

/// Looks at the sessions of a step until it is finished.
pub(super) struct Waits {
    task: JoinHandle<()>,
    /// Looks that found a session waiting for its client, and all looks.
    seen: Arc<Mutex<(u64, u64)>>,
}

impl Waits {
    /// `session`: one of the runner's own, opened before the clock starts.
    pub(super) fn start(session: Session) -> Self {
        let seen = Arc::new(Mutex::new((0, 0)));
        let counts = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(INTERVAL).await;
                // A step that ends while it is looked at, or a server that is gone: the step itself will say so.
                let Ok((waiting, all)) = counters::waiting_for_client(&session.client).await else { return };
                let mut counts = counts.lock().expect("no holder panics");
                counts.0 += waiting;
                counts.1 += all;
            }
        });
        Self { task, seen }
    }

    /// Share of looks that found a session waiting for its client, 0 to 1; `None` after few looks.
    #[expect(clippy::cast_precision_loss, reason = "a few thousand looks")]
    pub(super) fn finish(self) -> Option<f64> {
        let (waiting, all) = *self.seen.lock().expect("no holder panics");
        (all >= FEWEST).then(|| waiting as f64 / all as f64)
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.task.abort();
    }
}
