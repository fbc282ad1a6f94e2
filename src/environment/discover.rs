//! PostgreSQL binaries on this machine: an explicit folder, the search path, the places where
//! distributions put them, and loadlab's own cache.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::EnvironmentError;
use super::account::{Account, OnParentDeath, on_path, run, words};
use super::files::{ensure_folder, failed, hex};
use crate::model::{Builder, DEFAULT_BLOCK_SIZE, block_size_words};

/// How long a binary may take to say its version.
const DEADLINE: Duration = Duration::from_secs(10);
/// Folders that hold one folder per version, and where the binaries are below that.
const PLACES: [(&str, &str, &str, &str); 6] = [
    ("/usr/lib/postgresql", "", "bin", "Debian package"),
    ("/usr", "pgsql-", "bin", "RPM package"),
    ("/opt/homebrew/opt", "postgresql@", "bin", "Homebrew"),
    ("/usr/local/opt", "postgresql@", "bin", "Homebrew"),
    ("/Applications/Postgres.app/Contents/Versions", "", "bin", "Postgres.app"),
    ("/usr/local", "pgsql", "bin", "own build"),
];
/// How many folders below its own a fetched server may lie.
pub(crate) const SERVER_DEPTH: usize = 6;
/// Programs beside the server that some steps want.
const TOOLS: [&str; 7] =
    ["pg_controldata", "pg_config", "psql", "pgbench", "pg_dump", "pg_restore", "pg_waldump"];

/// A folder with a server that runs on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// The folder of `postgres` and `initdb`.
    pub folder: PathBuf,
    /// How it was found, in words.
    pub source: String,
    /// Version as the server says it, such as `15.18`.
    pub version: String,
    /// Its major.
    pub major: u32,
    /// `LD_LIBRARY_PATH` for the server only, where it does not find its libraries by itself.
    pub library_path: Option<PathBuf>,
    /// Programs that are there besides the server.
    pub tools: Vec<String>,
    /// Bytes of a block. Servers that cannot tell without being started are taken for the usual size; what it
    /// really is, is read back from every started server.
    pub block_size: u32,
    /// Who built it.
    pub builder: Builder,
}

impl fmt::Display for Binaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSQL {}", self.version)?;
        if self.block_size != DEFAULT_BLOCK_SIZE {
            write!(f, ", blocks of {},", block_size_words(self.block_size))?;
        }
        write!(f, " in {} ({})", self.folder.display(), self.source)
    }
}

/// A folder that was looked at and cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The folder.
    pub folder: PathBuf,
    /// How it was found.
    pub source: String,
    /// Why it cannot be used.
    pub why: String,
}

/// Everything found on this machine.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Servers that run, in the order of the search.
    pub usable: Vec<Binaries>,
    /// The others.
    pub refused: Vec<Refused>,
}

/// Looks for binaries. An explicit folder is the only one looked at when it is given.
///
/// # Errors
/// As root, when there is no unprivileged account to run them under.
pub async fn discover(explicit: Option<&Path>, cache: &Path) -> Result<Found, EnvironmentError> {
    let account = Account::detect().await?;
    let places = match explicit {
        Some(folder) => vec![Spot::of(with_binaries(folder), "named folder")],
        None => places(cache).await,
    };
    let mut found = Found::default();
    let mut seen = BTreeSet::new();
    for spot in places {
        let folder = fs::canonicalize(&spot.folder).unwrap_or(spot.folder);
        if !seen.insert(folder.clone()) {
            continue;
        }
        match examine(&folder, spot.source, &account).await {
            Ok(binaries) => found.usable.push(Binaries { builder: spot.builder, ..binaries }),
            Err(why) => found.refused.push(Refused { folder, source: spot.source.to_owned(), why }),
        }
    }
    Ok(found)
}

/// The builder of a folder in loadlab's cache, by its name, and how it is told.
pub(crate) fn builder_of(folder: &Path) -> (Builder, &'static str) {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match name.split('-').next() {
        Some("built") => (Builder::Loadlab, "built by loadlab"),
        Some("theseus") => (Builder::Archive, "loadlab's cache, builder archive"),
        Some("npm") => (Builder::Npm, "loadlab's cache, builder npm"),
        Some("pip") => (Builder::Pip, "loadlab's cache, builder pip"),
        _ => (Builder::System, "loadlab's cache"),
    }
}

/// A named folder, or its `bin` when the folder above was named.
fn with_binaries(folder: &Path) -> PathBuf {
    let below = folder.join("bin");
    if !folder.join("postgres").is_file() && below.join("postgres").is_file() {
        below
    } else {
        folder.to_owned()
    }
}

/// A folder to look into.
struct Spot {
    folder: PathBuf,
    /// How it was found.
    source: &'static str,
    builder: Builder,
}

impl Spot {
    fn of(folder: PathBuf, source: &'static str) -> Self {
        Self { folder, source, builder: Builder::System }
    }
}

