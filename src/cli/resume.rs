//! `loadlab run --resume`: an interrupted run is found, and completed only as what it was begun as.

use std::path::{Path, PathBuf};

use super::differences::differing_hosts;
use super::failure::Failure;
use super::options::ControlOptions;
use super::run::RunArguments;
use crate::environment::choose::On;
use crate::model::Backend;
use crate::plan::Plan;
use crate::spec::{self, Spec};
use crate::store::{HostFacts, OptionsUsed, RunFolder, newest_run, read_run};

/// The folder to resume; options that the first start used apply again.
pub(super) fn resumed(arguments: &mut RunArguments, run: &str) -> Result<PathBuf, Failure> {
    let name = spec::load(&arguments.file, &arguments.spec.load())?.name;
    let path = if run.is_empty() {
        newest_run(&arguments.results, Some(&name))?
    } else {
        Some(arguments.results.join(&name).join(run))
            .filter(|path| path.is_dir())
            .or_else(|| Some(PathBuf::from(run)))
    };
    let path = path.filter(|path| path.join("run.json").is_file()).ok_or_else(|| {
        Failure::wrong(format!("error: no run of {name} to resume in {}", arguments.results.display()))
    })?;
    let stored = read_run(&path)?.manifest;
    let options = stored.spec.options;
    if arguments.spec.used() == OptionsUsed::default() {
        arguments.spec.profile = options.profile;
        arguments.spec.set = options.set;
        arguments.spec.only = options.only;
    }
    arguments.spec.smoke |= stored.smoke;
    arguments.beside_others |= options.beside_others;
    let controls = stored.controls.is_some();
    if arguments.controls.asked().is_some_and(|asked| asked != controls) {
        return Err(Failure::wrong(format!(
            "error: {} was begun {} controls, which are part of its plan: resume it without {}, or start a new run",
            path.display(),
            if controls { "with" } else { "without" },
            if controls { "--no-controls" } else { "--controls" },
        )));
    }
    arguments.controls = ControlOptions::of(Some(controls));
    for choice in &stored.environments {
        // The rest of a run must not land on another backend than its first half.
        let on = on(choice.backend);
        if arguments.server.on != On::Auto && arguments.server.on != on {
            return Err(Failure::wrong(format!(
                "error: {} was begun with {} on backend {on}: resume it without --on, or start a new run",
                path.display(),
                choice.environment
            )));
        }
        arguments.settled.insert(choice.environment.clone(), on);
    }
    Ok(path)
}

fn on(backend: Backend) -> On {
    match backend {
        Backend::Container => On::Container,
        Backend::Local => On::Local,
        Backend::External => On::External,
    }
}

/// The folder again with its plan, if that is still the one it was made for.
pub(super) fn reopen(path: &Path, spec: &Spec, plan: Plan) -> Result<(RunFolder, Plan), Failure> {
    let folder = RunFolder::open(path)?;
    let manifest = folder.manifest();
    let control = manifest.controls.as_ref().and_then(|controls| controls.treatment);
    let plan = match control.filter(|index| *index < plan.treatments()) {
        Some(index) => plan.with_control(index),
        None => plan,
    };
    if manifest.spec.hash != spec.hash || manifest.order_digest != plan.order_digest() {
        return Err(Failure::wrong(format!(
            "error: {} cannot be resumed: the experiment file, a file it names or the options have changed since it was started \
             (its text is in run.json); start a new run instead",
            path.display()
        )));
    }
    let differs = differing_hosts(&manifest.host, &HostFacts::read(path));
    if !differs.is_empty() {
        return Err(Failure::environment(format!(
            "error: {} was begun on another machine, or this one was changed since: {}; complete it there, or start a new run",
            path.display(),
            differs.join("; ")
        )));
    }
    Ok((folder, plan))
}
