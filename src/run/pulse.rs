//! Signs of life of a trial that works by the clock.

use std::time::Duration;

use tokio::sync::watch;

use crate::engine::postgres::work::Progress;
use crate::model::Window;

/// How often it is told how far a load by duration is.
const EVERY: Duration = Duration::from_secs(1);

/// How far a load by duration is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pulse {
    /// Name of the step.
    pub step: String,
    /// Time since its clock started.
    pub elapsed: Duration,
    /// Warm-up.
    pub warm_up: Duration,
    /// Warm-up and measured window.
    pub whole: Duration,
    /// Rows committed so far.
    pub rows: u64,
    /// Rows committed per second since the pulse before.
    pub rows_per_second: f64,
}

/// Tells a pulse a second until it is dropped.
pub(super) async fn beat(
    pulse: &watch::Sender<Pulse>,
    step: &str,
    window: &Window,
    progress: &Progress,
) -> std::convert::Infallible {
    let mut before = Pulse::default();
    loop {
        tokio::time::sleep(EVERY).await;
        let (elapsed, rows) = progress.so_far();
        let seconds = elapsed.saturating_sub(before.elapsed).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
        let rows_per_second = if seconds > 0.0 { (rows - before.rows) as f64 / seconds } else { 0.0 };
        before = Pulse {
            step: step.to_owned(),
            elapsed,
            warm_up: window.warm_up,
            whole: window.end(),
            rows,
            rows_per_second,
        };
        pulse.send_replace(before.clone());
    }
}
