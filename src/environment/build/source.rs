//! The source of PostgreSQL for a build: the distribution's source package, or a folder that the user names.
//!
//! apt works in a folder of ours, with source lines made from the machine's own package lines: nothing of the
//! system's state is read or changed, and no right is needed for it.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::words_of;
use crate::environment::EnvironmentError;
use crate::environment::account::{on_path, run};
use crate::environment::files::{ensure_folder, failed};

/// Longest time of one call of apt or tar.
const DEADLINE: Duration = Duration::from_mins(10);
/// Majors whose source packages are looked for when none is named, best first.
const MAJORS: [&str; 5] = ["18", "17", "16", "15", "14"];

/// A source tree that has not been configured in place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SourceTree {
    pub(super) folder: PathBuf,
    /// Such as `15.18`.
    pub(super) version: String,
}

/// A folder that the user names.
///
/// # Errors
/// When it is no source of PostgreSQL, was configured in place, or is of another version than asked for.
pub(super) fn named(folder: &Path, version: Option<&str>) -> Result<SourceTree, EnvironmentError> {
    let folder = fs::canonicalize(folder)
        .map_err(|error| unusable(folder, &error.to_string(), "name a folder that is there with --source"))?;
    let tree = look_at(&folder)?;
    match version.filter(|wanted| !fits(&tree.version, wanted)) {
        Some(wanted) => Err(unusable(
            &folder,
            &format!("it is PostgreSQL {}, not {wanted}", tree.version),
            "leave --version out, or name another folder",
        )),
        None => Ok(tree),
    }
}

fn look_at(folder: &Path) -> Result<SourceTree, EnvironmentError> {
    let script = fs::read_to_string(folder.join("configure")).unwrap_or_default();
    let value = |name: &str| {
        let line = script.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
        Some(line.trim_matches(['\'', '"']).to_owned())
    };
    let version = value("PACKAGE_VERSION").filter(|_| value("PACKAGE_NAME").as_deref() == Some("PostgreSQL"));
    let Some(version) = version else {
        let why = "it is no source of PostgreSQL: there is no `configure` of it";
        return Err(unusable(folder, why, "name the folder that a release's archive unpacks to"));
    };
    if folder.join("src/include/pg_config.h").exists() {
        let why = "it was configured in place, which would be mixed up with this build";
        return Err(unusable(folder, why, "run `make distclean` there, or unpack the archive once more"));
    }
    Ok(SourceTree { folder: folder.to_owned(), version })
}

