//! Files that an experiment names: `.sql` files beside it, environment files.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::model::DumpFormat;
use crate::spec::tree::Source;
use crate::spec::yaml::MAX_FILE_BYTES;

/// Environments that come with loadlab, for experiments outside of its folder.
const BUILT_IN: [(&str, &str); 4] = [
    ("postgres", include_str!("../../environments/postgres.yaml")),
    ("postgres-15", include_str!("../../environments/postgres-15.yaml")),
    ("postgres-17", include_str!("../../environments/postgres-17.yaml")),
    ("postgres-18", include_str!("../../environments/postgres-18.yaml")),
];

/// A file cannot be used; message and hint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FileProblem {
    /// What is wrong, the file's name in it.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl FileProblem {
    /// A message with the file's name in it; an empty hint is none.
    pub fn new(message: impl Into<String>, hint: &str) -> Self {
        Self { message: message.into(), hint: (!hint.is_empty()).then(|| hint.to_owned()) }
    }
}

/// Reads and remembers the files of one experiment.
#[derive(Debug)]
pub struct Files {
    /// Folder of the experiment file.
    folder: PathBuf,
    /// Where environments are looked for, in this order.
    environments: Vec<PathBuf>,
    read: Mutex<BTreeMap<String, Result<Arc<Source>, FileProblem>>>,
}

impl Files {
    /// For an experiment file; `environments` replaces the usual places.
    pub fn new(experiment: &Path, environments: Option<&Path>) -> Self {
        let folder = experiment.parent().unwrap_or(Path::new("")).to_owned();
        // `experiments/../environments`, written as people would.
        let beside = match folder.components().next_back() {
            Some(Component::Normal(_)) => folder.with_file_name("environments"),
            _ => folder.join("../environments"),
        };
        let usual = || vec![beside, PathBuf::from("environments")];
        let environments = environments.map_or_else(usual, |path| vec![path.to_owned()]);
        Self { environments, folder, read: Mutex::default() }
    }

    /// A `.sql` file beside the experiment or in a folder below.
    ///
    /// # Errors
    /// When it is elsewhere, missing, too large or not text.
    pub fn sql(&self, name: &str) -> Result<Arc<Source>, FileProblem> {
        self.once(&format!("sql {name}"), || {
            let relative = Path::new(name);
            let inside =
                relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
            if !inside {
                return Err(FileProblem::new(
                    format!("`{name}` is outside of the experiment's folder"),
                    "name a file beside the experiment or in a folder below it, without `..`",
                ));
            }
            let path = self.folder.join(relative);
            let real = path.canonicalize().ok();
            let base = if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder };
            if let (Some(real), Ok(base)) = (real, base.canonicalize())
                && !real.starts_with(base)
            {
                let message = format!("`{name}` is a link out of the experiment's folder");
                return Err(FileProblem::new(message, "copy the file into the folder"));
            }
            read(&path)
        })
    }

    /// A dump at a path from the experiment's folder, absolute too: where it is, and its format.
    ///
    /// # Errors
    /// When there is none.
    pub fn dump(&self, name: &str) -> Result<(PathBuf, DumpFormat), FileProblem> {
        let path = self.folder.join(name);
        let missing = |what: &str| {
            FileProblem::new(
                format!("`{name}` is {what}"),
                "name a `dump` step, or a dump that pg_dump has written",
            )
        };
        let path = std::path::absolute(&path).map_err(|_| missing("no path"))?;
        if path.is_dir() {
            let whole = path.join("toc.dat").is_file();
            return if whole {
                Ok((path, DumpFormat::Directory))
            } else {
                Err(missing("a folder without a dump"))
            };
        }
        let mut start = Vec::new();
        let read = std::fs::File::open(&path).and_then(|file| file.take(5).read_to_end(&mut start));
        match read {
            Ok(_) if start == b"PGDMP" => Ok((path, DumpFormat::Custom)),
            Ok(_) => Ok((path, DumpFormat::Plain)),
            Err(_) => Err(missing("neither a `dump` step before this one nor a dump here")),
        }
    }

    /// An environment file: from the folders, else the one built in.
    ///
    /// # Errors
    /// When there is none of this name, with those that exist.
    pub fn environment(&self, name: &str) -> Result<Arc<Source>, FileProblem> {
        self.once(&format!("environment {name}"), || {
            let slug = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
            if !slug || name.starts_with('.') || name.is_empty() {
                return Err(FileProblem::new(
                    format!("`{name}` is not the name of an environment"),
                    "write the name of a file in `environments/`, without folder and `.yaml`",
                ));
            }
            let file = format!("{name}.yaml");
            if let Some(path) =
                self.environments.iter().map(|folder| folder.join(&file)).find(|path| path.is_file())
            {
                return read(&path);
            }
            if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
                let name = format!("environments/{file} (built in)");
                return Ok(Arc::new(Source { name, text: (*text).to_owned() }));
            }
            let known = self.environment_names();
            let hint = crate::spec::suggest::did_you_mean(name, known.iter().map(String::as_str));
            let list = crate::spec::suggest::one_of(known.iter().map(String::as_str));
            let message =
                format!("there is no environment `{name}`; there are {}", list.replace(" or ", " and "));
            Err(FileProblem { message, hint })
        })
    }

    /// Names of all environments that can be used.
    pub fn environment_names(&self) -> Vec<String> {
        let mut names: Vec<String> = BUILT_IN.iter().map(|(name, _)| (*name).to_owned()).collect();
        for folder in &self.environments {
            let entries = folder.read_dir().into_iter().flatten().flatten();
            names.extend(entries.filter_map(|entry| {
                let path = entry.path();
                let is_yaml = path.extension().is_some_and(|extension| extension == "yaml");
                path.file_stem().filter(|_| is_yaml).map(|stem| stem.to_string_lossy().into_owned())
            }));
        }
        names.sort();
        names.dedup();
        names
    }

    /// All files that were read so far, by kind and name, for the experiment's hash.
    pub fn used(&self) -> Vec<(String, Arc<Source>)> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.iter()
            .filter_map(|(key, source)| Some((key.clone(), Arc::clone(source.as_ref().ok()?))))
            .collect()
    }

    fn once(
        &self,
        key: &str,
        make: impl FnOnce() -> Result<Arc<Source>, FileProblem>,
    ) -> Result<Arc<Source>, FileProblem> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.entry(key.to_owned()).or_insert_with(make).clone()
    }
}

