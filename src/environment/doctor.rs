//! What this machine can run, and for what it cannot, why and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::account::{Account, on_path};
use super::discover::{Found, discover};
use super::engine::Engine;
use super::files::{file_system, free_bytes, holds_socket, random_hex};
use super::ledger::Ledger;
use super::place::SOCKET_PORT;
use super::template::Maker;
use super::{EnvironmentError, fresh, overlay};
use crate::model::InitOptions;

/// Oldest API of a container engine that is supported: Docker 19.03.
pub const OLDEST_API: (u32, u32) = (1, 40);
/// Below this much free space a warning is given: a template and a small trial need about this much.
const SPACE: u64 = 2 << 30;
/// Majors that loadlab knows.
const MAJORS: std::ops::RangeInclusive<u32> = 14..=18;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub what: String,
    /// What was found.
    pub found: String,
    /// What to do, when something is missing.
    pub remedy: Option<String>,
}

/// What this machine can run.
#[derive(Debug, Default)]
pub struct DoctorReport {
    /// Version of the container engine, when a supported one answers.
    pub engine: Option<String>,
    /// Everything that was looked at, in order.
    pub findings: Vec<Finding>,
    /// PostgreSQL on this machine.
    pub binaries: Found,
}

impl DoctorReport {
    /// Whether the container backend can be used.
    pub fn container(&self) -> bool {
        self.engine.is_some()
    }

    /// Whether the local backend can be used.
    pub fn local(&self) -> bool {
        self.binaries.usable.iter().any(|binaries| MAJORS.contains(&binaries.major))
    }

    fn good(&mut self, what: &str, found: impl Into<String>) {
        self.findings.push(Finding { what: what.to_owned(), found: found.into(), remedy: None });
    }

    fn bad(&mut self, what: &str, found: impl Into<String>, remedy: impl Into<String>) {
        let remedy = Some(remedy.into());
        self.findings.push(Finding { what: what.to_owned(), found: found.into(), remedy });
    }
}

impl fmt::Display for DoctorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let can = |able: bool| if able { "can run here" } else { "cannot run here" };
        writeln!(f, "backend container  {}", can(self.container()))?;
        writeln!(f, "backend local      {}", can(self.local()))?;
        writeln!(f, "backend external   needs the URL of a server that you may load")?;
        writeln!(f)?;
        for Finding { what, found, remedy } in &self.findings {
            let mark = if remedy.is_some() { "!" } else { " " };
            writeln!(f, "{mark} {what:<20} {}", found.replace('\n', "\n                       "))?;
            if let Some(remedy) = remedy {
                writeln!(f, "  {:<20} what to do: {remedy}", "")?;
            }
        }
        Ok(())
    }
}

/// Looks at this machine. Makes a template when a server is found and has none; everything else it
/// makes is removed again.
pub async fn doctor(cache: &Path) -> DoctorReport {
    let mut report = DoctorReport::default();
    look_at_engine(&mut report).await;
    report.good("cgroups", cgroup_version());
    look_at_page_cache(&mut report);
    match look_at_local(cache, &mut report).await {
        Ok(()) => {}
        Err(EnvironmentError::Unavailable { reason, remedy }) => report.bad("local servers", reason, remedy),
        Err(error) => {
            report.bad("local servers", error.to_string(), "name a cache folder you own in LOADLAB_CACHE");
        }
    }
    report
}

async fn look_at_engine(report: &mut DoctorReport) {
    let what = "container engine";
    match Engine::connect().await {
        Err(why) => report.bad(
            what,
            format!("none answers: {why}"),
            "start Docker, or name its socket in DOCKER_HOST; the user must be allowed to use it. \
             Local servers need none",
        ),
        Ok(engine) if parse_api(&engine.api).is_some_and(|api| api < OLDEST_API) => {
            let (major, minor) = OLDEST_API;
            let found = format!("{} with API {}", engine.version, engine.api);
            report.bad(what, found, format!("install one with API {major}.{minor} or newer"));
        }
        Ok(engine) => {
            report.good(what, format!("{} with API {}", engine.version, engine.api));
            report.engine = Some(engine.version);
        }
    }
}

fn parse_api(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// A cold read must be known to be cold.
fn look_at_page_cache(report: &mut DoctorReport) {
    if !cfg!(target_os = "linux") {
        report.bad("cold reads", "only Linux lets go of the page cache file by file", "run them on Linux");
    } else if on_path("fincore").is_none() {
        report.bad(
            "cold reads",
            "the program `fincore` is missing: they cannot be checked",
            "install util-linux",
        );
    } else if !nix::unistd::geteuid().is_root() {
        report.good("cold reads", "of local servers; those of containers need root");
    } else {
        report.good("cold reads", "can be made and checked");
    }
}

/// Limits of containers mean slightly different things on the two versions.
fn cgroup_version() -> &'static str {
    if !cfg!(target_os = "linux") {
        "none on this system"
    } else if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        "version 2"
    } else {
        "version 1"
    }
}

