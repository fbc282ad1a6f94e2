//! The files that shaped a run: copies of them in its folder, and a place to run from that has them all.

use std::fs;
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::error::{StoreError, io};
use super::files::write_bytes;
use super::folder::StoredRun;
use super::redact::redact;
use crate::model::Input;

/// Folder of the copies in a run's folder.
const INPUTS: &str = "inputs";
/// Why a text with a password is not copied.
const SECRET: &str = "it seems to hold a password";
/// Largest copy of one file.
const MOST_BYTES: u64 = 1 << 20;
/// Largest size of all copies.
const MOST_BYTES_IN_ALL: u64 = 4 << 20;

/// Why a file of this size is not copied beside copies of `kept` bytes.
#[must_use]
pub fn too_large(bytes: u64, kept: u64) -> Option<String> {
    if bytes > MOST_BYTES {
        return Some("it is larger than 1 MiB".to_owned());
    }
    (kept + bytes > MOST_BYTES_IN_ALL).then(|| "the files of the run are larger than 4 MiB".to_owned())
}

/// Why the content of a file is not copied.
#[must_use]
pub fn secret(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    // A column of that name, or its generator, is no password.
    let lines: Vec<&str> = text.lines().filter(|line| !opens_a_list(line)).collect();
    let lines_hold_one = lines.iter().any(|line| is_pgpass(line));
    let text = lines.join("\n");
    (lines_hold_one || redact(&text) != text).then(|| SECRET.to_owned())
}

/// `password: {text: ...}` or `password:` alone: what follows is a map or list of YAML.
fn opens_a_list(line: &str) -> bool {
    let Some((key, value)) = line.split_once(':') else { return false };
    let value = value.trim();
    let is_key = key.trim().chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_key && (value.is_empty() || value.starts_with(['{', '[']))
}

/// `host:port:database:user:password`, a line of a password file.
fn is_pgpass(line: &str) -> bool {
    let fields: Vec<&str> = line.trim().split(':').collect();
    let [_, port, _, user, password] = fields[..] else { return false };
    let is_port = port == "*" || !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    is_port && !user.is_empty() && !password.is_empty() && !line.contains(' ')
}

/// Keeps the copy of a file; `name` ends with a slash for a folder.
pub(super) fn keep(run: &Path, name: &str, bytes: &[u8], executable: bool) -> Result<(), StoreError> {
    let path =
        run.join(INPUTS).join(plain(name).ok_or_else(|| StoreError::BadInput { name: name.to_owned() })?);
    if name.ends_with('/') {
        return fs::create_dir_all(&path).map_err(io("create", &path));
    }
    let folder = path.parent().unwrap_or(run);
    fs::create_dir_all(folder).map_err(io("create", folder))?;
    write_bytes(&path, bytes)?;
    if executable { allow_to_start(&path) } else { Ok(()) }
}

/// Lets a copied program be started as the original could be.
fn allow_to_start(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(io("set the rights of", path))
}

/// A temporary folder with everything that a run needs, apart from the run's own, which is evidence.
#[derive(Debug)]
pub struct Workspace {
    folder: TempDir,
    /// The experiment file.
    pub experiment: PathBuf,
    /// The folder of environment files, if the run kept any.
    pub environments: Option<PathBuf>,
}

