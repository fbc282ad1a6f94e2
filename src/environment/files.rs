//! Files and folders of loadlab's cache: names, removal, copies, and what lies below a path.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use crate::environment::EnvironmentError;

/// Longest path of a unix socket in bytes (`sun_path` less its closing zero byte, on Linux).
const SOCKET_PATH_LIMIT: usize = 107;

/// Turns an I/O error into an [`EnvironmentError`] that says what was tried.
pub(crate) fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> EnvironmentError {
    let what = what.into();
    move |source| EnvironmentError::Io { what, source }
}

/// Random letters and digits, two per byte.
pub(crate) fn random_hex(bytes: usize) -> Result<String, EnvironmentError> {
    let mut buffer = vec![0; bytes];
    getrandom::fill(&mut buffer)
        .map_err(|error| failed("reading random bytes of the system")(io::Error::other(error)))?;
    Ok(hex(&buffer))
}

/// Bytes as lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        .map(char::from)
        .collect()
}

/// Makes a folder (and its parents) unless it is there.
pub(crate) fn ensure_folder(path: &Path) -> Result<(), EnvironmentError> {
    fs::create_dir_all(path).map_err(failed(format!("{}: making the folder", path.display())))
}

/// Makes a folder that is not there yet, with a mode and, when given, an owner (uid, gid).
pub(crate) fn new_folder(path: &Path, mode: u32, owner: Option<(u32, u32)>) -> Result<(), EnvironmentError> {
    let what = || failed(format!("{}: making the folder", path.display()));
    fs::DirBuilder::new().mode(mode).create(path).map_err(what())?;
    // The umask may have taken bits away.
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(what())?;
    if let Some((uid, gid)) = owner {
        chown(path, Some(uid), Some(gid)).map_err(what())?;
    }
    Ok(())
}

/// Removes a file, a symbolic link (never what it points to) or a whole folder; nothing there is fine.
/// Folders are made accessible first: overlayfs leaves its work folder with mode 000.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(metadata) if !metadata.is_dir() => fs::remove_file(path),
        Ok(_) => match fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                make_accessible(path)?;
                fs::remove_dir_all(path)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        },
    }
}

fn make_accessible(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_accessible(&entry.path())?;
        }
    }
    Ok(())
}

/// Copies a folder with modes and symbolic links. Where the file system can share blocks, `fs::copy` does.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    fs::set_permissions(to, fs::metadata(from)?.permissions())
}

/// Gives a folder and everything below it to a user.
pub(crate) fn give_to(path: &Path, owner: (u32, u32)) -> io::Result<()> {
    std::os::unix::fs::lchown(path, Some(owner.0), Some(owner.1))?;
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            give_to(&entry?.path(), owner)?;
        }
    }
    Ok(())
}

/// Whether a server can put its socket into a folder: the path is short enough and needs no quoting
/// in the list `unix_socket_directories`.
pub(crate) fn holds_socket(folder: &Path, port: u16) -> bool {
    let bytes = folder.as_os_str().as_bytes();
    let socket = bytes.len() + format!("/.s.PGSQL.{port}").len();
    socket <= SOCKET_PATH_LIMIT && !bytes.iter().any(|byte| matches!(byte, b',' | b'"'))
}

/// Free bytes for an unprivileged user on the file system of a path.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    let facts = nix::sys::statvfs::statvfs(path).ok()?;
    Some(facts.blocks_available() as u64 * facts.fragment_size() as u64)
}

/// Type of the file system that holds a path, such as `ext4`; `unknown` where `/proc/mounts` is missing.
pub(crate) fn file_system(path: &Path) -> String {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    file_system_in(&mounts, &path).unwrap_or_else(|| "unknown".to_owned())
}

fn file_system_in(mounts: &str, path: &Path) -> Option<String> {
    let mut best: Option<(usize, &str)> = None;
    for line in mounts.lines() {
        let mut words = line.split(' ').skip(1);
        let (Some(point), Some(kind)) = (words.next(), words.next()) else { continue };
        let point = PathBuf::from(point.replace("\\040", " "));
        let depth = point.components().count();
        // A later line covers an earlier one at the same place.
        if path.starts_with(&point) && best.is_none_or(|(known, _)| depth >= known) {
            best = Some((depth, kind));
        }
    }
    best.map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_names_the_file_system() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /dev tmpfs rw 0 0\n/dev/vdb /data\\040x xfs rw 0 0\n";
        assert_eq!(file_system_in(mounts, Path::new("/var/cache")).as_deref(), Some("ext4"));
        assert_eq!(file_system_in(mounts, Path::new("/data x/y")).as_deref(), Some("xfs"));
        assert_eq!(file_system_in("", Path::new("/")), None);
    }

    #[test]
    fn socket_folders_are_short_and_plain() {
        assert!(holds_socket(Path::new("/tmp/a"), 5432));
        assert!(!holds_socket(Path::new("/tmp/a,b"), 5432));
        let exact = format!("/{}", "x".repeat(107 - 15));
        assert!(holds_socket(Path::new(&exact), 5432), "{}", exact.len());
        assert!(!holds_socket(Path::new(&format!("{exact}x")), 5432));
    }

    #[test]
    fn a_tree_with_closed_folders_is_removed_and_links_are_not_followed() {
        let root = tempfile::tempdir().expect("temporary folder");
        let foreign = root.path().join("foreign");
        fs::create_dir_all(foreign.join("kept")).expect("folder");
        let ours = root.path().join("ours");
        fs::create_dir_all(ours.join("work/work")).expect("folder");
        std::os::unix::fs::symlink(&foreign, ours.join("link")).expect("link");
        fs::set_permissions(ours.join("work/work"), fs::Permissions::from_mode(0o000)).expect("mode");
        remove_tree(&ours).expect("removed");
        remove_tree(&ours).expect("nothing there is fine");
        assert!(!ours.exists());
        assert!(foreign.join("kept").exists());
    }

    #[test]
    fn copies_keep_modes_and_links() {
        let root = tempfile::tempdir().expect("temporary folder");
        let from = root.path().join("from");
        fs::create_dir_all(from.join("sub")).expect("folder");
        fs::write(from.join("sub/file"), "x").expect("file");
        fs::set_permissions(from.join("sub"), fs::Permissions::from_mode(0o700)).expect("mode");
        std::os::unix::fs::symlink("sub/file", from.join("link")).expect("link");
        let to = root.path().join("to");
        copy_tree(&from, &to).expect("copied");
        assert_eq!(fs::metadata(to.join("sub")).expect("folder").permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_to_string(to.join("link")).expect("file"), "x");
    }

    #[test]
    fn hex_has_two_digits_per_byte() {
        assert_eq!(hex(&[0, 0x1f, 0xff]), "001fff");
        assert_eq!(random_hex(16).expect("random").len(), 32);
    }
}
