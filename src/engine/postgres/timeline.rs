//! What a step's clients were acknowledged, on the clock of the step: rows by phase, samples, gaps.
//!
//! Everything follows from the acknowledgements in their order, so that the sums of the samples are the rows of the
//! window to the last one, however late a sampler could have been woken.

use std::time::Duration;

use crate::model::{Phase, Window};
use crate::stats::Acknowledgements;

/// Rows by client at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// Since the clock of the step started.
    pub elapsed: Duration,
    /// Before or inside the window.
    pub phase: Phase,
    /// Rows committed so far, by client.
    pub rows: Vec<u64>,
}

/// Rows committed before, inside and after the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Phases {
    /// Before the window opened.
    pub before: u64,
    /// Inside.
    pub inside: u64,
    /// After it closed.
    pub after: u64,
}

/// The acknowledgements of a step so far. Times are since its clock started and never go back.
#[derive(Debug, Clone)]
pub struct Timeline {
    window: Option<Window>,
    totals: Vec<u64>,
    phases: Phases,
    points: Vec<Point>,
    due: Option<(Duration, Phase)>,
    acks: Acknowledgements,
}

impl Timeline {
    pub(super) fn new(clients: u32, window: Option<Window>) -> Self {
        let totals = vec![0; clients as usize];
        let due = window.map(|window| first_point(&window));
        Self {
            window,
            totals,
            phases: Phases::default(),
            points: Vec::new(),
            due,
            acks: Acknowledgements::default(),
        }
    }

    /// A batch was answered.
    pub(super) fn acknowledged(&mut self, now: Duration, rows: u64) {
        match self.window {
            None => self.acks.add(now.as_secs_f64(), rows),
            Some(window) if (window.warm_up..window.end()).contains(&now) => {
                self.acks.add(now.saturating_sub(window.warm_up).as_secs_f64(), rows);
            }
            Some(_) => {}
        }
    }

    /// A transaction was acknowledged.
    pub(super) fn committed(&mut self, now: Duration, client: u32, rows: u64) {
        self.advance(now);
        self.totals[client as usize] += rows;
        let Some(window) = self.window else { return };
        if now < window.warm_up {
            self.phases.before += rows;
        } else if now < window.end() {
            self.phases.inside += rows;
        } else {
            self.phases.after += rows;
        }
    }

    /// Adds the points up to `now`: nothing has changed since the last commit.
    pub(super) fn advance(&mut self, now: Duration) {
        let Some(window) = self.window else { return };
        while let Some((elapsed, phase)) = self.due.filter(|due| due.0 <= now) {
            self.points.push(Point { elapsed, phase, rows: self.totals.clone() });
            self.due = next_point(&window, elapsed, phase);
        }
    }

    /// The samples of a load by duration: each phase at its interval and at its edges.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Rows by phase; zero without a window.
    #[must_use]
    pub fn phases(&self) -> Phases {
        self.phases
    }

    /// Rows committed so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.totals.iter().sum()
    }

    /// Longest time without an acknowledged row, and the share of stalled time, over the window or else the first
    /// `seconds`. Without a window both are unknown unless some client was acknowledged more than once: a single
    /// answer for everything says nothing about how the rows came.
    #[must_use]
    pub fn stalls(&self, seconds: f64) -> (Option<f64>, Option<f64>) {
        let end = self.window.map_or(seconds, |window| window.measure.as_secs_f64());
        if self.window.is_none() && self.acks.count() <= self.totals.len() as u64 {
            return (None, None);
        }
        (Some(self.acks.longest_gap(end)), self.acks.stalled_share(end))
    }
}

fn first_point(window: &Window) -> (Duration, Phase) {
    if window.warm_up.is_zero() {
        (Duration::ZERO, Phase::Measure)
    } else {
        (window.sample_every.min(window.warm_up), Phase::WarmUp)
    }
}

/// The edge between the phases is the last point of one and the first of the other.
fn next_point(window: &Window, at: Duration, phase: Phase) -> Option<(Duration, Phase)> {
    let next = at.saturating_add(window.sample_every);
    match phase {
        Phase::WarmUp if at >= window.warm_up => Some((window.warm_up, Phase::Measure)),
        Phase::WarmUp => Some((next.min(window.warm_up), phase)),
        Phase::Measure if at >= window.end() => None,
        Phase::Measure => Some((next.min(window.end()), phase)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn window(warm_up: u64, measure: u64, every: u64) -> Window {
        Window { warm_up: ms(warm_up), measure: ms(measure), sample_every: ms(every) }
    }

    fn of_phase(line: &Timeline, phase: Phase) -> Vec<(u128, Vec<u64>)> {
        let points = line.points().iter().filter(|point| point.phase == phase);
        points.map(|point| (point.elapsed.as_millis(), point.rows.clone())).collect()
    }

    #[test]
    fn a_row_counts_where_its_commit_lies() {
        let mut line = Timeline::new(2, Some(window(100, 200, 80)));
        for (at, client, rows) in
            [(50, 0, 1), (99, 1, 2), (100, 0, 4), (299, 1, 8), (300, 0, 16), (900, 1, 32)]
        {
            line.committed(ms(at), client, rows);
        }
        line.advance(ms(901));
        assert_eq!(line.phases(), Phases { before: 3, inside: 12, after: 48 });
        assert_eq!(line.rows(), 63);
        assert_eq!(of_phase(&line, Phase::WarmUp), [(80, vec![1, 0]), (100, vec![1, 2])]);
        assert_eq!(
            of_phase(&line, Phase::Measure),
            [(100, vec![1, 2]), (180, vec![5, 2]), (260, vec![5, 2]), (300, vec![5, 10])]
        );
    }

    #[test]
    fn samples_are_on_time_although_nothing_happens() {
        let mut line = Timeline::new(1, Some(window(0, 1000, 250)));
        line.committed(ms(10), 0, 7);
        line.advance(ms(5000));
        let points = of_phase(&line, Phase::Measure);
        assert_eq!(points.iter().map(|point| point.0).collect::<Vec<_>>(), [0, 250, 500, 750, 1000]);
        assert_eq!(points.last().unwrap().1, [7]);
    }

    #[test]
    fn a_stall_of_the_warm_up_is_none_of_the_window() {
        let mut line = Timeline::new(1, Some(window(3000, 2000, 250)));
        for at in (2900..5000).step_by(10) {
            line.acknowledged(ms(at), 5);
        }
        let (gap, share) = line.stalls(0.0);
        assert!(gap.unwrap() < 0.011, "{gap:?}");
        assert_eq!(share, Some(0.0));
    }

    #[test]
    fn one_answer_for_all_says_nothing() {
        let mut line = Timeline::new(2, None);
        line.acknowledged(ms(4000), 500);
        line.acknowledged(ms(4100), 500);
        assert_eq!(line.stalls(4.2), (None, None));
        line.acknowledged(ms(4200), 1);
        assert!(line.stalls(4.2).0.is_some());
    }
}