/// Reads a text file of at most 1 MiB.
///
/// # Errors
/// When it is missing, larger, or not UTF-8.
pub fn read(path: &Path) -> Result<Arc<Source>, FileProblem> {
    let name = path.display().to_string();
    let problem = |error: &std::io::Error| FileProblem::new(format!("cannot read `{name}`: {error}"), "");
    let size = path.metadata().map_err(|error| problem(&error))?;
    if !size.is_file() {
        return Err(FileProblem::new(
            format!("`{name}` is not a file"),
            "name a file, not a folder or device",
        ));
    }
    if size.len() > MAX_FILE_BYTES {
        return Err(FileProblem::new(
            format!("`{name}` is larger than 1 MiB"),
            "put data into tables, not into SQL or YAML",
        ));
    }
    let bytes = std::fs::read(path).map_err(|error| problem(&error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        FileProblem::new(
            format!("`{name}` is not UTF-8 text (byte {})", error.utf8_error().valid_up_to()),
            "save it as UTF-8",
        )
    })?;
    Ok(Arc::new(Source { name, text }))
}

/// Whether a text value names a `.sql` file rather than being SQL.
#[must_use]
pub fn is_sql_file(text: &str) -> bool {
    let text = text.trim();
    Path::new(text).extension().is_some_and(|extension| extension == "sql")
        && !text.contains(['\n', ';', '('])
        && text.split_whitespace().count() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_outside_of_the_folder_are_refused() {
        let files = Files::new(Path::new("experiments/x.yaml"), None);
        for name in ["../secret.sql", "/etc/secret.sql", "sql/../../x.sql"] {
            assert!(files.sql(name).is_err_and(|problem| problem.message.contains("outside")), "{name}");
        }
        assert_eq!(files.environments[0], Path::new("environments"));
        assert!(files.environment("../x").is_err());
        assert!(files.environment("postgres").is_ok());
        assert!(files.environment("postgers").is_err_and(|problem| problem.hint.is_some()));
        assert!(is_sql_file("sql/x.sql") && !is_sql_file("SELECT 1; -- x.sql"));
    }
}
