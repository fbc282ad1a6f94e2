//! Processes of this machine by number and start time: a number alone may have been given again.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// When a process started: clock ticks since boot on Linux, elsewhere a hash of what `ps` says.
/// `None` when there is no such process, or it is a zombie.
pub(crate) fn started(pid: u32) -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        let stat = procfs::process::Process::new(i32::try_from(pid).ok()?).ok()?.stat().ok()?;
        (stat.state != 'Z').then_some(stat.starttime)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let output = Command::new("ps").args(["-o", "lstart=", "-p", &pid.to_string()]).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (!text.is_empty()).then(|| xxhash_rust::xxh3::xxh3_64(text.as_bytes()))
    }
}

/// What tells this boot (and, on Linux, this pid namespace) from every other: numbers of processes mean
/// something only there.
pub(crate) fn boot() -> String {
    if let Ok(id) = fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let digits: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
        return format!("{}.{digits}", id.trim());
    }
    let output = Command::new("sysctl").args(["-n", "kern.bootsessionuuid"]).output();
    output.map_or_else(|_| "unknown".to_owned(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}

/// All processes below one, from parents to children; the process itself is not among them.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let pairs = parents();
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(pairs.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.remove(0);
    found
}

/// Every process with its parent.
fn parents() -> Vec<(u32, u32)> {
    #[cfg(target_os = "linux")]
    {
        let Ok(all) = procfs::process::all_processes() else { return Vec::new() };
        all.filter_map(|process| process.ok()?.stat().ok())
            .filter_map(|stat| Some((u32::try_from(stat.pid).ok()?, u32::try_from(stat.ppid).ok()?)))
            .collect()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let Ok(output) = Command::new("ps").args(["-A", "-o", "pid=,ppid="]).output() else {
            return Vec::new();
        };
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
            })
            .collect()
    }
}

/// Processes whose working folder lies in a folder: a server works in its data directory, and so do its
/// children, whatever became of their parent.
#[cfg(target_os = "linux")]
pub(crate) fn working_in(folder: &std::path::Path) -> Vec<u32> {
    let Ok(all) = procfs::process::all_processes() else { return Vec::new() };
    all.filter_map(|process| {
        let process = process.ok()?;
        process.cwd().ok()?.starts_with(folder).then_some(u32::try_from(process.pid).ok()?)
    })
    .collect()
}

/// Processes whose working folder lies in a folder; elsewhere than on Linux the server itself, by its
/// pid file, when its command line names the folder.
#[cfg(not(target_os = "linux"))]
pub(crate) fn working_in(folder: &std::path::Path) -> Vec<u32> {
    let Ok(text) = fs::read_to_string(folder.join("data/postmaster.pid")) else { return Vec::new() };
    let Some(pid) = text.lines().next().and_then(|line| line.trim().parse::<u32>().ok()) else {
        return Vec::new();
    };
    let Ok(output) = Command::new("ps").args(["-o", "command=", "-p", &pid.to_string()]).output() else {
        return Vec::new();
    };
    let ours = String::from_utf8_lossy(&output.stdout).contains(&*folder.to_string_lossy());
    if ours { vec![pid] } else { Vec::new() }
}

/// Sends a signal; a process that is gone is fine.
pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid)
        && pid > 1
    {
        // ESRCH: already gone. EPERM: not ours, then it must live.
        let _sent = kill(Pid::from_raw(pid), signal);
    }
}

/// Ends a server and everything below it: SIGQUIT (immediate shutdown, which also frees shared memory)
/// to the processes, SIGKILL to whatever is left after `patience`. Blocks until they are gone or two
/// more seconds have passed; returns whether they are.
pub(crate) fn end(pid: u32, expected_start: u64, patience: Duration) -> bool {
    if started(pid) != Some(expected_start) {
        return true;
    }
    let family: Vec<(u32, u64)> = std::iter::once(pid)
        .chain(descendants(pid))
        .filter_map(|member| Some((member, started(member)?)))
        .collect();
    let alive = || family.iter().filter(|(member, start)| started(*member) == Some(*start));
    signal(server_below(pid), Signal::SIGQUIT);
    if wait_until(patience, || alive().next().is_none()) {
        return true;
    }
    for (member, _) in alive() {
        signal(*member, Signal::SIGKILL);
    }
    wait_until(Duration::from_secs(2), || alive().next().is_none())
}

/// Variable that marks a client program and whatever it starts.
pub const MARK: &str = "LOADLAB_COMMAND";

/// Kills all processes that carry a mark in their environment, also those that came loose from their parent and
/// process group. Returns how many there were, and whether all are gone (within two seconds).
/// Elsewhere than on Linux environments cannot be read, and none is found.
pub fn end_marked(mark: &str) -> (usize, bool) {
    let begin = Instant::now();
    let mut ended: std::collections::BTreeSet<u32> = std::collections::BTreeSet::new();
    // Again until none is left: one that is being started while it is looked for is found the next time.
    loop {
        let found = marked(mark);
        for pid in &found {
            signal(*pid, Signal::SIGKILL);
        }
        ended.extend(&found);
        if found.is_empty() || begin.elapsed() > Duration::from_secs(2) {
            return (ended.len(), found.is_empty());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Processes with the mark that are no zombies.
fn marked(mark: &str) -> Vec<u32> {
    let wanted = format!("{MARK}={mark}");
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let carries = fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|text| text.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()));
        carries && *pid != std::process::id()
    })
    .collect()
}

/// The server that was started as a process: itself, or below `unshare`, which ends when its child does.
pub(crate) fn server_below(pid: u32) -> u32 {
    let family = || std::iter::once(pid).chain(descendants(pid));
    if !is_unshare(pid) {
        return pid;
    }
    family().find(|member| !is_unshare(*member)).unwrap_or(pid)
}

fn is_unshare(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "unshare")
}

/// Polls a condition every few milliseconds until it holds or the time is over.
pub(crate) fn wait_until(limit: Duration, condition: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if begin.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_number_and_start() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let start = started(child.id()).expect("it runs");
        assert!(descendants(std::process::id()).contains(&child.id()));
        assert!(end(child.id(), start + 1, Duration::ZERO), "another start: another process");
        assert!(started(child.id()).is_some(), "and that one is not touched");
        assert!(end(child.id(), start, Duration::from_secs(1)));
        child.wait().expect("reaped");
        assert_eq!(started(child.id()), None);
    }

    #[test]
    fn this_boot_has_a_name() {
        assert!(!boot().is_empty());
        assert_eq!(boot(), boot());
    }
}