/// Folders to look into, best first.
async fn places(cache: &Path) -> Vec<Spot> {
    let mut places = Vec::new();
    if let Some(folder) =
        on_path("postgres").and_then(|file| file.canonicalize().ok()?.parent().map(Path::to_owned))
    {
        places.push(Spot::of(folder, "search path"));
    }
    if let Some(folder) = by_pg_config().await {
        places.push(Spot::of(folder, "pg_config"));
    }
    for (parent, prefix, below, source) in PLACES {
        places.extend(versions_in(Path::new(parent), prefix, below).map(|folder| Spot::of(folder, source)));
    }
    for named in versions_in(&cache.join("servers"), "", "") {
        if let Some(folder) = binaries_below(&named, SERVER_DEPTH) {
            let (builder, source) = builder_of(&named);
            places.push(Spot { folder, source, builder });
        }
    }
    // A place that merely could exist is no finding.
    places.retain(|spot| spot.folder.join("postgres").is_file());
    places
}

async fn by_pg_config() -> Option<PathBuf> {
    let mut command = Command::new(on_path("pg_config")?);
    command.arg("--bindir");
    let output = run(command, DEADLINE).await.ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

/// `<parent>/<prefix>*/<below>` in order of their names, highest first.
fn versions_in(parent: &Path, prefix: &str, below: &str) -> impl Iterator<Item = PathBuf> + use<> {
    let mut names: Vec<String> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(prefix) && !name.starts_with('.'))
        .collect();
    names.sort_by(|a, b| b.cmp(a));
    let (parent, below) = (parent.to_owned(), below.to_owned());
    names.into_iter().map(move |name| parent.join(name).join(&below))
}

/// The folder that holds `postgres` and `initdb`, at most `depth` folders below.
pub(crate) fn binaries_below(folder: &Path, depth: usize) -> Option<PathBuf> {
    if folder.join("postgres").is_file() && folder.join("initdb").is_file() {
        return Some(folder.to_owned());
    }
    if depth == 0 {
        return None;
    }
    let mut folders: Vec<PathBuf> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir() && !path.is_symlink())
        .collect();
    folders.sort();
    folders.iter().find_map(|folder| binaries_below(folder, depth - 1))
}

/// Whether the binaries in a folder run under the server's account, and what they are.
pub(crate) async fn examine(folder: &Path, source: &str, account: &Account) -> Result<Binaries, String> {
    for program in ["postgres", "initdb"] {
        if !folder.join(program).is_file() {
            return Err(format!("it has no {program}"));
        }
    }
    let library = folder.parent().map(|parent| parent.join("lib")).filter(|path| path.is_dir());
    let (text, library_path) = match say_version(folder, None, account).await {
        Ok(text) => (text, None),
        Err(first) => match library {
            Some(path) => (say_version(folder, Some(&path), account).await.map_err(|_| first)?, Some(path)),
            None => return Err(first),
        },
    };
    let version = parse_version(&text).ok_or_else(|| format!("it says {text:?} instead of a version"))?;
    let major = version.split('.').next().and_then(|major| major.parse().ok());
    let major = major.ok_or_else(|| format!("{version} is not a released version"))?;
    let tools: Vec<String> =
        TOOLS.iter().filter(|tool| folder.join(tool).is_file()).map(|tool| (*tool).to_owned()).collect();
    let block_size = block_size(folder, &tools, account).await;
    let (folder, source) = (folder.to_owned(), source.to_owned());
    Ok(Binaries { folder, source, version, major, library_path, tools, block_size, builder: Builder::System })
}

/// Bytes of a block, by the options that the server was configured with; only a started server knows for sure.
async fn block_size(folder: &Path, tools: &[String], account: &Account) -> u32 {
    if !tools.iter().any(|tool| tool == "pg_config") {
        return DEFAULT_BLOCK_SIZE;
    }
    let mut command = account.command(folder.join("pg_config"), Path::new("/"), OnParentDeath::Nothing);
    command.arg("--configure");
    let output = run(command, DEADLINE).await.map(|output| output.stdout).unwrap_or_default();
    configured_block_size(&String::from_utf8_lossy(&output)).unwrap_or(DEFAULT_BLOCK_SIZE)
}

/// The size in `'--with-blocksize=32'`, which is in kilobytes.
fn configured_block_size(options: &str) -> Option<u32> {
    let (_, rest) = options.rsplit_once("--with-blocksize=")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse::<u32>().ok()?.checked_mul(1024)
}

