//! How busy the whole machine is: CPU time of everything, and how long tasks waited for a CPU, a device or memory.

use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::model::Pressure;

/// Ticks of a second in `/proc/stat`: 100 on every Linux of today (time(7), `USER_HZ`).
const TICKS: f64 = 100.0;

/// Counters at one moment. `None`: not known here.
pub(super) struct Busy {
    /// CPU seconds of everything since the start, without those stolen by a hypervisor.
    cpu: Option<f64>,
    /// Microseconds that some task waited for a CPU, a device, memory.
    waited: [Option<u64>; 3],
    at: Instant,
}

impl Busy {
    pub(super) fn now() -> Self {
        Self::read(Path::new("/proc"))
    }

    /// From any folder with the files of `/proc`.
    fn read(proc: &Path) -> Self {
        let text = |name: &str| fs::read_to_string(proc.join(name)).ok();
        let waited = |name: &str| text(&format!("pressure/{name}")).and_then(|text| waited(&text));
        Self {
            cpu: text("stat").and_then(|text| cpu_seconds(&text)),
            waited: ["cpu", "io", "memory"].map(waited),
            at: Instant::now(),
        }
    }

    /// Adds what happened since an earlier moment; `known` are the CPU seconds of server and client, where both are known.
    pub(super) fn add_since(&self, earlier: &Self, known: Option<f64>, pressure: &mut Pressure) {
        let span = self.at.duration_since(earlier.at).as_secs_f64();
        if span <= 0.0 {
            return;
        }
        let all = earlier.cpu.zip(self.cpu).map(|(before, after)| after - before);
        // Ticks are coarse: a little less than nothing is nothing.
        pressure.other_cpus = all.zip(known).map(|(all, known)| ((all - known) / span).max(0.0));
        let share = |which: usize| {
            let (before, after) = earlier.waited[which].zip(self.waited[which])?;
            Some((micros(after.saturating_sub(before)) / span).min(1.0))
        };
        pressure.cpu_pressure_share = share(0);
        pressure.io_pressure_share = share(1);
        pressure.memory_pressure_share = share(2);
    }
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of one step stay below 2^53")]
fn micros(count: u64) -> f64 {
    count as f64 / 1e6
}

/// User, nice, system, irq and softirq of the first line of `/proc/stat` (proc(5)).
#[expect(clippy::cast_precision_loss, reason = "ticks stay below 2^53")]
fn cpu_seconds(stat: &str) -> Option<f64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|ticks| ticks.parse().ok()).collect();
    let busy = [0, 1, 2, 5, 6].iter().map(|field| ticks.get(*field).copied());
    Some(busy.sum::<Option<u64>>()? as f64 / TICKS)
}

/// `total` of the line `some`, in microseconds (the kernel's documentation, "PSI - Pressure Stall Information").
fn waited(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split_once("total=")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_kernels_files_are_read() {
        assert_eq!(cpu_seconds("cpu  100 50 20 900 7 10 20 5 0 0\ncpu0 1 2\n"), Some(2.0));
        assert_eq!(cpu_seconds("cpu  100 50\n"), None);
        let some = "some avg10=0.95 avg60=1.67 avg300=1.12 total=952375542\nfull avg10=0 total=7\n";
        assert_eq!(waited(some), Some(952_375_542));
        assert_eq!(waited("full avg10=0 total=7\n"), None);
    }

    #[test]
    fn others_are_what_server_and_client_did_not_use() {
        let start = Instant::now();
        let before = Busy { cpu: Some(10.0), waited: [Some(0), None, Some(5)], at: start };
        let after = Busy {
            cpu: Some(13.0),
            waited: [Some(1_000_000), Some(4), Some(5)],
            at: start + Duration::from_secs(2),
        };
        let mut pressure = Pressure::default();
        after.add_since(&before, Some(2.0), &mut pressure);
        assert_eq!(pressure.other_cpus, Some(0.5));
        assert_eq!(pressure.cpu_pressure_share, Some(0.5));
        assert_eq!((pressure.io_pressure_share, pressure.memory_pressure_share), (None, Some(0.0)));
        after.add_since(&before, None, &mut pressure);
        assert_eq!(pressure.other_cpus, None, "a server whose use is not known");
    }
}
