//! The `SysV` segment that a killed server leaves behind when it ran outside namespaces.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Frees the segment of a dead server, known by its pid file: only one with the same key and id, made by
/// the same process, that nobody uses.
pub(crate) fn free(data: &Path) {
    let Ok(pid_file) = fs::read_to_string(data.join("postmaster.pid")) else { return };
    let segments = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    if let Some(id) = left_behind(&pid_file, &segments) {
        let mut command = Command::new("ipcrm");
        command.args(["-m", &id.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
        // Without the program some bytes stay until the machine restarts.
        drop(command.status());
    }
}

/// Id of the segment. The pid file has the server's number in line 1, key and id in line 7; the kernel's
/// table has key, id, mode, size, maker, last user and number of users.
fn left_behind(pid_file: &str, segments: &str) -> Option<i64> {
    let number = |word: Option<&str>| word.and_then(|word| word.parse::<i64>().ok());
    let pid = number(pid_file.lines().next().map(str::trim))?;
    let mut words = pid_file.lines().nth(6)?.split_whitespace();
    let (key, id) = (number(words.next())?, number(words.next())?);
    // One side prints the 32 bits of the key with a sign.
    let same_key = |other: i64| other & 0xffff_ffff == key & 0xffff_ffff;
    segments.lines().skip(1).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let column = |index: usize| number(words.get(index).copied());
        let ours = same_key(column(0)?) && column(1)? == id && column(4)? == pid && column(6)? == 0;
        ours.then_some(id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PID_FILE: &str = "1152\n/x/data\n1796076295\n5432\n/x/socket\n\n4292345678  131099\nready   \n";

    fn table(line: &str) -> String {
        format!("       key      shmid perms size  cpid  lpid nattch uid gid\n{line}\n")
    }

    #[test]
    fn only_the_unused_segment_of_that_very_server_is_found() {
        let ours = "-2621618 131099 600 56 1152 1300 0 101 104";
        assert_eq!(left_behind(PID_FILE, &table(ours)), Some(131_099));
        for other in [
            "-2621618 131099 600 56 1152 1300 2 101 104",
            "-2621618 131099 600 56 1153 1300 0 101 104",
            "-2621618 131098 600 56 1152 1300 0 101 104",
            "-2621617 131099 600 56 1152 1300 0 101 104",
        ] {
            assert_eq!(left_behind(PID_FILE, &table(other)), None, "{other}");
        }
        assert_eq!(left_behind("", &table(ours)), None);
    }
}