async fn say_version(
    folder: &Path,
    library_path: Option<&Path>,
    account: &Account,
) -> Result<String, String> {
    let mut command = account.command("env", Path::new("/"), OnParentDeath::Nothing);
    if let Some(path) = library_path {
        let mut variable = OsString::from("LD_LIBRARY_PATH=");
        variable.push(path);
        command.arg(variable);
    }
    command.arg(folder.join("postgres")).arg("--version");
    let output = run(command, DEADLINE).await.map_err(|error| format!("`postgres --version`: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        let account = account.name().map(|name| format!(" as {name}")).unwrap_or_default();
        Err(format!("`postgres --version` fails{account}: {}", words(&output)))
    }
}

/// `15.18` of `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`; `19` of `19devel`.
fn parse_version(text: &str) -> Option<String> {
    let word = text.strip_prefix("postgres (PostgreSQL) ")?.split_whitespace().next()?;
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
    let version = word[..end].trim_end_matches('.');
    (!version.is_empty()).then(|| version.to_owned())
}

impl Binaries {
    /// Path of one of the programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A command that runs one of the programs under the server's account, behind the words `before`
    /// (a wrapper with its options). The library path is set for the program alone: it breaks others.
    pub(crate) fn command(
        &self,
        account: &Account,
        before: &[OsString],
        program: &str,
        folder: &Path,
        death: OnParentDeath,
    ) -> Command {
        let mut line = before.to_vec();
        if let Some(path) = &self.library_path {
            let mut variable = OsString::from("LD_LIBRARY_PATH=");
            variable.push(path);
            line.extend(["env".into(), variable]);
        }
        line.push(self.program(program).into());
        let mut command = account.command(&line[0], folder, death);
        command.args(&line[1..]);
        command
    }

    /// SHA-256 of the server binary in hexadecimal. Kept in the cache by path, size and time of change.
    ///
    /// # Errors
    /// When the binary cannot be read.
    pub fn checksum(&self, cache: &Path) -> Result<String, EnvironmentError> {
        let file = self.program("postgres");
        let what = || failed(format!("{}: reading the server binary", file.display()));
        let facts = fs::metadata(&file).map_err(what())?;
        let identity = format!("{} {} {} {}", file.display(), facts.len(), facts.mtime(), facts.mtime_nsec());
        let folder = cache.join("checksums");
        let note = folder.join(hex(&Sha256::digest(identity.as_bytes())[..8]));
        if let Ok(text) = fs::read_to_string(&note)
            && let Some((known, checksum)) = text.trim().rsplit_once('\n')
            && known == identity
            && checksum.len() == 64
        {
            return Ok(checksum.to_owned());
        }
        let checksum = sha256_of(&file).map_err(what())?;
        ensure_folder(&folder)?;
        // A cache that cannot be written costs the next run some milliseconds.
        drop(fs::write(&note, format!("{identity}\n{checksum}\n")));
        Ok(checksum)
    }
}

fn sha256_of(path: &Path) -> std::io::Result<String> {
    let mut file = fs::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 17];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(hex(&hasher.finalize()));
        }
        hasher.update(&buffer[..count]);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn binaries(major: u32, source: &str) -> Binaries {
        Binaries {
            folder: PathBuf::from(format!("/{source}/{major}/bin")),
            source: source.to_owned(),
            version: format!("{major}.3"),
            major,
            library_path: None,
            tools: Vec::new(),
            block_size: DEFAULT_BLOCK_SIZE,
            builder: Builder::System,
        }
    }

    #[test]
    fn the_builder_is_told_by_the_name_of_the_folder() {
        for (name, builder) in
            [("npm-15.18", Builder::Npm), ("built-15.18-4kB", Builder::Loadlab), ("x", Builder::System)]
        {
            assert_eq!(builder_of(&Path::new("/c/servers").join(name)).0, builder);
        }
    }

    #[test]
    fn the_block_size_is_read_from_the_options_of_configure() {
        let options = "'--prefix=/x' '--with-blocksize=32' '--without-icu'";
        assert_eq!(configured_block_size(options), Some(32_768));
        assert_eq!(configured_block_size("'--with-icu'"), None);
    }

    #[test]
    fn versions_are_read_from_every_builder() {
        let cases = [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", Some("15.18")),
            ("postgres (PostgreSQL) 18.4", Some("18.4")),
            ("postgres (PostgreSQL) 19devel", Some("19")),
            ("postgres (PostgreSQL) 18beta1", Some("18")),
            ("mysqld  Ver 8", None),
        ];
        for (text, version) in cases {
            assert_eq!(parse_version(text).as_deref(), version, "{text}");
        }
    }

    #[test]
    fn the_checksum_follows_the_file() {
        let cache = tempfile::tempdir().expect("temporary folder");
        let mut binaries = binaries(15, "x");
        binaries.folder = cache.path().join("bin");
        fs::create_dir(&binaries.folder).expect("folder");
        fs::write(binaries.program("postgres"), "abc").expect("file");
        let first = binaries.checksum(cache.path()).expect("checksum");
        assert_eq!(first, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(binaries.checksum(cache.path()).expect("kept"), first);
        fs::write(binaries.program("postgres"), "abcd").expect("file");
        assert_ne!(binaries.checksum(cache.path()).expect("new"), first);
    }

    #[tokio::test]
    async fn a_folder_without_a_server_is_refused_with_the_reason() {
        let cache = tempfile::tempdir().expect("temporary folder");
        let found = discover(Some(cache.path()), cache.path()).await.expect("looked");
        assert_eq!(found.refused[0].why, "it has no postgres");
    }
}
