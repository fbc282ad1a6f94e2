//! Options that several sub-commands share.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;

use crate::environment::choose::On;
use crate::environment::doctor::cache_folder;
use crate::model::Claim;
use crate::spec::{LoadOptions, Spec};
use crate::store::OptionsUsed;

/// Options that shape an experiment.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct SpecOptions {
    /// Use a profile of the file, such as `quick`
    #[arg(long, value_name = "NAME")]
    pub(super) profile: Option<String>,
    /// Set a value of the file: `tables.t.rows=20_000` (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
    /// Run only these levels: `storage=unlogged` (repeatable)
    #[arg(long, value_name = "FACTOR=LEVEL")]
    pub(super) only: Vec<String>,
    /// Only see that it works: few rows, short durations, one block; the results are marked and never judged
    #[arg(long)]
    pub(super) smoke: bool,
    /// Folder of environment files [default: ../environments beside the experiment]
    #[arg(long, value_name = "FOLDER")]
    pub(super) environments: Option<PathBuf>,
}

impl SpecOptions {
    pub(super) fn load(&self) -> LoadOptions {
        LoadOptions {
            profile: self.profile.clone(),
            set: self.set.clone(),
            only: self.only.clone(),
            smoke: self.smoke,
            environments: self.environments.clone(),
            cache: Some(cache_folder()),
        }
    }

    pub(super) fn used(&self) -> OptionsUsed {
        OptionsUsed {
            profile: self.profile.clone(),
            set: self.set.clone(),
            only: self.only.clone(),
            ..OptionsUsed::default()
        }
    }
}

/// Options about what a run measures of itself.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ControlOptions {
    /// Measure the run itself too: the first treatment twice in each block, the client without a server [default: where claims
    /// can be judged]
    #[arg(long, conflicts_with = "smoke")]
    controls: bool,
    /// Leave the controls out
    #[arg(long, conflicts_with = "controls")]
    no_controls: bool,
}

impl ControlOptions {
    /// What was asked for; `None`: nothing.
    pub(super) fn asked(&self) -> Option<bool> {
        (self.controls || self.no_controls).then_some(self.controls)
    }

    /// The same as if it had been asked for so.
    pub(super) fn of(asked: Option<bool>) -> Self {
        Self { controls: asked == Some(true), no_controls: asked == Some(false) }
    }

    /// Whether the run has controls: as asked for, else where it can judge claims.
    pub(super) fn wanted(&self, spec: &Spec) -> bool {
        self.asked().unwrap_or_else(|| !spec.smoke && spec.claims.iter().any(Claim::can_be_judged))
    }
}

/// Options about servers.
#[derive(Debug, Clone, Args)]
pub(super) struct ServerOptions {
    /// Where servers run: auto, container, local or external
    #[arg(long, value_name = "BACKEND", default_value = "auto")]
    pub(super) on: On,
    /// Fetch nothing: no image, no binaries
    #[arg(long)]
    pub(super) offline: bool,
}

/// The option that holds a run to its lock.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct LockOptions {
    /// Refuse to run when a file or a server is not as `loadlab.lock` says
    #[arg(long)]
    pub(super) locked: bool,
}

/// Whether standard error takes colour.
pub(super) fn colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Columns of the terminal, 100 where there is none.
pub(super) fn width() -> u16 {
    let terminal = console::Term::stdout();
    if terminal.is_term() { terminal.size().1.clamp(80, 160) } else { 100 }
}
