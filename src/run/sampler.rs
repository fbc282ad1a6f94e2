//! Rows so far, by client, at intervals: the time series of a step.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use crate::engine::postgres::timeline::{Point, Timeline};
use crate::engine::postgres::work::Progress;
use crate::model::{Phase, Sample};

/// First interval; doubled, and every second point dropped, whenever a step has more than [`MOST`] points.
const INTERVAL: Duration = Duration::from_millis(250);
/// Points kept per step.
const MOST: usize = 480;

/// Seconds since the start, and rows by client.
type Points = Arc<Mutex<Vec<(f64, Vec<u64>)>>>;

/// Samples the progress of a step until it is finished.
pub(super) struct Sampler {
    task: JoinHandle<()>,
    points: Points,
    progress: Progress,
    start: Instant,
}

impl Sampler {
    pub(super) fn start(progress: &Progress, start: Instant) -> Self {
        let points = Points::default();
        let task = tokio::spawn(sample(progress.clone(), start, Arc::clone(&points)));
        Self { task, points, progress: progress.clone(), start }
    }

    /// Ends sampling with one last point and returns the series.
    pub(super) fn finish(&self, step_index: u32, step: &str) -> Vec<Sample> {
        self.task.abort();
        let last = (self.start.elapsed().as_secs_f64(), self.progress.rows());
        let mut points = std::mem::take(&mut *self.points.lock().expect("no holder panics"));
        points.push(last);
        let by_client = |(elapsed_seconds, rows): (f64, Vec<u64>)| {
            rows.into_iter().enumerate().map(move |(client, rows)| Sample {
                step_index,
                step: step.to_owned(),
                client: u32::try_from(client).unwrap_or(u32::MAX),
                elapsed_seconds,
                rows,
                phase: Phase::Measure,
            })
        };
        points.into_iter().flat_map(by_client).collect()
    }
}

/// The samples of a load by duration: all that its interval asks for, none is thinned out.
pub(super) fn timed(timeline: &Timeline, step_index: u32, step: &str) -> Vec<Sample> {
    let by_client = |point: &Point| {
        let (elapsed_seconds, phase) = (point.elapsed.as_secs_f64(), point.phase);
        let rows = point.rows.iter().zip(0..);
        let samples = rows.map(|(rows, client)| Sample {
            step_index,
            step: step.to_owned(),
            client,
            elapsed_seconds,
            rows: *rows,
            phase,
        });
        samples.collect::<Vec<_>>()
    };
    timeline.points().iter().flat_map(by_client).collect()
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn sample(progress: Progress, start: Instant, points: Points) {
    let mut interval = INTERVAL;
    loop {
        tokio::time::sleep(interval).await;
        let mut points = points.lock().expect("no holder panics");
        points.push((start.elapsed().as_secs_f64(), progress.rows()));
        if points.len() > MOST {
            let mut keep = false;
            points.retain(|_| {
                keep = !keep;
                keep
            });
            interval *= 2;
        }
    }
}
