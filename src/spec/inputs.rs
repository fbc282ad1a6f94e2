//! The files that shape an experiment, with the places in which a copy of them gives the same experiment.
//!
//! The experiment's folder becomes `experiments/` and the folder of environment files `environments/` beside it, which
//! is where environments are looked for: an experiment loads from such a copy unchanged.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::model::{Command, DumpSource, StepKind};
use crate::spec::design::treatments;
use crate::spec::diagnostic::Diagnostics;
use crate::spec::experiment::Spec;
use crate::spec::tree::{Node, Source};

/// Folder of the experiment file in a copy.
const EXPERIMENTS: &str = "experiments";
/// Treatments that are asked for dumps and programs.
const MOST_TREATMENTS: usize = 4096;

/// A file that shapes an experiment.
#[derive(Debug, Clone)]
pub struct InputFile {
    /// Its place in a copy, `experiments/sql/x.sql`; `None` when a copy cannot have it at the place where the
    /// experiment looks for it.
    pub place: Option<String>,
    /// Last part of its name.
    pub file: String,
    /// What is in it.
    pub content: InputContent,
}

/// What is in a file.
#[derive(Debug, Clone)]
pub enum InputContent {
    /// Text that was read already; experiments, environments and SQL.
    Text(Arc<Source>),
    /// A file that may be large.
    File(PathBuf),
    /// A folder in which a program works; its files are found by name only.
    Folder,
}

impl InputFile {
    /// Size in bytes and SHA-256.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn digest(&self) -> io::Result<(u64, String)> {
        let mut hash = Sha256::new();
        let mut bytes = 0;
        match &self.content {
            InputContent::Text(source) => {
                hash.update(&source.text);
                bytes = source.text.len() as u64;
            }
            InputContent::File(path) => {
                let mut file = File::open(path)?;
                let mut part = vec![0; 1 << 16];
                loop {
                    match file.read(&mut part)? {
                        0 => break,
                        read => {
                            hash.update(&part[..read]);
                            bytes += read as u64;
                        }
                    }
                }
            }
            InputContent::Folder => return Ok((0, String::new())),
        }
        Ok((bytes, hex(&hash.finalize())))
    }

    /// Whether it may be started as a program.
    #[must_use]
    pub fn is_executable(&self) -> bool {
        use std::os::unix::fs::PermissionsExt as _;
        let InputContent::File(path) = &self.content else { return false };
        fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
    }

    /// All of it.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        match &self.content {
            InputContent::Text(source) => Ok(source.text.clone().into_bytes()),
            InputContent::File(path) => fs::read(path),
            InputContent::Folder => Ok(Vec::new()),
        }
    }
}

impl Spec {
    /// Names of the file's profiles.
    #[must_use]
    pub fn profiles(&self) -> Vec<String> {
        let profiles = self.tree.get("profiles").map(Node::entries).unwrap_or_default();
        profiles.iter().map(|(key, _)| key.text.clone()).collect()
    }

    /// Every file that shapes the experiment, sorted by place: the experiment file, environments, SQL, rows, dumps,
    /// and files below the experiment's folder that a command names as a word of its own or behind a `=`. What a
    /// program reads without being told on its command line is not known.
    ///
    /// # Errors
    /// What is wrong with a treatment.
    pub fn inputs(&self) -> Result<Vec<InputFile>, Diagnostics> {
        let mut found = Found::default();
        let own = Source { name: String::new(), text: self.source_text.clone() };
        let name = self.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        found.add(&name, InputContent::Text(Arc::new(own)));
        if ["restore", "command"].iter().any(|kind| has_step(&self.tree, kind)) {
            for treatment in treatments(&self.design).take(MOST_TREATMENTS) {
                for step in self.bind(&treatment)?.steps {
                    match &step.kind {
                        StepKind::Restore(restore) => found.dump(&restore.from),
                        StepKind::Command(command) => found.command(command, self.folder()),
                        _ => {}
                    }
                }
            }
        }
        for name in self.rows.named() {
            found.add(&name, InputContent::File(self.folder().join(&name)));
        }
        for (key, source) in self.files.used() {
            match key.split_once(' ') {
                Some(("environment", name)) => {
                    found.put(format!("environments/{name}.yaml"), InputContent::Text(source));
                }
                Some((_, name)) => found.add(name, InputContent::Text(source)),
                None => {}
            }
        }
        Ok(found.0.into_values().collect())
    }
}

/// Files by place; those without a place by what is written.
#[derive(Default)]
struct Found(BTreeMap<String, InputFile>);

impl Found {
    fn put(&mut self, place: String, content: InputContent) {
        let file = place.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
        self.0.insert(place.clone(), InputFile { place: Some(place), file, content });
    }

