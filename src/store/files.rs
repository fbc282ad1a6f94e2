//! Files that are either whole or not there.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::error::{StoreError, io};

/// Ending of files that are being written; with the leading dot no glob over results sees them.
const TEMPORARY: &str = ".tmp";

/// Whether files can be made in a folder; leaves nothing behind.
///
/// # Errors
/// Why not.
pub fn can_write(folder: &Path) -> std::io::Result<()> {
    tempfile::tempfile_in(folder).map(drop)
}

/// Name under which `path` is written before it is whole.
pub(super) fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}{TEMPORARY}"))
}

/// Writes a file so that its final name never shows anything but the whole old or the whole new content:
/// temporary name in the same folder, sync, rename, sync of the folder.
pub(super) fn write_whole(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let temporary = temporary(path);
    let outcome = (|| {
        let mut partial = File::create(&temporary).map_err(io("create", &temporary))?;
        fill(&mut partial)?;
        partial.sync_all().map_err(io("sync", &temporary))?;
        fs::rename(&temporary, path).map_err(io("rename into place", path))
    })();
    if outcome.is_err() {
        // The first error is the one to tell; what is left here is removed at the next start as well.
        let _ = fs::remove_file(&temporary);
    }
    outcome?;
    sync_folder(path.parent().unwrap_or(Path::new(".")))
}

/// Writes bytes with [`write_whole`].
pub(super) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    write_whole(path, |file| file.write_all(bytes).map_err(io("write", path)))
}

/// Makes renames and new files in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(io("sync", folder))
}

/// Removes what an interrupted write left, and names it.
pub(super) fn remove_leftovers(folder: &Path) -> Result<Vec<String>, StoreError> {
    let mut removed = Vec::new();
    for entry in fs::read_dir(folder).map_err(io("read", folder))? {
        let entry = entry.map_err(io("read", folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') && name.ends_with(TEMPORARY) {
            fs::remove_file(entry.path()).map_err(io("remove", &entry.path()))?;
            removed.push(name);
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_content_and_no_leftover() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        write_bytes(&path, b"old").unwrap();
        let failed = write_whole(&path, |file| {
            file.write_all(b"ne").unwrap();
            Err(StoreError::DiskFull { path: path.clone(), kept: false })
        });
        assert!(failed.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn leftovers_are_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".measurements.parquet.tmp"), b"PAR1").unwrap();
        fs::write(folder.path().join("mine.tmp"), b"x").unwrap();
        assert_eq!(remove_leftovers(folder.path()).unwrap(), [".measurements.parquet.tmp"]);
        assert!(folder.path().join("mine.tmp").exists());
    }
}
