//! Memory: its size, swap space, huge pages.

use super::tree::{Tree, value_of};

/// Physical memory in bytes.
pub(super) fn total(tree: &Tree) -> Option<u64> {
    field(tree, "MemTotal")
}

/// Swap space in bytes.
pub(super) fn swap(tree: &Tree) -> Option<u64> {
    field(tree, "SwapTotal")
}

/// The mode in brackets: `always [madvise] never`.
pub(super) fn huge_pages(tree: &Tree) -> Option<String> {
    let text = tree.read("sys/kernel/mm/transparent_hugepage/enabled")?;
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

fn field(tree: &Tree, name: &str) -> Option<u64> {
    let value = value_of(&tree.read("proc/meminfo")?, name)?;
    value.strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::super::tree::made_of;
    use super::*;

    #[test]
    fn sizes_and_the_mode_are_read() {
        let (_folder, tree) = made_of(&[
            ("proc/meminfo", "MemFree: 1 kB\nMemTotal:       2048 kB\nSwapTotal: 0 kB\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ]);
        assert_eq!((total(&tree), swap(&tree)), (Some(2_097_152), Some(0)));
        assert_eq!(huge_pages(&tree), Some("madvise".to_owned()));
    }
}
