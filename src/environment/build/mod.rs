//! Builds a server with blocks of another size than 8 kB: the size is fixed when PostgreSQL is compiled, and no
//! distribution offers another one.
//!
//! Only what an experiment needs is compiled: the server, PL/pgSQL, initdb and a few clients. All sizes that are
//! compared should come from here, the usual one too, so that they differ in nothing else.

mod source;

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::source::SourceTree;
use super::EnvironmentError;
use super::account::{Account, last_lines, on_path, run};
use super::discover::{Binaries, examine};
use super::files::{ensure_folder, failed, new_folder, random_hex, remove_tree};
use super::install::make_readable;
use super::ledger::{Ledger, Thing};
use super::template::Maker;
use crate::model::{InitOptions, block_size_words};

/// Longest time of one part of a build, on a slow and busy machine.
const DEADLINE: Duration = Duration::from_hours(2);
/// Lines of a failed command that are shown.
const SHOWN: usize = 20;
/// How folders of own builds begin, in the cache's folder of servers.
pub(crate) const PREFIX: &str = "built-";
/// Parts of the source that are compiled, in the order in which they need each other.
const PARTS: [&str; 19] = [
    "src/port",
    "src/common",
    "src/backend",
    "src/timezone",
    "src/backend/utils/mb/conversion_procs",
    "src/backend/snowball",
    "src/include",
    "src/interfaces/libpq",
    "src/fe_utils",
    "src/bin/initdb",
    "src/bin/pg_ctl",
    "src/bin/pg_config",
    "src/bin/pg_controldata",
    "src/bin/pg_dump",
    "src/bin/psql",
    "src/bin/pgbench",
    "src/pl/plpgsql",
    "src/backend/replication/libpqwalreceiver",
    "src/backend/replication/pgoutput",
];

/// What is to be built.
pub struct BuildRequest<'a> {
    /// Bytes of a block.
    pub block_size: u32,
    /// Major or full version; `None`: the newest that the distribution has.
    pub version: Option<&'a str>,
    /// Folder with the source; `None`: the distribution's source package.
    pub source: Option<&'a Path>,
    /// Cache folder.
    pub cache: &'a Path,
    /// Is told what is being done, in words.
    pub progress: &'a dyn Fn(&str),
}

/// Builds a server into `<cache>/servers/built-<version>-<size>/`, unless it is there.
///
/// # Errors
/// What is missing on this machine, or the last words of what failed, with the name of the whole log.
pub async fn build(request: &BuildRequest<'_>, ledger: &Arc<Ledger>) -> Result<Binaries, EnvironmentError> {
    must_compile()?;
    let account = Account::detect().await?;
    let servers = request.cache.join("servers");
    ensure_folder(&servers)?;
    let scratch = servers.join(format!(".new-{}", random_hex(6)?));
    let thing = Thing::Directory(scratch.clone());
    ledger.record(&thing)?;
    let outcome = build_in(&scratch, &servers, request, &account, ledger).await;
    let removed = remove_tree(&scratch).map_err(failed(format!("{}: removing", scratch.display())));
    ledger.forget(&thing)?;
    let binaries = outcome?;
    removed?;
    Ok(binaries)
}

/// Programs without which nothing can be compiled.
fn must_compile() -> Result<(), EnvironmentError> {
    let compiler = ["cc", "gcc", "clang"].into_iter().any(|name| on_path(name).is_some());
    let mut missing = Vec::new();
    if !compiler {
        missing.push("a C compiler");
    }
    missing.extend(["make", "tar", "perl"].into_iter().filter(|name| on_path(name).is_none()));
    if missing.is_empty() {
        return Ok(());
    }
    Err(EnvironmentError::Unavailable {
        reason: format!("a server cannot be built here: {} is missing", missing.join(", ")),
        remedy:
            "install it (Debian and Ubuntu: apt-get install build-essential), or build on another machine"
                .to_owned(),
    })
}

