//! How a data directory is made fresh, and the folders of the cache it is made in.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::EnvironmentError;
use super::account::{Account, OnParentDeath, run, words};
use super::files::{copy_tree, ensure_folder, failed, give_to, remove_tree};
use super::place::Place;
use crate::model::FreshMethod;

/// How long copying a template may take.
const COPY_DEADLINE: Duration = Duration::from_mins(5);

/// How a data directory is made fresh, once it is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Overlay,
    Copy,
    Initdb,
}

impl Way {
    /// The word in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Overlay => "overlay",
            Self::Copy => "copy",
            Self::Initdb => "initdb",
        }
    }
}

/// What to do where a method is asked for and overlays work, or do not.
pub(crate) fn way(asked: FreshMethod, overlay: &Result<(), String>) -> Result<Way, EnvironmentError> {
    match (asked, overlay) {
        (FreshMethod::Auto | FreshMethod::Overlay, Ok(())) => Ok(Way::Overlay),
        (FreshMethod::Auto | FreshMethod::Copy, _) => Ok(Way::Copy),
        (FreshMethod::Initdb, _) => Ok(Way::Initdb),
        (FreshMethod::Overlay, Err(why)) => Err(EnvironmentError::Unavailable {
            reason: format!("the environment asks for a data directory by overlay, but {why}"),
            remedy: "use `fresh: auto` or `fresh: copy`".to_owned(),
        }),
    }
}

/// Makes the cache's folders for templates and trials, such that the server's account can enter them;
/// returns that of the trials.
pub(crate) async fn open_cache(cache: &Path, account: &Account) -> Result<PathBuf, EnvironmentError> {
    let trials = cache.join("trials");
    for folder in [cache, &trials, &cache.join("templates")] {
        ensure_folder(folder)?;
        if account.owner().is_some() {
            open_to_all(folder)?;
        }
    }
    account.must_reach(&trials).await?;
    Ok(trials)
}

/// Lets other accounts pass through a folder of the cache.
fn open_to_all(folder: &Path) -> Result<(), EnvironmentError> {
    let what = || failed(format!("{}: opening the folder to the server's account", folder.display()));
    let mode = fs::metadata(folder).map_err(what())?.permissions().mode();
    if mode & 0o055 == 0o055 {
        return Ok(());
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(mode | 0o055)).map_err(what())
}

/// Copies a template, sharing blocks where the file system can.
pub(crate) async fn copy(template: &Path, place: &Place, account: &Account) -> Result<(), EnvironmentError> {
    let data = place.data();
    let mut command = account.command("cp", &place.folder, OnParentDeath::Nothing);
    command.args(["-a", "--reflink=auto"]).arg(template).arg(&data);
    let refused = match run(command, COPY_DEADLINE).await {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => words(&output),
        Err(error) => error.to_string(),
    };
    // A `cp` without these options, as on macOS; a full disk fails here again, with the reason.
    drop(remove_tree(&data));
    let (from, to, owner) = (template.to_owned(), data.clone(), account.owner());
    let copied = tokio::task::spawn_blocking(move || {
        copy_tree(&from, &to)?;
        owner.map_or(Ok(()), |owner| give_to(&to, owner))
    });
    let copied = copied.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    copied.map_err(failed(format!("{}: copying the template (cp: {refused})", data.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_forced_overlay_fails_where_there_is_none() {
        let no: Result<(), String> = Err("user namespaces are not allowed here".to_owned());
        assert_eq!(way(FreshMethod::Auto, &Ok(())).expect("way"), Way::Overlay);
        assert_eq!(way(FreshMethod::Auto, &no).expect("way"), Way::Copy);
        assert_eq!(way(FreshMethod::Copy, &Ok(())).expect("way"), Way::Copy);
        let error = way(FreshMethod::Overlay, &no).expect_err("forced").to_string();
        assert!(error.contains("not allowed here") && error.contains("fresh: copy"), "{error}");
    }
}
