//! What lies below a folder: file system and block device, by kind, never by name or number.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::tree::Tree;
use crate::model::Backend;

/// What the data of a backend's servers lie on. `None`: not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Whose data: those of local servers, or of containers.
    pub backend: Backend,
    /// Kind of the file system.
    pub filesystem: Option<String>,
    /// Family of the device: `nvme`, `virtio`, `scsi`, `mmc`, `mapped` for volumes and encryption, `loop`, ...
    pub kind: Option<String>,
    /// Whether it is said to have turning parts.
    pub rotational: Option<bool>,
    /// `write back` when the device keeps writes in a cache of its own, `write through` when it does not.
    pub write_cache: Option<String>,
}

/// Families of devices by the beginning of their names.
const KINDS: [(&str, &str); 10] = [
    ("nvme", "nvme"),
    ("vd", "virtio"),
    ("sd", "scsi"),
    ("mmcblk", "mmc"),
    ("dm-", "mapped"),
    ("md", "raid"),
    ("loop", "loop"),
    ("xvd", "xen"),
    ("zram", "memory"),
    ("ram", "memory"),
];

impl DeviceFacts {
    /// What lies below a folder, or below the nearest folder above it that is there.
    #[must_use]
    pub fn below(folder: &Path, backend: Backend) -> Self {
        Self::of(&Tree::machine(), folder, backend)
    }

    fn of(tree: &Tree, folder: &Path, backend: Backend) -> Self {
        let there = folder.ancestors().find(|folder| folder.is_dir());
        let queue = there.and_then(|folder| queue(tree, folder));
        let fact = |file: &str| tree.read(queue.as_ref()?.join("queue").join(file));
        let name = queue.as_ref().and_then(|device| device.file_name()?.to_str().map(str::to_owned));
        Self {
            backend,
            filesystem: there.and_then(|folder| filesystem(tree, folder)),
            kind: name.map(|name| family(&name)),
            rotational: fact("rotational").map(|flag| flag == "1"),
            write_cache: fact("write_cache"),
        }
    }
}

/// The kernel's folder of the whole device below a folder. A file system of its own making has no device number; then its mount
/// may name one.
fn queue(tree: &Tree, folder: &Path) -> Option<PathBuf> {
    let number = fs::metadata(folder).ok()?.dev();
    let device = device_folder(tree, number).or_else(|| {
        let source = mount(&tree.read("proc/self/mounts")?, &fs::canonicalize(folder).ok()?)?.source;
        device_folder(tree, fs::metadata(source).ok()?.rdev())
    })?;
    // A partition has its queue one level up.
    device.ancestors().take(2).find(|folder| folder.join("queue").is_dir()).map(Path::to_owned)
}

fn device_folder(tree: &Tree, number: u64) -> Option<PathBuf> {
    let (major, minor) = numbers(number);
    tree.resolve(&format!("sys/dev/block/{major}:{minor}"))
}

/// Major and minor number as Linux puts them together (makedev(3)).
fn numbers(device: u64) -> (u64, u64) {
    let major = (device >> 8) & 0xfff | (device >> 32) & !0xfff;
    let minor = device & 0xff | (device >> 12) & !0xff;
    (major & 0xffff_ffff, minor & 0xffff_ffff)
}

fn family(name: &str) -> String {
    let known = KINDS.iter().find(|(prefix, _)| name.starts_with(prefix));
    known.map_or("other", |(_, kind)| kind).to_owned()
}

/// Kind of the file system of a folder.
pub(super) fn filesystem(tree: &Tree, folder: &Path) -> Option<String> {
    Some(mount(&tree.read("proc/self/mounts")?, &fs::canonicalize(folder).ok()?)?.kind)
}

/// A line of the table of mounts.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    source: String,
    kind: String,
}

/// The mount with the longest matching path; later mounts cover earlier ones.
fn mount(mounts: &str, folder: &Path) -> Option<Mount> {
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let under =
        fields.filter(|fields| fields.len() > 2 && folder.starts_with(fields[1].replace("\\040", " ")));
    let found = under.max_by_key(|fields| fields[1].len())?;
    Some(Mount { source: found[0].to_owned(), kind: found[2].to_owned() })
}

#[cfg(test)]
mod tests {
    use super::super::tree::made_of;
    use super::*;

    #[test]
    fn the_nearest_mount_counts() {
        let mounts = "overlay / overlay rw 0 0\n/dev/a /data ext4 rw 0 0\n/dev/b /dat xfs rw 0 0\n";
        let kind = |folder| mount(mounts, Path::new(folder)).map(|mount| mount.kind);
        assert_eq!(kind("/data/results"), Some("ext4".to_owned()));
        assert_eq!(kind("/home"), Some("overlay".to_owned()));
    }

    #[test]
    fn numbers_of_devices_are_taken_apart() {
        assert_eq!(numbers(65024), (254, 0));
        assert_eq!(numbers(0x0000_0103_0000_0005 & 0xffff_ffff), (0, 5));
        assert_eq!(numbers((259 << 8) | 5), (259, 5));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_partition_is_described_by_its_disk() {
        let folder = tempfile::tempdir().expect("folder");
        let (major, minor) = numbers(fs::metadata(folder.path()).expect("metadata").dev());
        let (root, tree) = made_of(&[
            ("sys/devices/nvme0n1/queue/rotational", "0\n"),
            ("sys/devices/nvme0n1/queue/write_cache", "write back\n"),
            ("sys/devices/nvme0n1/nvme0n1p2/partition", "2\n"),
            ("sys/dev/block/none", ""),
        ]);
        let root = root.path();
        std::os::unix::fs::symlink(
            root.join("sys/devices/nvme0n1/nvme0n1p2"),
            root.join(format!("sys/dev/block/{major}:{minor}")),
        )
        .expect("link");
        let facts = DeviceFacts::of(&tree, &folder.path().join("not/there/yet"), Backend::Local);
        let expected = DeviceFacts {
            backend: Backend::Local,
            filesystem: None,
            kind: Some("nvme".to_owned()),
            rotational: Some(false),
            write_cache: Some("write back".to_owned()),
        };
        assert_eq!(facts, expected);
    }

    #[test]
    fn families_are_coarse() {
        for (name, kind) in
            [("vda", "virtio"), ("sdb", "scsi"), ("dm-0", "mapped"), ("xvda", "xen"), ("q", "other")]
        {
            assert_eq!(family(name), kind);
        }
    }
}