async fn look_at_local(cache: &Path, report: &mut DoctorReport) -> Result<(), EnvironmentError> {
    report.binaries = discover(None, cache).await?;
    list_binaries(report);
    look_at_cache(cache, report);
    let ledger = Ledger::open(cache, &format!("doctor-{}", random_hex(4)?))?;
    let account = Account::detect().await?;
    let trials = fresh::open_cache(cache, &account).await?;
    match account.name() {
        Some(name) => report.good("account", format!("root steps down to {name}")),
        None => report.good("account", "servers run as this user"),
    }
    match overlay::probe(&trials, &account, &ledger).await? {
        Ok(()) => report.good("fresh by overlay", "works: a fresh server costs tens of milliseconds"),
        Err(why) => report.bad(
            "fresh by overlay",
            format!("does not work: {why}"),
            "nothing must be done: data directories are copied instead, which is slower",
        ),
    }
    let temporary = std::env::temp_dir();
    if holds_socket(&temporary.join("loadlab-123456789012"), SOCKET_PORT) {
        report.good("temporary folder", temporary.display().to_string());
    } else {
        let found = format!("{}: its path is too long for sockets", temporary.display());
        report.bad("temporary folder", found, "name a shorter one in TMPDIR");
    }
    time_template(cache, &account, &ledger, report).await
}

fn list_binaries(report: &mut DoctorReport) {
    let found = report.binaries.clone();
    for major in MAJORS {
        for binaries in found.usable.iter().filter(|binaries| binaries.major == major) {
            let place =
                format!("{} in {} ({})", binaries.version, binaries.folder.display(), binaries.source);
            report.good(&format!("PostgreSQL {major}"), place);
        }
    }
    for refused in &found.refused {
        let text = format!("{} ({}): {}", refused.folder.display(), refused.source, refused.why);
        report.bad("PostgreSQL refused", text, "install what it misses, or remove it");
    }
    if !report.local() {
        report.bad(
            "PostgreSQL",
            "none of 14 to 18 on this machine",
            "`loadlab env install 18` fetches one; or install the system's package",
        );
    }
}

/// Bytes free where the cache is, or will be. `None`: not known here.
pub fn free_space(cache: &Path) -> Option<u64> {
    free_bytes(existing(cache))
}

/// The cache may not exist yet; its file system is that of the nearest folder that does.
fn existing(cache: &Path) -> &Path {
    cache.ancestors().find(|folder| folder.exists()).unwrap_or(cache)
}

fn look_at_cache(cache: &Path, report: &mut DoctorReport) {
    let existing = existing(cache);
    let free = free_space(cache).unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "only shown, with one digit")]
    let gibibytes = free as f64 / f64::from(1 << 30);
    let found = format!("{} on {}, {gibibytes:.1} GiB free", cache.display(), file_system(existing));
    if free < SPACE {
        report.bad("cache", found, "free some space, or name another folder in LOADLAB_CACHE");
    } else {
        report.good("cache", found);
    }
}

/// Makes (or opens) the template of the newest server.
async fn time_template(
    cache: &Path,
    account: &Account,
    ledger: &Arc<Ledger>,
    report: &mut DoctorReport,
) -> Result<(), EnvironmentError> {
    let usable = report.binaries.usable.iter().filter(|binaries| MAJORS.contains(&binaries.major));
    let Some(binaries) = usable.max_by_key(|binaries| binaries.major).cloned() else { return Ok(()) };
    let init = InitOptions::default();
    let begin = Instant::now();
    let made = Maker { cache, binaries: &binaries, account, ledger }.template(&init).await;
    let took: Duration = begin.elapsed();
    match made {
        Ok(_) => report.good("template", format!("PostgreSQL {} ready after {took:.1?}", binaries.version)),
        Err(error) => report.bad("template", error.to_string(), "see the words of the server above"),
    }
    Ok(())
}

/// Folder of everything loadlab keeps between runs: `LOADLAB_CACHE`, else `/var/cache/loadlab` for root,
/// else `$XDG_CACHE_HOME/loadlab` or `~/.cache/loadlab`.
pub fn cache_folder() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = if let Some(folder) = variable("LOADLAB_CACHE") {
        folder
    } else if nix::unistd::geteuid().is_root() {
        PathBuf::from("/var/cache/loadlab")
    } else if let Some(folder) = variable("XDG_CACHE_HOME") {
        folder.join("loadlab")
    } else {
        variable("HOME").unwrap_or_else(std::env::temp_dir).join(".cache/loadlab")
    };
    // Servers and the reaper work in other folders than this process.
    std::path::absolute(&folder).unwrap_or(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_the_api_compare_as_numbers() {
        assert!(parse_api("1.9") < Some(OLDEST_API));
        assert!(parse_api("1.41") > Some(OLDEST_API));
        assert_eq!(parse_api("unknown"), None);
    }

    #[test]
    fn what_is_missing_comes_with_a_remedy() {
        let mut report = DoctorReport::default();
        report.good("cgroups", "version 2");
        report.bad("container engine", "none answers", "start Docker");
        let text = report.to_string();
        assert!(text.contains("backend container  cannot run here"), "{text}");
        assert!(text.contains("! container engine     none answers\n"), "{text}");
        assert!(text.contains("what to do: start Docker"), "{text}");
    }
}