/// `15.18` fits `15` and `15.18`, but not `15.1`.
fn fits(version: &str, wanted: &str) -> bool {
    version.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn unusable(folder: &Path, why: &str, remedy: &str) -> EnvironmentError {
    EnvironmentError::Unavailable {
        reason: format!("{}: {why}", folder.display()),
        remedy: remedy.to_owned(),
    }
}

/// Fetches the distribution's source package into `folder` and unpacks it.
///
/// # Errors
/// Without apt, without a package of the version, or when it cannot be fetched: each with the words of apt.
pub(super) async fn fetched(
    folder: &Path,
    version: Option<&str>,
    progress: &dyn Fn(&str),
) -> Result<SourceTree, EnvironmentError> {
    if on_path("apt-get").is_none() || on_path("apt-cache").is_none() {
        return Err(no_source("this system has no apt to fetch a source package with".to_owned()));
    }
    let apt = Apt::new(folder, Path::new("/etc/apt"))?;
    progress("fetching the list of source packages");
    let updated = apt.run("apt-get", &["--quiet", "update"]).await;
    let candidates = apt.candidates(version).await;
    if candidates.is_empty() {
        let wanted =
            version.map_or_else(|| "PostgreSQL 14 to 18".to_owned(), |it| format!("PostgreSQL {it}"));
        let why = updated.err().map(|why| format!("\n  apt: {why}")).unwrap_or_default();
        return Err(no_source(format!("the distribution has no source package of {wanted}{why}")));
    }
    let mut reasons = String::new();
    for package in candidates {
        progress(&format!("fetching source package {package}"));
        match apt.run("apt-get", &["--quiet", "--download-only", "source", &package]).await {
            Ok(_) => return unpacked(folder).await,
            Err(why) => drop(write!(reasons, "\n  {package}: {why}")),
        }
    }
    Err(no_source(format!("no source package could be fetched:{reasons}")))
}

fn no_source(reason: String) -> EnvironmentError {
    EnvironmentError::Unavailable {
        reason,
        remedy: "unpack the archive of a release from postgresql.org and name its folder with --source"
            .to_owned(),
    }
}

/// Unpacks the upstream archive that lies in the folder.
async fn unpacked(folder: &Path) -> Result<SourceTree, EnvironmentError> {
    let names = fs::read_dir(folder).map_err(failed(format!("{}: listing", folder.display())))?;
    let mut names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let archive = names.find(|name| name.contains(".orig.tar."));
    let archive = archive.ok_or_else(|| no_source("the source package holds no archive".to_owned()))?;
    let target = folder.join("source");
    ensure_folder(&target)?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--no-same-owner", "--strip-components=1", "--file"]).arg(folder.join(&archive));
    tar.arg("--directory").arg(&target);
    let output = run(tar, DEADLINE).await.map_err(failed("running tar"))?;
    if !output.status.success() {
        return Err(no_source(format!("{archive} cannot be unpacked: {}", words_of(&output))));
    }
    look_at(&target)
}

/// apt with lists and archives in a folder of ours.
struct Apt {
    folder: PathBuf,
    options: Vec<OsString>,
}

impl Apt {
    fn new(folder: &Path, configuration: &Path) -> Result<Self, EnvironmentError> {
        let mut options = Vec::new();
        let places =
            [("Dir::Etc::SourceParts", "parts"), ("Dir::State::Lists", "lists"), ("Dir::Cache", "archives")];
        for (name, below) in places {
            let path = folder.join(below);
            ensure_folder(&path.join("partial"))?;
            let mut option = OsString::from(format!("{name}="));
            option.push(path);
            options.extend([OsString::from("-o"), option]);
        }
        for option in ["Dir::Etc::SourceList=/dev/null", "APT::Sandbox::User=root"] {
            options.extend(["-o".into(), option.into()]);
        }
        let lines = source_lines(configuration);
        if lines.iter().all(|(_, text)| text.trim().is_empty()) {
            return Err(no_source(format!("no package source is named in {}", configuration.display())));
        }
        for (name, text) in lines {
            let path = folder.join("parts").join(name);
            fs::write(&path, text).map_err(failed(format!("{}: writing", path.display())))?;
        }
        Ok(Self { folder: folder.to_owned(), options })
    }

    async fn run(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(program);
        command.args(&self.options).args(arguments).current_dir(&self.folder);
        command.env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
        let output = run(command, DEADLINE).await.map_err(|error| format!("{program}: {error}"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(words_of(&output))
    }

    /// `postgresql-15=15.18-0+deb12u1`: what there is of the wanted version, newest first. The newest may be
    /// listed and yet not be on the mirror, so all of them are tried.
    async fn candidates(&self, version: Option<&str>) -> Vec<String> {
        let major = version.map(|version| version.split('.').next().unwrap_or(version));
        for major in MAJORS.iter().filter(|known| major.is_none_or(|major| major == **known)) {
            let name = format!("postgresql-{major}");
            let listed = self.run("apt-cache", &["showsrc", &name]).await.unwrap_or_default();
            let mut versions: Vec<&str> =
                listed.lines().filter_map(|line| line.strip_prefix("Version: ")).map(str::trim).collect();
            versions.retain(|candidate| {
                version.is_none_or(|wanted| {
                    fits(candidate.split(['-', '+', '~']).next().unwrap_or(candidate), wanted)
                })
            });
            versions.sort_by_key(|version| std::cmp::Reverse(numbers(version)));
            versions.dedup();
            if !versions.is_empty() {
                return versions.into_iter().map(|version| format!("{name}={version}")).collect();
            }
        }
        Vec::new()
    }
}

fn numbers(version: &str) -> Vec<u32> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

/// The machine's package sources as sources of source packages, by the names of their files.
fn source_lines(configuration: &Path) -> Vec<(String, String)> {
    let mut files = vec![configuration.join("sources.list")];
    let parts = fs::read_dir(configuration.join("sources.list.d")).into_iter().flatten().flatten();
    files.extend(parts.map(|entry| entry.path()));
    let mut lines: Vec<(String, String)> = files
        .iter()
        .filter_map(|path| {
            let text = fs::read_to_string(path).ok()?;
            let name = path.file_name()?.to_str()?.to_owned();
            match path.extension()?.to_str()? {
                "list" => Some((name, of_list(&text))),
                "sources" => Some((name, of_stanzas(&text))),
                _ => None,
            }
        })
        .collect();
    lines.sort();
    lines
}

/// One-line entries: `deb [signed-by=...] http://... stable main`.
fn of_list(text: &str) -> String {
    let entries = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("deb").filter(|rest| rest.starts_with([' ', '\t'])));
    entries.flat_map(|rest| ["deb-src", rest, "\n"]).collect()
}

/// Stanzas with `Types: deb`.
fn of_stanzas(text: &str) -> String {
    let line = |line: &str| match line.split_once(':') {
        Some((key, _)) if key.eq_ignore_ascii_case("types") => "Types: deb-src\n".to_owned(),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("temporary folder");
        fs::create_dir_all(folder.path().join("src/include")).expect("folder");
        fs::write(folder.path().join("configure"), text).expect("file");
        folder
    }

    const CONFIGURE: &str =
        "#! /bin/sh\nPACKAGE_NAME='PostgreSQL'\nPACKAGE_TARNAME='postgresql'\nPACKAGE_VERSION='15.18'\n";

    #[test]
    fn a_named_folder_must_be_an_untouched_source_of_the_version() {
        let folder = tree(CONFIGURE);
        for wanted in [None, Some("15"), Some("15.18")] {
            assert_eq!(named(folder.path(), wanted).expect("fits").version, "15.18", "{wanted:?}");
        }
        for wanted in ["16", "15.1"] {
            let error = named(folder.path(), Some(wanted)).expect_err("another version").to_string();
            assert!(error.contains(&format!("it is PostgreSQL 15.18, not {wanted}")), "{error}");
        }
        fs::write(folder.path().join("src/include/pg_config.h"), "").expect("file");
        let error = named(folder.path(), None).expect_err("configured").to_string();
        assert!(error.contains("make distclean"), "{error}");
        let other = tree("PACKAGE_NAME='other'\nPACKAGE_VERSION='15.18'\n");
        let error = named(other.path(), None).expect_err("something else").to_string();
        assert!(error.contains("no source of PostgreSQL"), "{error}");
        assert!(named(Path::new("/does/not/exist"), None).is_err());
    }

    #[test]
    fn package_sources_become_sources_of_source_packages() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let parts = folder.path().join("sources.list.d");
        fs::create_dir(&parts).expect("folder");
        let list = "# deb x\ndeb [signed-by=/k] http://a stable main\ndeb-src http://a stable main\n  deb\thttp://b x y\n";
        fs::write(folder.path().join("sources.list"), list).expect("file");
        let stanza = "Types: deb\nURIs: http://c\nSuites: s\n\ntypes: deb deb-src\nURIs: http://d\n";
        fs::write(parts.join("d.sources"), stanza).expect("file");
        fs::write(parts.join("e.sources.off"), stanza).expect("file");
        let found = source_lines(folder.path());
        let expected = [
            ("d.sources", "Types: deb-src\nURIs: http://c\nSuites: s\n\nTypes: deb-src\nURIs: http://d\n"),
            ("sources.list", "deb-src [signed-by=/k] http://a stable main\ndeb-src\thttp://b x y\n"),
        ];
        assert_eq!(found, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    }

    #[tokio::test]
    async fn a_broken_archive_is_told_with_the_words_of_tar() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let error = unpacked(folder.path()).await.expect_err("nothing there").to_string();
        assert!(error.contains("holds no archive"), "{error}");
        fs::write(folder.path().join("postgresql-15_15.18.orig.tar.bz2"), "not an archive").expect("file");
        let error = unpacked(folder.path()).await.expect_err("broken").to_string();
        assert!(error.contains("orig.tar.bz2 cannot be unpacked") && error.contains("--source"), "{error}");
    }

    #[tokio::test]
    async fn an_archive_unpacks_to_a_source_tree() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let inner = tree(CONFIGURE);
        let mut tar = Command::new("tar");
        tar.arg("--create").arg("--file").arg(folder.path().join("postgresql-15_15.18.orig.tar.gz"));
        tar.arg("--directory")
            .arg(inner.path().parent().expect("a parent"))
            .arg(inner.path().file_name().expect("a name"));
        assert!(tar.status().expect("tar runs").success());
        let found = unpacked(folder.path()).await.expect("unpacked");
        assert_eq!((found.version.as_str(), found.folder), ("15.18", folder.path().join("source")));
    }

    #[test]
    fn without_a_package_source_apt_is_not_asked() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let error = Apt::new(folder.path(), &folder.path().join("none")).map(drop).expect_err("nothing");
        assert!(error.to_string().contains("no package source is named"), "{error}");
    }
}