async fn build_in(
    scratch: &Path,
    servers: &Path,
    request: &BuildRequest<'_>,
    account: &Account,
    ledger: &Arc<Ledger>,
) -> Result<Binaries, EnvironmentError> {
    new_folder(scratch, 0o755, None)?;
    let tree = match request.source {
        Some(folder) => source::named(folder, request.version)?,
        None => source::fetched(scratch, request.version, request.progress).await?,
    };
    let name = format!("{PREFIX}{}-{}", tree.version, block_size_words(request.block_size));
    let target = servers.join(&name);
    if target.exists() {
        (request.progress)(&format!("{name} is there already"));
    } else {
        let log = request.cache.join("servers").join(format!("{name}.log"));
        let work = Work { tree: &tree, scratch, target: &target, log, request };
        let staged = work.compile().await?;
        make_readable(&staged).map_err(failed(format!("{}: making it readable", staged.display())))?;
        try_out(&staged, scratch, request, account, ledger).await?;
        fs::rename(&staged, &target).map_err(failed(format!("{}: moving the build", target.display())))?;
    }
    let folder = target.join("bin");
    examine(&folder, "built by loadlab", account).await.map_err(|why| EnvironmentError::Unavailable {
        reason: format!("{}: {why}", folder.display()),
        remedy: "remove its folder and build it again".to_owned(),
    })
}

/// One build.
struct Work<'a> {
    tree: &'a SourceTree,
    scratch: &'a Path,
    target: &'a Path,
    /// Everything that the commands said.
    log: PathBuf,
    request: &'a BuildRequest<'a>,
}

impl Work<'_> {
    /// Compiles and installs into the scratch folder; returns where it lies.
    async fn compile(&self) -> Result<PathBuf, EnvironmentError> {
        let begin = Instant::now();
        let objects = self.scratch.join("objects");
        new_folder(&objects, 0o755, None)?;
        drop(fs::remove_file(&self.log));
        let words = block_size_words(self.request.block_size);
        (self.request.progress)(&format!(
            "configuring PostgreSQL {} with blocks of {words}",
            self.tree.version
        ));
        let mut configure = Command::new(self.tree.folder.join("configure"));
        configure.arg("--quiet").args(options(self.request.block_size, &self.tree.version));
        let mut prefix = OsString::from("--prefix=");
        prefix.push(self.target);
        configure.arg(prefix);
        self.run(configure, &objects, "configure").await?;
        let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (self.request.progress)(&format!("compiling on {jobs} CPU(s): some minutes"));
        self.make(&objects, "src/backend", &["generated-headers"], jobs).await?;
        let staging = self.scratch.join("staging");
        let destination = format!("DESTDIR={}", staging.display());
        for part in PARTS {
            self.make(&objects, part, &["all"], jobs).await?;
            self.make(&objects, part, &["install", &destination], 1).await?;
            if part == "src/backend" {
                let seconds = begin.elapsed().as_secs();
                (self.request.progress)(&format!("the server itself is compiled after {seconds} s"));
            }
        }
        let relative = self.target.strip_prefix("/").unwrap_or(self.target);
        Ok(staging.join(relative))
    }

    async fn make(
        &self,
        objects: &Path,
        part: &str,
        goals: &[&str],
        jobs: usize,
    ) -> Result<(), EnvironmentError> {
        let mut make = Command::new("make");
        make.args(["--silent", "-j", &jobs.to_string(), "-C", part]).args(goals);
        self.run(make, objects, &format!("make {} in {part}", goals[0])).await
    }

    async fn run(&self, mut command: Command, folder: &Path, what: &str) -> Result<(), EnvironmentError> {
        command.current_dir(folder).env("LC_ALL", "C");
        // What is left of somebody else's build would make this one differ.
        for variable in ["CFLAGS", "CPPFLAGS", "LDFLAGS", "LIBS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"] {
            command.env_remove(variable);
        }
        let output = run(command, DEADLINE).await.map_err(failed(format!("running {what}")))?;
        let written = fs::OpenOptions::new().create(true).append(true).open(&self.log).and_then(|mut log| {
            writeln!(log, "== {what}")?;
            log.write_all(&output.stdout)?;
            log.write_all(&output.stderr)
        });
        written.map_err(failed(format!("{}: writing the log", self.log.display())))?;
        if output.status.success() {
            return Ok(());
        }
        Err(EnvironmentError::Unavailable {
            reason: format!("{what} failed ({}):\n{}", output.status, words_of(&output)),
            remedy: format!("see the whole log in {}", self.log.display()),
        })
    }
}

