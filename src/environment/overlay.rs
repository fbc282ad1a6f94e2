//! A data directory as an overlay over the template, inside namespaces that die with the server.
//!
//! The kernel does the clean-up: with the last process of its pid namespace go the mounts, the shared
//! memory and every backend. Works without root where user namespaces may mount overlayfs.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::EnvironmentError;
use super::account::{Account, OnParentDeath, run, words};
use super::files::{failed, new_folder, random_hex, remove_tree};
use super::ledger::{Ledger, Thing};

/// Runs in the namespaces, in the trial's private folder. Relative paths: characters that mount
/// options give a meaning to may stand in the cache's path. Shared memory is the trial's own; its size
/// is only a limit, far above the 64 MB of a container.
const SCRIPT: &str = "set -e
mount -t tmpfs -o mode=1777,size=80% tmpfs /dev/shm
mount -t overlay -o userxattr,lowerdir=lower,upperdir=upper,workdir=work overlay data
exec \"$@\"";
/// How long the probe may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// The words before a server's command line that put it into its namespaces.
pub(crate) fn wrapper() -> Vec<OsString> {
    let options = ["--user", "--map-current-user", "--keep-caps", "--mount", "--pid", "--ipc"];
    let child = ["--fork", "--kill-child", "--mount-proc"];
    let script = ["sh", "-c", SCRIPT, "sh"];
    ["unshare"].iter().chain(&options).chain(&child).chain(&script).map(OsString::from).collect()
}

/// Lays out what the script mounts in a private folder: `data` over `lower`, a link to the template.
pub(crate) fn lay_out(
    folder: &Path,
    template: &Path,
    owner: Option<(u32, u32)>,
) -> Result<(), EnvironmentError> {
    for name in ["data", "upper", "work"] {
        new_folder(&folder.join(name), 0o700, owner)?;
    }
    let link = folder.join("lower");
    std::os::unix::fs::symlink(template, &link)
        .map_err(failed(format!("{}: linking the template", link.display())))
}

/// Tries the whole thing in a scratch folder under `trials`.
///
/// # Errors
/// The outer error when the trial itself cannot be made; the inner one says why overlays do not work here.
pub(crate) async fn probe(
    trials: &Path,
    account: &Account,
    ledger: &Arc<Ledger>,
) -> Result<Result<(), String>, EnvironmentError> {
    if !cfg!(target_os = "linux") {
        return Ok(Err("overlayfs and namespaces exist on Linux only".to_owned()));
    }
    let folder = trials.join(format!("probe-{}", random_hex(6)?));
    let thing = Thing::Directory(folder.clone());
    ledger.record(&thing)?;
    let outcome = attempt(&folder, account).await;
    let removed = remove_tree(&folder).map_err(failed(format!("{}: removing", folder.display())));
    ledger.forget(&thing)?;
    removed?;
    outcome
}

async fn attempt(folder: &Path, account: &Account) -> Result<Result<(), String>, EnvironmentError> {
    new_folder(folder, 0o700, account.owner())?;
    let template = folder.join("template");
    new_folder(&template, 0o700, account.owner())?;
    lay_out(folder, &template, account.owner())?;
    let line = wrapper();
    let mut command = account.command(&line[0], folder, OnParentDeath::Nothing);
    // A file that is written and renamed, as a server does.
    command.args(&line[1..]).args(["sh", "-c", "echo x > data/a && mv data/a data/b"]);
    let output = match run(command, DEADLINE).await {
        Ok(output) => output,
        Err(error) => return Ok(Err(format!("unshare: {error}"))),
    };
    if !output.status.success() {
        return Ok(Err(explain(&words(&output))));
    }
    let written = fs::symlink_metadata(folder.join("upper/b")).is_ok();
    Ok(if written { Ok(()) } else { Err("the overlay does not keep what is written".to_owned()) })
}

/// Adds what the words of `unshare` and `mount` mean.
fn explain(words: &str) -> String {
    let meaning = if words.contains("unshare failed") || words.contains("uid_map") {
        "user namespaces are not allowed here (see the settings user.max_user_namespaces, \
         kernel.apparmor_restrict_unprivileged_userns, or the container this runs in)"
    } else if words.contains("overlay") {
        "overlayfs cannot be mounted in a user namespace here (needs Linux 5.11 or newer)"
    } else {
        "namespaces do not work here"
    };
    format!("{meaning}: {}", words.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_name_the_setting_to_look_at() {
        assert!(explain("unshare: unshare failed: Operation not permitted").contains("max_user_namespaces"));
        assert!(explain("mount: data: overlay: permission denied").contains("5.11"));
    }

    #[test]
    fn the_server_comes_last_on_the_line() {
        let line = wrapper();
        assert_eq!(line.first().and_then(|word| word.to_str()), Some("unshare"));
        assert_eq!(line.last().and_then(|word| word.to_str()), Some("sh"), "$0 of the script");
    }
}
