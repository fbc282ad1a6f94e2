//! Stalls: how long nothing was acknowledged, and for what share of the time hardly anything.

use super::median;

/// Width of the finest intervals, seconds.
const FINEST: f64 = 0.01;
/// Most fine intervals kept; beyond, neighbours are put together and all intervals are twice as wide.
const MOST: u16 = 8192;
/// Intervals that are judged are at least this wide, seconds.
const NARROWEST: f64 = 0.1;
/// And wide enough for so many acknowledgements on average: if these came independently of each other, fewer than
/// a tenth (none) would fall into an interval once in e^10 = 22,026 times (Poisson's distribution), so an empty interval is
/// no accident of large batches.
const MEAN_COUNT: f64 = 10.0;
/// With fewer intervals nothing is said.
const FEWEST: usize = 10;

/// Acknowledgements of rows over a stretch of time that begins at 0. Takes constant memory however many there are.
#[derive(Debug, Clone)]
pub struct Acknowledgements {
    last: f64,
    longest: f64,
    count: u64,
    width: f64,
    rows: Vec<u64>,
}

impl Default for Acknowledgements {
    fn default() -> Self {
        Self { last: 0.0, longest: 0.0, count: 0, width: FINEST, rows: Vec::new() }
    }
}

impl Acknowledgements {
    /// Rows were acknowledged `at` so many seconds; never before the last.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times are not negative")]
    pub fn add(&mut self, at: f64, rows: u64) {
        self.longest = self.longest.max(at - self.last);
        self.last = at;
        self.count += 1;
        while at / self.width >= f64::from(MOST) {
            self.widen();
        }
        let place = (at / self.width) as usize;
        if self.rows.len() <= place {
            self.rows.resize(place + 1, 0);
        }
        self.rows[place] += rows;
    }

    fn widen(&mut self) {
        self.rows = self.rows.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.width *= 2.0;
    }

    /// Number of acknowledgements.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Longest time without one, from 0 to `end` (both are edges of a gap), seconds.
    #[must_use]
    pub fn longest_gap(&self, end: f64) -> f64 {
        self.longest.max(end - self.last)
    }

    /// Share of the time from 0 to `end` in which rows came at under a tenth of the median rate: of equal intervals,
    /// as narrow as 100 ms and ten acknowledgements on average allow, those with fewer rows than a tenth of the median
    /// interval; where the median interval has none, those without any. What is left of the time after the last whole interval
    /// is not judged. `None` when there are fewer than ten intervals.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "spans are not negative; casts saturate"
    )]
    pub fn stalled_share(&self, end: f64) -> Option<f64> {
        let wanted = NARROWEST.max(MEAN_COUNT * end / self.count as f64);
        // A hair less, so that a ratio that is whole stays whole.
        let fine = ((wanted / self.width - 1e-9).ceil() as usize).max(1);
        let intervals = (end / (self.width * fine as f64) + 1e-9) as usize;
        if intervals < FEWEST {
            return None;
        }
        let mut rows = vec![0.0; intervals];
        for (place, count) in self.rows.iter().enumerate() {
            if let Some(interval) = rows.get_mut(place / fine) {
                *interval += *count as f64;
            }
        }
        let tenth = median(&rows)? / 10.0;
        let stalled = rows.iter().filter(|rows| **rows < tenth || **rows == 0.0).count();
        Some(stalled as f64 / intervals as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `rows` every `every` milliseconds from `from` to `to`.
    fn steady(acks: &mut Acknowledgements, from: u32, to: u32, every: u32, rows: u64) {
        for at in (from..to).step_by(every as usize) {
            acks.add(f64::from(at) / 1000.0, rows);
        }
    }

    fn close(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-9
    }

    #[test]
    fn a_steady_load_has_no_stall() {
        let mut acks = Acknowledgements::default();
        steady(&mut acks, 0, 10_000, 5, 100);
        assert!(close(acks.longest_gap(10.0), 0.005), "{}", acks.longest_gap(10.0));
        assert_eq!(acks.stalled_share(10.0), Some(0.0));
    }

    #[test]
    fn a_pause_is_seen_in_full_wherever_it_lies() {
        for (from, to) in [(0, 2_000), (4_000, 6_000), (8_000, 10_000)] {
            let mut acks = Acknowledgements::default();
            steady(&mut acks, 0, from, 5, 100);
            steady(&mut acks, to, 10_000, 5, 100);
            let gap = acks.longest_gap(10.0);
            assert!((2.0..2.01).contains(&gap), "{gap}");
            assert!(close(acks.stalled_share(10.0).unwrap(), 0.2), "{:?}", acks.stalled_share(10.0));
        }
    }

    #[test]
    fn a_trickle_is_a_stall_and_half_the_rate_is_none() {
        let mut acks = Acknowledgements::default();
        steady(&mut acks, 0, 8_000, 5, 100);
        steady(&mut acks, 8_000, 9_000, 100, 20);
        steady(&mut acks, 9_000, 10_000, 10, 100);
        assert!(close(acks.stalled_share(10.0).unwrap(), 0.1));
    }

    #[test]
    fn large_batches_are_no_stalls() {
        let mut acks = Acknowledgements::default();
        steady(&mut acks, 0, 60_000, 300, 50_000);
        // Intervals of three seconds hold ten batches.
        assert_eq!(acks.stalled_share(60.0), Some(0.0));
        let mut few = Acknowledgements::default();
        steady(&mut few, 0, 60_000, 2_000, 50_000);
        assert_eq!(few.stalled_share(60.0), None, "three intervals of 20 s say nothing");
        assert!(close(few.longest_gap(60.0), 2.0));
    }

    #[test]
    fn bursts_with_more_pause_than_work_are_stalled_most_of_the_time() {
        let mut acks = Acknowledgements::default();
        for second in 0..20 {
            steady(&mut acks, second * 1000, second * 1000 + 300, 5, 10);
        }
        // Seven tenths, less what lies in one interval with the edge of a burst.
        let share = acks.stalled_share(20.0).unwrap();
        assert!((0.5..=0.7).contains(&share), "{share}");
    }

    #[test]
    fn nothing_at_all_is_one_gap_and_no_share() {
        let acks = Acknowledgements::default();
        assert!(close(acks.longest_gap(30.0), 30.0));
        assert_eq!((acks.stalled_share(30.0), acks.count()), (None, 0));
    }

    #[test]
    fn hours_take_no_more_memory_than_minutes() {
        let mut acks = Acknowledgements::default();
        for second in 0..36_000 {
            if !(18_000..21_600).contains(&second) {
                acks.add(f64::from(second), 1000);
            }
        }
        assert!(acks.rows.len() <= usize::from(MOST));
        assert_eq!(acks.rows.iter().sum::<u64>(), 32_400_000);
        assert!(close(acks.longest_gap(36_000.0), 3601.0));
        assert!((acks.stalled_share(36_000.0).unwrap() - 0.1).abs() < 0.002);
    }
}