/// Both streams: compilers complain on one, make on the other.
fn words_of(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    last_lines(&String::from_utf8_lossy(&both), SHOWN)
}

/// Options of configure that do not depend on the place. Libraries are left out, so that the result depends as
/// little as possible on what happens to be installed, and runs wherever the C library does.
fn options(block_size: u32, version: &str) -> Vec<String> {
    let major: u32 =
        version.split(|c: char| !c.is_ascii_digit()).next().and_then(|m| m.parse().ok()).unwrap_or(0);
    let mut options = vec![
        format!("--with-blocksize={}", block_size / 1024),
        "--without-readline".to_owned(),
        "--without-zlib".to_owned(),
        "--disable-rpath".to_owned(),
        // Clients find their library beside them, wherever the folder is moved to.
        "LDFLAGS=-Wl,-rpath,'$$ORIGIN/../lib'".to_owned(),
    ];
    if major >= 16 {
        // Before, it had to be asked for.
        options.push("--without-icu".to_owned());
    }
    options
}

/// Makes a cluster with the new server and reads its block size back.
async fn try_out(
    staged: &Path,
    scratch: &Path,
    request: &BuildRequest<'_>,
    account: &Account,
    ledger: &Arc<Ledger>,
) -> Result<(), EnvironmentError> {
    (request.progress)("trying it out");
    let refused = |reason: String| EnvironmentError::Unavailable {
        reason: format!("the new server cannot be used: {reason}"),
        remedy: "see what it says; the source may not be meant for this system".to_owned(),
    };
    let binaries = examine(&staged.join("bin"), "built by loadlab", account).await.map_err(refused)?;
    if binaries.block_size != request.block_size {
        let (is, wanted) = (block_size_words(binaries.block_size), block_size_words(request.block_size));
        return Err(refused(format!("its blocks have {is} instead of {wanted}")));
    }
    let folder = scratch.join("test");
    new_folder(&folder, 0o700, account.owner())?;
    // Making a cluster compares the block size in its control file with what the binaries say.
    let maker = Maker { cache: request.cache, binaries: &binaries, account, ledger };
    maker.cluster(&folder, &InitOptions::default()).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_fit_the_version() {
        let old = options(32_768, "15.18");
        assert_eq!(old[0], "--with-blocksize=32");
        assert!(!old.iter().any(|option| option == "--without-icu"));
        assert!(options(4096, "18.1").contains(&"--without-icu".to_owned()));
        assert!(old.contains(&"LDFLAGS=-Wl,-rpath,'$$ORIGIN/../lib'".to_owned()), "{old:?}");
    }

    #[tokio::test]
    async fn a_failed_build_shows_its_last_words_keeps_its_log_and_leaves_nothing_else() {
        let cache = tempfile::tempdir().expect("temporary folder");
        let source = tempfile::tempdir().expect("temporary folder");
        let script = "#!/bin/sh\nPACKAGE_NAME='PostgreSQL'\nPACKAGE_VERSION='15.99'\necho checking\necho no flex >&2\nexit 3\n";
        fs::write(source.path().join("configure"), script).expect("file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(source.path().join("configure"), mode).expect("mode");
        let ledger = Ledger::open(cache.path(), "build").expect("ledger");
        let request = BuildRequest {
            block_size: 4096,
            version: None,
            source: Some(source.path()),
            cache: cache.path(),
            progress: &|_| {},
        };
        let error = build(&request, &ledger).await.expect_err("configure fails").to_string();
        for part in ["configure failed", "no flex", "built-15.99-4kB.log"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        let names: Vec<_> = fs::read_dir(cache.path().join("servers")).expect("folder").flatten().collect();
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(fs::read_to_string(names[0].path()).expect("log").contains("checking"));
        assert!(ledger.remaining().expect("list").is_empty());
    }
}
