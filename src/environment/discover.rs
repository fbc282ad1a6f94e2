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
use crate::model::{Builder, DEFAULT_BLOCK_SIZE, EnvironmentSpec, VersionRange, block_size_words};

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

impl Found {
    /// The usable binaries of the highest allowed major; of several, the first found. Where a block size is asked
    /// for, own builds come first: sizes that are compared should differ in nothing else.
    ///
    /// # Errors
    /// Says what was found and why none of it will do.
    pub fn choose(&self, wanted: &Wanted) -> Result<&Binaries, EnvironmentError> {
        let allowed = self.usable.iter().filter(|binaries| wanted.fits(binaries));
        let own = |binaries: &Binaries| wanted.prefers_own && binaries.builder == Builder::Loadlab;
        // `max_by_key` takes the last of equals; the search is in order of preference.
        let best = allowed.rev().max_by_key(|binaries| (own(binaries), binaries.major));
        best.ok_or_else(|| self.nothing_for(wanted))
    }

    fn nothing_for(&self, wanted: &Wanted) -> EnvironmentError {
        let mut reason = format!("no {wanted} on this machine");
        for binaries in &self.usable {
            reason.push_str("\n  found ");
            reason.push_str(&binaries.to_string());
        }
        for refused in &self.refused {
            let place = refused.folder.display();
            reason.push_str(&["\n  refused ", &place.to_string(), ": ", &refused.why].concat());
        }
        EnvironmentError::Unavailable { reason, remedy: wanted.remedy() }
    }
}

/// Which binaries an environment asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Allowed majors.
    pub versions: VersionRange,
    /// Bytes of a block; `None`: any.
    pub block_size: Option<u32>,
    /// Who built them; `None`: anybody.
    pub builder: Option<Builder>,
    prefers_own: bool,
}

impl Wanted {
    /// What an environment asks for. A folder that the user names may have any block size, anything else has the
    /// usual one unless the environment says otherwise.
    #[must_use]
    pub fn of(spec: &EnvironmentSpec) -> Self {
        let usual = spec.binaries.is_none().then_some(DEFAULT_BLOCK_SIZE);
        Self {
            versions: spec.versions,
            block_size: spec.block_size.or(usual),
            // Whoever names a folder knows who built what is in it.
            builder: spec.builder.filter(|_| spec.binaries.is_none()),
            prefers_own: spec.block_size.is_some(),
        }
    }

    /// Whether fetching servers can help: everybody but loadlab builds the usual block size only.
    #[must_use]
    pub fn can_be_fetched(&self) -> bool {
        self.block_size.is_none_or(|size| size == DEFAULT_BLOCK_SIZE)
            && !matches!(self.builder, Some(Builder::System | Builder::Loadlab))
    }

    fn fits(&self, binaries: &Binaries) -> bool {
        self.versions.contains(binaries.major)
            && self.block_size.is_none_or(|size| size == binaries.block_size)
            && self.builder.is_none_or(|builder| builder == binaries.builder)
    }

    fn remedy(&self) -> String {
        let major = self.versions.max;
        let size = self.block_size.unwrap_or(DEFAULT_BLOCK_SIZE);
        if size != DEFAULT_BLOCK_SIZE || self.builder == Some(Builder::Loadlab) {
            let size = block_size_words(size);
            return format!(
                "`loadlab env build --block-size {size} --version {major}` builds one into loadlab's cache"
            );
        }
        let from = match self.builder {
            None | Some(Builder::System | Builder::Loadlab) => String::new(),
            Some(builder) => format!(" --from {}", builder.word()),
        };
        format!(
            "`loadlab env install {major}{from}` fetches one into loadlab's cache; or install the system's \
             package, or name a folder in the environment file (`binaries: FOLDER`)"
        )
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSQL {}", self.versions)?;
        if let Some(size) = self.block_size.filter(|size| *size != DEFAULT_BLOCK_SIZE) {
            write!(f, " with blocks of {}", block_size_words(size))?;
        }
        self.builder.map_or(Ok(()), |builder| write!(f, " from builder `{}`", builder.word()))
    }
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
mod tests {
    use super::*;

    fn binaries(major: u32, source: &str) -> Binaries {
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

    fn wanted(min: u32, max: u32) -> Wanted {
        let versions = VersionRange { min, max };
        Wanted { versions, block_size: Some(DEFAULT_BLOCK_SIZE), builder: None, prefers_own: false }
    }

    #[test]
    fn a_block_size_is_never_taken_for_another_and_own_builds_come_first() {
        let built = |major, block_size| Binaries {
            block_size,
            builder: Builder::Loadlab,
            ..binaries(major, "built")
        };
        let usable = vec![binaries(17, "package"), built(15, 32_768), built(15, 8192)];
        let found = Found { usable, refused: Vec::new() };
        assert_eq!(found.choose(&wanted(14, 18)).expect("one").major, 17);
        let asked = |size| Wanted { block_size: Some(size), prefers_own: true, ..wanted(14, 18) };
        for size in [8192, 32_768] {
            let chosen = found.choose(&asked(size)).expect("one");
            assert_eq!((chosen.builder, chosen.block_size), (Builder::Loadlab, size));
        }
        let error = found.choose(&asked(4096)).expect_err("none").to_string();
        for part in [
            "PostgreSQL 14 to 18 with blocks of 4kB",
            "PostgreSQL 15.3, blocks of 32kB, in",
            "env build --block-size 4kB --version 18",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(!asked(4096).can_be_fetched() && asked(8192).can_be_fetched());
    }

    #[test]
    fn of_one_builder_only_its_own_is_taken() {
        let npm = Binaries { builder: Builder::Npm, ..binaries(15, "npm") };
        let found = Found { usable: vec![binaries(17, "package"), npm], refused: Vec::new() };
        let from = |builder| Wanted { builder: Some(builder), ..wanted(14, 18) };
        assert_eq!(found.choose(&from(Builder::Npm)).expect("one").major, 15);
        let error = found.choose(&from(Builder::Pip)).expect_err("none").to_string();
        assert!(
            error.contains("from builder `pip`") && error.contains("env install 18 --from pip"),
            "{error}"
        );
        assert_eq!(builder_of(Path::new("/c/servers/npm-15.18")).0, Builder::Npm);
        assert_eq!(builder_of(Path::new("/c/servers/built-15.18-4kB")).0, Builder::Loadlab);
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
    fn the_highest_allowed_major_wins_then_the_first_found() {
        let usable =
            vec![binaries(15, "path"), binaries(17, "package"), binaries(17, "cache"), binaries(18, "cache")];
        let found = Found { usable, refused: Vec::new() };
        let chosen = found.choose(&wanted(14, 17)).expect("one");
        assert_eq!((chosen.major, chosen.source.as_str()), (17, "package"));
    }

    #[test]
    fn when_nothing_fits_everything_seen_is_told() {
        let why = "`postgres --version` fails: libicu missing".to_owned();
        let refused = vec![Refused { folder: "/opt/x".into(), source: "named folder".to_owned(), why }];
        let found = Found { usable: vec![binaries(13, "package")], refused };
        let error = found.choose(&wanted(16, 18)).expect_err("none").to_string();
        for part in
            ["PostgreSQL 16 to 18", "PostgreSQL 13.3 in /package/13/bin", "libicu missing", "env install 18"]
        {
            assert!(error.contains(part), "{part}: {error}");
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
