//! Other runs of loadlab on this machine: two runs at once measure each other.

use std::fs;
use std::path::Path;

/// Sub-commands that keep the machine busy.
const WORKING: [&[u8]; 2] = [b"run", b"rerun"];

/// Numbers of the processes of other runs, sorted; `None` where processes cannot be looked at. Those in another container
/// are not seen.
#[must_use]
pub fn runs() -> Option<Vec<u32>> {
    runs_in(Path::new("/proc"), std::process::id())
}

/// The same from any folder with the files of `/proc`; `own` is this process.
fn runs_in(proc: &Path, own: u32) -> Option<Vec<u32>> {
    let name = fs::read(proc.join(own.to_string()).join("comm")).ok()?;
    // Where processes of others are hidden (`hidepid`), the first one is, and nothing can be said.
    if !proc.join("1").is_dir() {
        return None;
    }
    let entries = fs::read_dir(proc).ok()?.flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let other = |pid: &u32| {
        let folder = proc.join(pid.to_string());
        // Processes come and go while they are looked at.
        *pid != own
            && fs::read(folder.join("comm")).is_ok_and(|comm| comm == name)
            && fs::read(folder.join("cmdline")).is_ok_and(|words| is_run(&words))
    };
    let mut found: Vec<u32> = entries.filter_map(number).filter(other).collect();
    found.sort_unstable();
    Some(found)
}

/// Whether the first argument of a command line, as the kernel keeps it, is a run.
fn is_run(words: &[u8]) -> bool {
    words.split(|byte| *byte == 0).nth(1).is_some_and(|word| WORKING.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(proc: &Path, pid: u32, comm: &str, words: &[u8]) {
        let folder = proc.join(pid.to_string());
        fs::create_dir(&folder).expect("folder");
        fs::write(folder.join("comm"), format!("{comm}\n")).expect("comm");
        fs::write(folder.join("cmdline"), words).expect("cmdline");
    }

    #[test]
    fn only_other_runs_count() {
        let proc = tempfile::tempdir().expect("folder");
        let proc = proc.path();
        fs::create_dir(proc.join("self")).expect("folder");
        process(proc, 1, "loadlab", b"loadlab\0run\0a.yaml\0");
        assert_eq!(runs_in(proc, 1), Some(vec![]), "only this one");
        process(proc, 2, "loadlab", b"loadlab\0reap\0folder\0");
        process(proc, 3, "loadlab", b"loadlab\0report\0run\0");
        process(proc, 4, "docker", b"docker\0run\0loadlab\0");
        process(proc, 5, "loadlab", b"");
        assert_eq!(runs_in(proc, 1), Some(vec![]));
        process(proc, 20, "loadlab", b"./loadlab\0rerun\0results/a\0");
        process(proc, 6, "loadlab", b"/opt/loadlab\0run\0b.yaml\0");
        assert_eq!(runs_in(proc, 1), Some(vec![6, 20]));
    }

    #[test]
    fn without_such_files_nothing_is_known() {
        assert_eq!(runs_in(Path::new("/does/not/exist"), 1), None);
        let hidden = tempfile::tempdir().expect("folder");
        process(hidden.path(), 7, "loadlab", b"loadlab\0run\0a.yaml\0");
        assert_eq!(runs_in(hidden.path(), 7), None, "the processes of others are hidden");
    }
}
