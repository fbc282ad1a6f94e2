//! What the rest of the machine did during a step: CPU time stolen by a hypervisor, swapping, a clock that
//! jumped, and whether a thread of this process was the narrow place.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::{Instant, SystemTime};

use crate::environment::cgroup::OwnCgroup;
use crate::environment::neighbours;
use crate::model::Pressure;

/// Counters of the machine and of this process's threads at one moment. `None`: not known here.
pub(super) struct Machine {
    /// Stolen and all CPU time since the start, in ticks.
    ticks: Option<(u64, u64)>,
    /// Pages swapped in and out since the start.
    swapped_pages: Option<u64>,
    /// Nanoseconds on a CPU by thread of this process.
    threads: HashMap<String, u64>,
    /// Times a CPU quota held the processes around this one back.
    throttled_periods: Option<u64>,
    wall: SystemTime,
    monotonic: Instant,
}

/// Bytes of a page of memory, as `/proc/vmstat` counts them on the machines loadlab runs on.
const PAGE_BYTES: u64 = 4096;

impl Machine {
    pub(super) fn now() -> Self {
        Self::read(Path::new("/proc"))
    }

    /// With the machine's counters from any folder that has the files of `/proc`.
    fn read(proc: &Path) -> Self {
        let text = |name: &str| fs::read_to_string(proc.join(name)).ok();
        Self {
            ticks: text("stat").and_then(|text| ticks(&text)),
            swapped_pages: text("vmstat").and_then(|text| swapped(&text)),
            threads: threads(),
            throttled_periods: OwnCgroup::now().throttled_periods,
            wall: SystemTime::now(),
            monotonic: Instant::now(),
        }
    }

    /// What happened since an earlier moment, as far as the machine and this process tell.
    #[expect(clippy::cast_precision_loss, reason = "ticks and nanoseconds of one step stay below 2^53")]
    pub(super) fn since(&self, earlier: &Self) -> Pressure {
        let span = self.monotonic.duration_since(earlier.monotonic).as_secs_f64();
        // A wall clock that went back gives the distance with the other sign.
        let wall = match self.wall.duration_since(earlier.wall) {
            Ok(forward) => forward.as_secs_f64(),
            Err(back) => -back.duration().as_secs_f64(),
        };
        let stolen = earlier.ticks.zip(self.ticks).and_then(|((stolen, all), (stolen_now, all_now))| {
            let all = all_now.checked_sub(all).filter(|ticks| *ticks > 0)?;
            Some(stolen_now.saturating_sub(stolen) as f64 / all as f64)
        });
        let busiest = self
            .threads
            .iter()
            .map(|(thread, nanos)| nanos.saturating_sub(earlier.threads.get(thread).copied().unwrap_or(0)));
        Pressure {
            stolen_share: stolen,
            swapped_bytes: earlier
                .swapped_pages
                .zip(self.swapped_pages)
                .map(|(before, after)| after.saturating_sub(before).saturating_mul(PAGE_BYTES)),
            busiest_client_thread_share: busiest
                .max()
                .filter(|_| span > 0.0)
                .map(|nanos| (nanos as f64 / 1e9 / span).min(1.0)),
            clock_disagreement_seconds: Some((wall - span).abs()),
            client_throttled_periods: earlier
                .throttled_periods
                .zip(self.throttled_periods)
                .map(|(before, after)| after.saturating_sub(before)),
            ..Pressure::default()
        }
    }
}

/// How many other runs are at work on the machine now. Looks at every process: never within a window.
pub(super) async fn other_runs() -> Option<u64> {
    let looking = tokio::task::spawn_blocking(neighbours::runs);
    looking.await.ok().flatten().map(|found| found.len() as u64)
}

/// Stolen ticks and all ticks of the first line of `/proc/stat` (proc(5): user nice system idle iowait irq softirq
/// steal; the guest times after them are part of user and nice).
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|ticks| ticks.parse().ok()).collect();
    Some((*ticks.get(7)?, ticks.iter().sum()))
}

fn swapped(vmstat: &str) -> Option<u64> {
    let field = |name: &str| {
        let line = vmstat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse::<u64>().ok()
    };
    Some(field("pswpin")? + field("pswpout")?)
}

