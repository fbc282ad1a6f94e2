//! The operating system's page cache, as far as it holds a server's files: letting go of them, and how much is there.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::account;

/// How long asking about files may take.
const DEADLINE: Duration = Duration::from_secs(20);
/// Files asked about at once: command lines have a limit.
const AT_ONCE: usize = 500;

/// Lets go of all pages of all files below a folder, files of a stopped or an idle server. What was written to them is
/// brought to disk first: changed pages would stay.
///
/// # Errors
/// With the file that could not be opened or synced.
#[cfg(target_os = "linux")]
pub fn drop_pages(folder: &Path) -> io::Result<()> {
    use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
    each_file(folder, &mut |path| {
        let file = match File::open(path) {
            // Servers remove files at any time.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        file.sync_all()?;
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).map_err(io::Error::from)
    })
}

/// Only Linux has the call.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn drop_pages(_folder: &Path) -> io::Result<()> {
    Err(io::Error::other("only Linux lets go of the page cache file by file"))
}

fn each_file(folder: &Path, visit: &mut impl FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let kind = entry.file_type().map_err(named)?;
        if kind.is_dir() {
            each_file(&path, visit)?;
        } else if kind.is_file() {
            visit(&path).map_err(named)?;
        }
    }
    Ok(())
}

/// All segments of a relation's file that are there: `16384`, `16384.1`, ...
pub fn segments(file: &Path) -> Vec<PathBuf> {
    let numbered = (1..).map(|number: u32| {
        let mut name = OsString::from(file);
        name.push(format!(".{number}"));
        PathBuf::from(name)
    });
    std::iter::once(file.to_owned()).chain(numbered).take_while(|path| path.exists()).collect()
}

/// Which share of the bytes of some files is in the page cache, 0 to 1; 0 for files without bytes. Asks `fincore` of
/// util-linux, which reads nothing of the files.
///
/// # Errors
/// Why it cannot be known here.
pub async fn share(files: &[PathBuf]) -> Result<f64, String> {
    let (mut resident, mut size) = (0_u64, 0_u64);
    for some in files.chunks(AT_ONCE) {
        let mut command = Command::new("fincore");
        command.args(["--bytes", "--noheadings", "--raw", "--output", "RES,SIZE"]).args(some);
        let output = account::run(command, DEADLINE).await.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "the program `fincore` of util-linux is not installed".to_owned(),
            _ => format!("fincore: {error}"),
        })?;
        if !output.status.success() {
            return Err(format!("fincore: {}", account::words(&output)));
        }
        let (in_cache, of) = add_up(&String::from_utf8_lossy(&output.stdout))
            .ok_or_else(|| format!("fincore: {}", account::words(&output)))?;
        resident += in_cache;
        size += of;
    }
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let share = if size == 0 { 0.0 } else { resident as f64 / size as f64 };
    // Its last page counts whole.
    Ok(share.min(1.0))
}

/// Bytes in the cache and bytes of the files, over all lines.
fn add_up(lines: &str) -> Option<(u64, u64)> {
    lines.lines().try_fold((0, 0), |(resident, size), line| {
        let mut words = line.split_whitespace();
        let (one, of): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((resident + one, size + of))
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_up() {
        assert_eq!(add_up("4096 8192\n0 10\n"), Some((4096, 8202)));
        assert_eq!(add_up(""), Some((0, 0)));
        assert_eq!(add_up("RES SIZE\n"), None);
    }

    #[tokio::test]
    async fn pages_leave_the_cache_and_come_back_with_a_reader() {
        // Below the build folder: a folder for temporary files may be in memory, where nothing can be let go of.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("folder");
        let inner = folder.path().join("base/5");
        fs::create_dir_all(&inner).expect("folder");
        let file = inner.join("16384");
        fs::write(&file, vec![7; 3 << 20]).expect("written");
        fs::write(inner.join("16384.1"), vec![7; 1 << 20]).expect("written");
        let files = segments(&file);
        assert_eq!(files.len(), 2);
        assert!(share(&files).await.expect("known") > 0.99, "just written");
        drop_pages(folder.path()).expect("let go");
        assert!(share(&files).await.expect("known") < 0.01, "let go");
        fs::read(&file).expect("read by somebody");
        let again = share(&files).await.expect("known");
        assert!((0.5..1.0).contains(&again), "3 of 4 MiB: {again}");
        assert!(share(&[inner.join("none")]).await.is_err());
    }
}