impl Workspace {
    /// Copies the inputs of a run and checks that they are what they were. Files that the run did not keep are looked
    /// for in its `inputs/` and in `more`, by their names from the experiment's folder.
    ///
    /// # Errors
    /// Every file that is missing or is another one.
    pub fn of(run: &StoredRun, more: Option<&Path>) -> Result<Self, StoreError> {
        let making = |error| StoreError::Io { action: "make", path: std::env::temp_dir(), source: error };
        let folder = tempfile::Builder::new().prefix("loadlab-rerun-").tempdir().map_err(making)?;
        let mut problems = Vec::new();
        for input in &run.manifest.inputs {
            if let Err(problem) = place(run, input, more, folder.path())? {
                problems.push(format!("{}: {problem}", input.name));
            }
        }
        if !problems.is_empty() {
            return Err(StoreError::InputsMissing {
                path: run.path.clone(),
                problems: problems.join("\n  "),
            });
        }
        let spec = &run.manifest.spec;
        let file = plain(&spec.file).ok_or_else(|| StoreError::BadInput { name: spec.file.clone() })?;
        let experiment = folder.path().join("experiments").join(file);
        if run.manifest.inputs.is_empty() {
            // A run of an older loadlab has the experiment's text alone.
            let parent = folder.path().join("experiments");
            fs::create_dir_all(&parent).map_err(io("create", &parent))?;
            fs::write(&experiment, &spec.text).map_err(io("write", &experiment))?;
        }
        let environments = Some(folder.path().join("environments")).filter(|path| path.is_dir());
        Ok(Self { folder, experiment, environments })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Puts one file into the workspace. The inner error is for a person.
fn place(
    run: &StoredRun,
    input: &Input,
    more: Option<&Path>,
    into: &Path,
) -> Result<Result<(), String>, StoreError> {
    // A file without a place is where the experiment says, or it will say that it is not.
    let elsewhere = input.left_out.is_some() && input.name.starts_with(OUTSIDE);
    let Some(name) = plain(&input.name).filter(|_| !elsewhere) else {
        return Ok(Ok(()));
    };
    let target = into.join(name);
    if input.name.ends_with('/') {
        fs::create_dir_all(&target).map_err(io("create", &target))?;
        return Ok(Ok(()));
    }
    let mut places = vec![run.path.join(INPUTS).join(name)];
    if let Some(more) = more {
        places.push(more.join(name));
        places.extend(name.strip_prefix("experiments").ok().map(|name| more.join(name)));
    }
    let Some(source) = places.iter().find(|path| path.is_file()) else {
        return Ok(Err(match &input.left_out {
            Some(why) => format!(
                "the run holds no copy ({why}; {} bytes, sha256 {}); give the folder that has it with --inputs",
                input.bytes, input.sha256
            ),
            None => {
                "its copy is gone from the run's folder; give the folder that has it with --inputs".to_owned()
            }
        }));
    };
    let found = sha256_of(source).map_err(io("read", source))?;
    if found != input.sha256 {
        return Ok(Err(format!("this is another file: sha256 {found}, the run had {}", input.sha256)));
    }
    let parent = target.parent().unwrap_or(into);
    fs::create_dir_all(parent).map_err(io("create", parent))?;
    if input.bytes > MOST_BYTES {
        let source = std::path::absolute(source).map_err(io("find", source))?;
        std::os::unix::fs::symlink(&source, &target).map_err(io("link", &target))?;
    } else {
        fs::copy(source, &target).map_err(io("copy to", &target))?;
        if input.executable {
            allow_to_start(&target)?;
        }
    }
    Ok(Ok(()))
}

/// How the names of files begin that no copy has at the place where the experiment looks.
pub const OUTSIDE: &str = "outside/";

/// A name as a path, if it stays inside.
fn plain(name: &str) -> Option<&Path> {
    let path = Path::new(name);
    let inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    (inside && !name.is_empty()).then_some(path)
}

fn sha256_of(path: &Path) -> std::io::Result<String> {
    let mut file = fs::File::open(path)?;
    let mut hash = Sha256::new();
    let mut part = vec![0; 1 << 16];
    loop {
        match std::io::Read::read(&mut file, &mut part)? {
            0 => break,
            read => hash.update(&part[..read]),
        }
    }
    let mut text = String::with_capacity(64);
    for byte in hash.finalize() {
        use std::fmt::Write as _;
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_stay_inside_and_hold_no_password() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["../x", "/etc/x", "", "a/../../x"] {
            assert!(keep(folder.path(), name, b"x", false).is_err(), "{name}");
        }
        keep(folder.path(), "experiments/sql/x.sql", b"SELECT 1", false).unwrap();
        keep(folder.path(), "experiments/tools/", b"", false).unwrap();
        assert_eq!(fs::read(folder.path().join("inputs/experiments/sql/x.sql")).unwrap(), b"SELECT 1");
        assert!(folder.path().join("inputs/experiments/tools").is_dir());
        assert!(secret(b"CREATE ROLE me PASSWORD 'canary'").is_some());
        assert_eq!(secret(b"SELECT 1"), None);
        assert_eq!(secret(&[0xff, 0xfe]), None);
        assert!(secret(b"localhost:5432:db:me:canary\n").is_some(), "a password file");
        assert_eq!(secret(b"values:\n  password: {text: {length: 8}}\n"), None, "a column of that name");
    }

    #[test]
    fn a_copied_program_can_still_be_started() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        for (name, executable) in [("experiments/tools/bench.sh", true), ("experiments/x.sql", false)] {
            keep(folder.path(), name, b"x", executable).unwrap();
            let found = fs::metadata(folder.path().join("inputs").join(name)).unwrap();
            assert_eq!(found.permissions().mode() & 0o100 != 0, executable, "{name}");
        }
    }

    #[test]
    fn large_files_are_left_out() {
        assert_eq!(too_large(1 << 20, 0), None);
        assert!(too_large((1 << 20) + 1, 0).unwrap().contains("1 MiB"));
        assert!(too_large(1 << 20, 7 << 19).unwrap().contains("4 MiB"));
    }
}