    /// A file at a path from the experiment's folder.
    fn add(&mut self, name: &str, content: InputContent) {
        if let Some(place) = place(name) {
            self.put(place, content);
        } else {
            let file = Path::new(name).file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.0.insert(format!("~{name}"), InputFile { place: None, file, content });
        }
    }

    fn dump(&mut self, from: &DumpSource) {
        let DumpSource::Path { name, path } = from else { return };
        if !path.is_dir() {
            return self.add(name, InputContent::File(path.clone()));
        }
        // A dump in a folder has no folders in it.
        for entry in path.read_dir().into_iter().flatten().flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            self.add(&format!("{}/{file}", name.trim_end_matches('/')), InputContent::File(entry.path()));
        }
    }

    fn command(&mut self, command: &Command, folder: &Path) {
        if let Some(place) = place(&command.folder).filter(|_| command.folder != ".") {
            self.put(format!("{place}/"), InputContent::Folder);
        }
        for word in &command.run {
            let behind = word.split_once('=').map(|(_, value)| value);
            for name in [Some(word.as_str()), behind].into_iter().flatten() {
                let name = format!("{}/{name}", command.folder);
                let inside = place(&name).is_some_and(|place| place.starts_with("experiments/"));
                if inside && folder.join(&name).is_file() {
                    self.add(&name, InputContent::File(folder.join(&name)));
                }
            }
        }
    }
}

/// The place in a copy of what a path from the experiment's folder means; `None` for an absolute path and for one that
/// leaves the folder above.
fn place(name: &str) -> Option<String> {
    let mut parts = vec![EXPERIMENTS];
    for part in Path::new(name).components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (parts.len() > 1).then(|| parts.join("/"))
}

fn has_step(tree: &Node, kind: &str) -> bool {
    let steps = tree.get("steps").map(Node::items).unwrap_or_default();
    steps.iter().any(|step| step.get(kind).is_some())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::load::{LoadOptions, load};

    #[test]
    fn places_keep_the_way_from_the_experiment_to_the_file() {
        for (name, at) in [
            ("sql/x.sql", Some("experiments/sql/x.sql")),
            ("./data/../x.csv", Some("experiments/x.csv")),
            ("../dumps/a", Some("dumps/a")),
            ("../../elsewhere/a", None),
            ("/tmp/a", None),
            ("..", None),
        ] {
            assert_eq!(place(name).as_deref(), at, "{name}");
        }
    }

    #[test]
    fn an_experiment_loads_from_a_copy_of_its_inputs() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(&path, text).expect("written");
            path
        };
        let file = write(
            "mine/x.yaml",
            "experiment: x\nquestion: Is it the same?\nenvironment: special\ndesign: {blocks: 1}\n\
             tables:\n  t: {ddl: sql/t.sql, rows: 2}\n  u: {ddl: 'CREATE TABLE u (id integer)', rows_from: {csv: data/u.csv}}\n\
             steps:\n  - create: t\n  - create: u\n  - load: {table: t, method: {copy: {}}}\n  - load: {table: u, method: {copy: {}}}\n\
             \x20 - command: {name: p, run: [sh, tools/p.sh, --file=sql/q.sql, /etc/passwd], captures: {n: {regex: '(\\d+)', unit: count}}}\n",
        );
        write("mine/sql/t.sql", "CREATE TABLE t (id integer);\n");
        write("mine/sql/q.sql", "SELECT 1;\n");
        write("mine/data/u.csv", "id\n7\n");
        write("mine/tools/p.sh", "echo 1\n");
        write("environments/special.yaml", "environment: for tests\nengine: postgres\nversions: \"14-18\"\n");
        let options = LoadOptions { cache: Some(folder.path().join("cache")), ..LoadOptions::default() };
        let spec = load(&file, &options).unwrap_or_else(|found| panic!("{found}"));
        spec.check_all().unwrap_or_else(|found| panic!("{found}"));
        let inputs = spec.inputs().unwrap_or_else(|found| panic!("{found}"));
        let places: Vec<&str> = inputs.iter().filter_map(|input| input.place.as_deref()).collect();
        assert_eq!(
            places,
            [
                "environments/special.yaml",
                "experiments/data/u.csv",
                "experiments/sql/q.sql",
                "experiments/sql/t.sql",
                "experiments/tools/p.sh",
                "experiments/x.yaml"
            ]
        );
        for input in &inputs {
            let place = input.place.as_deref().unwrap_or_default();
            let bytes = input.bytes().expect("read");
            assert_eq!(input.digest().expect("read").1, hex(&Sha256::digest(&bytes)), "{place}");
            write(&format!("copy/{place}"), &String::from_utf8(bytes).expect("text"));
        }
        let copy = load(&folder.path().join("copy/experiments/x.yaml"), &options);
        let copy = copy.unwrap_or_else(|found| panic!("{found}"));
        assert_eq!(copy.hash, spec.hash);
    }
}