/// Nanoseconds on a CPU of each thread of this process (the first field of `schedstat`).
fn threads() -> HashMap<String, u64> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let time = |task: fs::DirEntry| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        let nanos = text.split_whitespace().next()?.parse().ok()?;
        Some((task.file_name().to_string_lossy().into_owned(), nanos))
    };
    tasks.filter_map(time).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(ticks: (u64, u64), pages: u64, thread: u64, wall: u64, monotonic: Instant) -> Machine {
        Machine {
            ticks: Some(ticks),
            swapped_pages: Some(pages),
            threads: HashMap::from([("1".to_owned(), thread)]),
            throttled_periods: Some(pages),
            wall: SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(wall),
            monotonic,
        }
    }

    #[test]
    fn files_of_the_kernel_are_read() {
        let stat = "cpu  10 1 5 100 2 0 1 7 0 0\ncpu0 1 2 3\n";
        assert_eq!(ticks(stat), Some((7, 126)));
        assert_eq!(swapped("pgpgin 5\npswpin 3\npswpout 4\n"), Some(7));
        assert_eq!(swapped("pgpgin 5\n"), None);
    }

    #[test]
    fn pressure_is_what_changed() {
        let start = Instant::now();
        let before = machine((0, 0), 0, 0, 1_000, start);
        let two_seconds = std::time::Duration::from_secs(2);
        let after = machine((5, 100), 2, 1_900_000_000, 1_003, start + two_seconds);
        let pressure = after.since(&before);
        assert_eq!(pressure.stolen_share, Some(0.05));
        assert_eq!(pressure.swapped_bytes, Some(8192));
        assert_eq!(pressure.busiest_client_thread_share, Some(0.95));
        assert_eq!(pressure.clock_disagreement_seconds, Some(1.0));
        assert_eq!(pressure.client_throttled_periods, Some(2));
    }

    /// Theft, swapping and clocks that jump cannot be had without harm to the machine: the kernel's files are made up instead, and
    /// everything from there to the guard is real.
    #[test]
    fn a_machine_that_steals_swaps_and_jumps_trips_its_guards() {
        use super::super::guards::{Terms, of_machine};
        use crate::model::Guard;
        let proc = tempfile::tempdir().unwrap();
        let machine = |stolen: u32, swapped: u32| {
            let stat = format!("cpu  10 0 10 {} 0 0 0 {stolen} 0 0\n", 1000 - stolen);
            fs::write(proc.path().join("stat"), stat).unwrap();
            fs::write(proc.path().join("vmstat"), format!("pswpin {swapped}\npswpout 0\n")).unwrap();
            Machine::read(proc.path())
        };
        let second = std::time::Duration::from_secs(1);
        let later = |machine: Machine, wall: f64, earlier: &Machine| Machine {
            monotonic: earlier.monotonic + second,
            wall: earlier.wall + second.mul_f64(wall),
            threads: HashMap::new(),
            ticks: machine.ticks.map(|(stolen, all)| (stolen, all + 1000)),
            ..machine
        };
        let before = machine(0, 0);
        let of =
            |after: &Machine| of_machine(&after.since(&before), Terms { seconds: 1.0, ..Terms::default() });
        assert_eq!(of(&later(machine(20, 100), 1.0, &before)), [], "a little of each is usual");
        assert_eq!(of(&later(machine(100, 0), 1.0, &before)), [Guard::CpuStolen]);
        assert_eq!(of(&later(machine(0, 2000), 1.0, &before)), [Guard::Swapped]);
        assert_eq!(of(&later(machine(0, 0), 1.3, &before)), [Guard::ClockDisagrees]);
    }

    #[test]
    fn a_clock_set_back_is_a_disagreement() {
        let start = Instant::now();
        let pressure = machine((0, 1), 0, 0, 10, start).since(&machine((0, 0), 0, 0, 20, start));
        assert_eq!(pressure.clock_disagreement_seconds, Some(10.0));
        assert_eq!(pressure.busiest_client_thread_share, None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_can_be_read() {
        let before = Machine::now();
        let mut sum = 0_u64;
        while before.monotonic.elapsed().as_millis() < 60 {
            sum = sum.wrapping_add(1);
        }
        let pressure = Machine::now().since(&before);
        assert!(pressure.busiest_client_thread_share > Some(0.0), "{sum} {pressure:?}");
    }
}
