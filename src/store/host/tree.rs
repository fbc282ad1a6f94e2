//! The files that the kernel shows about a machine, below `/` or, in tests, below a folder of copies.

use std::fs;
use std::path::{Path, PathBuf};

/// Where they are.
#[derive(Debug, Clone)]
pub(super) struct Tree(PathBuf);

impl Tree {
    /// Those of this machine.
    pub(super) fn machine() -> Self {
        Self(PathBuf::from("/"))
    }

    #[cfg(test)]
    pub(super) fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// Whether there are such files at all.
    pub(super) fn is_linux(&self) -> bool {
        self.exists("proc/self")
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.0.join(path).exists()
    }

    /// A file's text without white space around it; `None` where it cannot be read.
    pub(super) fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.0.join(path)).ok().map(|text| text.trim().to_owned())
    }

    /// Names in a folder, sorted; empty where it cannot be read.
    pub(super) fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    /// A path with all links followed.
    pub(super) fn resolve(&self, path: &str) -> Option<PathBuf> {
        fs::canonicalize(self.0.join(path)).ok()
    }
}

/// The value of the first `name : value` line.
pub(super) fn value_of(text: &str, name: &str) -> Option<String> {
    let (_, value) =
        text.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == name)?;
    Some(value.trim().to_owned())
}

/// A machine of files, for tests.
#[cfg(test)]
pub(super) fn made_of(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
    let folder = tempfile::tempdir().expect("folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folder");
        fs::write(path, text).expect("file");
    }
    let tree = Tree::at(folder.path());
    (folder, tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_a_colon_are_read() {
        assert_eq!(value_of("x\nmodel name\t: A B\n", "model name"), Some("A B".to_owned()));
        assert_eq!(value_of("x\n", "model name"), None);
    }
}
