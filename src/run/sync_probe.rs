//! What a sync costs on the trial's own server: a synchronous commit of almost nothing, less the same without the wait.
//!
//! A number that no device can reach says that commits are not safe, whatever the settings say: memory under the data
//! directory, a disk that only pretends, `fsync` switched off by an image.

use std::time::{Duration, Instant};

use crate::engine::postgres::sync::{self, Wait};
use crate::engine::postgres::{Endpoint, Role, Session, SessionError};

/// Commits of either kind; odd, so that there is one in the middle.
const COMMITS: usize = 15;
/// On a device that is slower than anything that can be used, the trial must go on.
const DEADLINE: Duration = Duration::from_secs(5);

/// Seconds that a commit waits for its WAL to be on the device, median; `None` where that cannot be found out: the role may
/// not write, or no answer came.
pub(super) async fn sync_seconds(endpoint: &Endpoint) -> Option<f64> {
    tokio::time::timeout(DEADLINE, probe(endpoint)).await.ok()?.ok()
}

async fn probe(endpoint: &Endpoint) -> Result<f64, SessionError> {
    // A session of its own: nothing of it is left in those of the trial.
    let session = Session::open(endpoint, Role::Admin).await?;
    let commit = sync::prepare(&session.client).await?;
    let (mut waited, mut not_waited) = (Vec::new(), Vec::new());
    // Alternating, so that both kinds meet the same machine.
    for _ in 0..COMMITS {
        for (wait, spans) in [(Wait::ForDevice, &mut waited), (Wait::NotAtAll, &mut not_waited)] {
            sync::choose(&session.client, wait).await?;
            let start = Instant::now();
            session.client.execute(&commit, &[]).await?;
            spans.push(start.elapsed());
        }
    }
    Ok(middle(waited).saturating_sub(middle(not_waited)).as_secs_f64())
}

fn middle(mut spans: Vec<Duration>) -> Duration {
    spans.sort_unstable();
    spans[spans.len() / 2]
}
