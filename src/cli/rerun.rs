//! `loadlab rerun RUN`: a run again, from its folder alone, and both against each other.

use std::path::{Path, PathBuf};

use clap::{Args, FromArgMatches};

use super::claims::judged;
use super::compare::{CompareArguments, Slower, compare, compared};
use super::failure::{Exit, Failure};
use super::options::ServerOptions;
use super::report::{controlled, find};
use super::run::{Repeat, RunArguments, execute};
use super::{options, print, say};
use crate::compare::Judgement;
use crate::report;
use crate::spec;
use crate::store::{LOCK_FILE, LockFile, RunManifest, StoredRun, ToolVersion, Workspace, read_run};

/// Arguments of `rerun`.
#[derive(Debug, Args)]
pub(super) struct RerunArguments {
    /// The run: its folder, its name, or the name of an experiment for its newest run
    run: PathBuf,
    #[command(flatten)]
    server: ServerOptions,
    /// Folder of results, for RUN and for the new run [default: where RUN stands, else `results`]
    #[arg(long, value_name = "FOLDER")]
    results: Option<PathBuf>,
    /// Other environment files than those of the run
    #[arg(long, value_name = "FOLDER")]
    environments: Option<PathBuf>,
    /// Folder with files that the run did not keep, at their places from the experiment's folder
    #[arg(long, value_name = "FOLDER")]
    inputs: Option<PathBuf>,
    /// Refuse to run when a file or a server is not what the run had
    #[arg(long)]
    locked: bool,
    /// Let `command` steps run programs on this machine; the run's own permission does not count
    #[arg(long)]
    allow_commands: bool,
    /// Let numbers count although other runs of loadlab are at work on this machine
    #[arg(long)]
    beside_others: bool,
    /// `table`, or `json` for machines
    #[arg(long, default_value = "table", value_parser = ["table", "json"])]
    format: String,
    /// End with exit code 4 when a step is shown to be slower than in the first run by more than this: `slower=5%`
    #[arg(long, value_name = "CONDITION")]
    fail_if: Option<Slower>,
}

pub(super) async fn rerun(arguments: RerunArguments) -> Result<Exit, Failure> {
    let named = arguments.results.clone().unwrap_or_else(|| PathBuf::from("results"));
    let first = read_run(&find(Some(&arguments.run), &named)?)?;
    let results = arguments.results.clone().or_else(|| results_of(&first)).unwrap_or(named);
    let workspace = Workspace::of(&first, arguments.inputs.as_deref())
        .map_err(|error| Failure::wrong(format!("error: {error}")))?;
    let mut again = run_arguments(&arguments, &first.manifest, &workspace, &results)?;
    same_experiment(&again, &first, arguments.environments.is_some())?;
    let lock = LockFile::read(&first.path.join(LOCK_FILE))?;
    again.repeat = Repeat {
        of: Some(first.manifest.run.clone()),
        lock: lock.and_then(|mut lock| lock.experiments.remove(&first.manifest.experiment)),
        quiet: arguments.format == "json",
    };
    say(&format!("repeating run {} of {}", first.manifest.run, first.manifest.experiment));
    let ended = Box::pin(execute(again)).await?;
    drop(workspace);
    let Some(path) = ended.path else { return Ok(ended.exit) };
    let second = read_run(&path)?;
    let found = show(&arguments, &first, &second);
    // How the trials ended says more than that there is nothing to compare.
    if ended.exit == Exit::Done { found } else { Ok(ended.exit) }
}

/// The results folder in which a run stands.
fn results_of(run: &StoredRun) -> Option<PathBuf> {
    let path = run.path.canonicalize().ok()?;
    let experiment = path.parent()?;
    (experiment.file_name()? == run.manifest.experiment.as_str())
        .then(|| experiment.parent().map(Path::to_owned))?
}

/// The command line of the first run, for another place. Going through the parser gives every option that is not
/// mentioned its default.
fn run_arguments(
    arguments: &RerunArguments,
    first: &RunManifest,
    workspace: &Workspace,
    results: &Path,
) -> Result<RunArguments, Failure> {
    let used = &first.spec.options;
    let text = |path: &Path| path.as_os_str().to_owned();
    let mut words = vec!["run".into(), text(&workspace.experiment), "--results".into(), text(results)];
    let mut option = |name: &str, value: &str| words.extend([name.into(), value.into()]);
    used.profile.iter().for_each(|profile| option("--profile", profile));
    used.set.iter().for_each(|set| option("--set", set));
    used.only.iter().for_each(|only| option("--only", only));
    option("--on", &arguments.server.on.to_string());
    option("--format", &arguments.format);
    if let Some(folder) = arguments.environments.as_ref().or(workspace.environments.as_ref()) {
        words.extend(["--environments".into(), text(folder)]);
    }
    // The first run was allowed to be as large as it was.
    let flags = [
        (true, "--many"),
        (first.smoke, "--smoke"),
        // Controls are trials of the plan, and these are to be the same.
        (first.controls.is_some(), "--controls"),
        (first.controls.is_none(), "--no-controls"),
        (arguments.server.offline, "--offline"),
        (arguments.locked, "--locked"),
        (arguments.allow_commands, "--allow-commands"),
        (arguments.beside_others, "--beside-others"),
    ];
    words.extend(flags.into_iter().filter(|(on, _)| *on).map(|(_, flag)| flag.into()));
    let parsed = RunArguments::augment_args(clap::Command::new("run")).try_get_matches_from(words);
    let parsed = parsed.and_then(|matches| RunArguments::from_arg_matches(&matches));
    parsed.map_err(|error| {
        Failure::wrong(format!(
            "error: run {} has options that this loadlab does not take: {error}",
            first.run
        ))
    })
}

/// Refuses to repeat something else than the run.
fn same_experiment(again: &RunArguments, first: &StoredRun, other_environments: bool) -> Result<(), Failure> {
    let manifest = &first.manifest;
    let spec = spec::load(&again.file, &again.spec.load()).map_err(|found| {
        let why = if manifest.inputs.is_empty() { without_inputs(first) } else { String::new() };
        Failure::wrong(format!("{}{why}", found.render(options::colour())))
    })?;
    if spec.hash == manifest.spec.hash {
        return Ok(());
    }
    if other_environments {
        say("note: the environment files are not those of the run, as asked for");
        return Ok(());
    }
    if manifest.inputs.is_empty() {
        return Err(Failure::wrong(format!(
            "error: the experiment file alone does not give the experiment of the run{}",
            without_inputs(first)
        )));
    }
    let now = ToolVersion::current();
    if now.version != manifest.tool.version {
        say(&format!(
            "note: loadlab {} understands the files in another way than {}, which made the run",
            now.version, manifest.tool.version
        ));
        return Ok(());
    }
    Err(Failure::wrong(format!(
        "error: {}: the files in `inputs/` do not give the experiment that run.json tells of (hash {} and {}): the folder was changed by hand",
        first.path.display(),
        spec.hash,
        manifest.spec.hash
    )))
}

fn without_inputs(first: &StoredRun) -> String {
    format!(
        "\n  {} is a run of an older loadlab, which kept the experiment file but none of the files that it names\n  \
         what to do: give the folder of its environment files with --environments, or run the original file with `loadlab run`",
        first.path.display()
    )
}

fn show(arguments: &RerunArguments, first: &StoredRun, second: &StoredRun) -> Result<Exit, Failure> {
    let both = |run: &StoredRun| {
        let records = run.journal.records();
        judged(&run.manifest, &records, controlled(&run.manifest, &records).as_ref())
    };
    let claims = (both(first), both(second));
    if first.manifest.smoke {
        say("the run was a smoke run, whose numbers say nothing: they are not compared");
        if arguments.format == "json" {
            print(&format!(
                "{:#}\n",
                serde_json::json!({"results": second.path, "rerun_of": first.manifest.run})
            ));
        }
        return Ok(Exit::Done);
    }
    let compare_arguments =
        CompareArguments::of_runs(&first.path, &second.path, &arguments.format, arguments.fail_if);
    if arguments.format == "json" {
        let (comparison, exit) = compared(&compare_arguments)?;
        let json = serde_json::json!({
            "results": second.path, "rerun_of": first.manifest.run, "comparison": comparison,
            "claims": verdicts(&claims.0, &claims.1),
        });
        print(&format!("{json:#}\n"));
        return Ok(exit);
    }
    print(&format!("\nAgainst run {}, which was repeated:\n\n", first.manifest.run));
    let exit = compare(&compare_arguments)?;
    if !claims.0.is_empty() {
        print(&format!("\n{}", report::verdicts_table(&claims.0, &claims.1, options::width())));
    }
    Ok(exit)
}

/// Claims with both verdicts, for machines.
fn verdicts(first: &[Judgement], second: &[Judgement]) -> Vec<serde_json::Value> {
    let pairs = report::verdict_pairs(first, second).into_iter();
    pairs.map(|(first, second)| serde_json::json!({"first": first, "second": second})).collect()
}
