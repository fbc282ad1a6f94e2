//! `loadlab compare A B`: two runs, or two treatments of one run, against each other.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;

use super::differences::differences;
use super::failure::{Exit, Failure};
use super::report::find;
use super::{options, print, say};
use crate::compare::{Line, MIN_BLOCKS, Side, versus_group, versus_run};
use crate::model::{Design, Group};
use crate::report;
use crate::store::{StoredRun, read_run};

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub(super) struct CompareArguments {
    /// What is compared to: a run, or levels of one run such as `storage=logged,batch=500`
    first: String,
    /// What is compared: a run, or levels of the same run
    second: String,
    /// The run whose levels are compared [default: the newest]
    #[arg(long, value_name = "RUN")]
    run: Option<PathBuf>,
    /// Folder of results
    #[arg(long, value_name = "FOLDER", default_value = "results")]
    results: PathBuf,
    /// `table`, or `json` for machines
    #[arg(long, default_value = "table", value_parser = ["table", "json"])]
    format: String,
    /// End with exit code 4 when a step of the second is shown to be slower by more than this: `slower=5%`
    #[arg(long, value_name = "CONDITION")]
    fail_if: Option<Slower>,
    /// Compare runs of different machines all the same
    #[arg(long)]
    anyway: bool,
    /// A run and its repetition: that they have nothing in common is a finding then, and no mistake of the caller's.
    #[arg(skip)]
    repetition: bool,
}

/// `slower=5%`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slower(f64);

impl FromStr for Slower {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix("slower=").and_then(|rest| rest.trim_end().strip_suffix('%'));
        let percent = number.and_then(|number| number.trim().parse::<f64>().ok());
        let share = percent.map(|percent| percent / 100.0).filter(|share| (0.0..100.0).contains(share));
        share.map(Self).ok_or_else(|| "expected `slower=5%`".to_owned())
    }
}

impl CompareArguments {
    /// Two runs, whatever machines they were made on.
    pub(super) fn of_runs(first: &Path, second: &Path, format: &str, fail_if: Option<Slower>) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        Self {
            first: text(first),
            second: text(second),
            run: None,
            results: PathBuf::from("results"),
            format: format.to_owned(),
            fail_if,
            anyway: true,
            repetition: true,
        }
    }
}

/// Why there is nothing to show.
const NOTHING_IN_COMMON: &str = "the two have no step in common that is valid in both";

pub(super) fn compare(arguments: &CompareArguments) -> Result<Exit, Failure> {
    if arguments.format == "json" {
        let (json, exit) = compared(arguments)?;
        print(&format!("{json:#}\n"));
        return Ok(exit);
    }
    let (within, lines, differing) = sides(arguments)?;
    for difference in &differing {
        print(&format!("differs: {difference}\n"));
    }
    let table = if lines.is_empty() {
        String::new()
    } else {
        report::versus_table(&lines, !within, options::width())
    };
    print(&if differing.is_empty() { table } else { format!("\n{table}") });
    Ok(ended(arguments, &lines))
}

/// The comparison for machines.
pub(super) fn compared(arguments: &CompareArguments) -> Result<(serde_json::Value, Exit), Failure> {
    let (_, lines, differing) = sides(arguments)?;
    let slower = slower(arguments, &lines);
    let json = serde_json::json!({"differences": differing, "lines": lines, "slower": slower});
    Ok((json, ended(arguments, &lines)))
}

/// Whether both sides are of one run, the lines, and what else differs.
fn sides(arguments: &CompareArguments) -> Result<(bool, Vec<Line>, Vec<String>), Failure> {
    let levels = |text: &str| text.contains('=') && !Path::new(text).exists();
    let within = levels(&arguments.first) && levels(&arguments.second);
    let (lines, differing) = if within { treatments(arguments)? } else { runs(arguments)? };
    if lines.is_empty() {
        if !arguments.repetition {
            return Err(Failure::wrong(format!("error: {NOTHING_IN_COMMON}")));
        }
        say(&format!("note: {NOTHING_IN_COMMON}"));
    }
    Ok((within, lines, differing))
}

fn slower(arguments: &CompareArguments, lines: &[Line]) -> Option<usize> {
    arguments.fail_if.map(|limit| lines.iter().filter(|line| is_slower(line, limit)).count())
}

fn ended(arguments: &CompareArguments, lines: &[Line]) -> Exit {
    match slower(arguments, lines) {
        Some(count) if count > 0 => {
            say(&format!("{count} of {} lines are slower by more than the limit", lines.len()));
            Exit::Found
        }
        _ => Exit::Done,
    }
}

/// All of the interval lies beyond the limit; fewer than six blocks show nothing.
fn is_slower(line: &Line, limit: Slower) -> bool {
    let enough = line.blocks.0.min(line.blocks.1) >= MIN_BLOCKS;
    enough && line.together.is_some_and(|(_, high)| high < 1.0 / (1.0 + limit.0))
}

fn runs(arguments: &CompareArguments) -> Result<(Vec<Line>, Vec<String>), Failure> {
    let first = open(Some(Path::new(&arguments.first)), &arguments.results)?;
    let second = open(Some(Path::new(&arguments.second)), &arguments.results)?;
    if first.path == second.path {
        return Err(Failure::wrong(format!("error: both are the run {}", first.path.display())));
    }
    let found = differences(&first, &second);
    if !found.machine.is_empty() && !arguments.anyway {
        return Err(Failure::wrong(format!(
            "error: the runs were made on different machines, or in different places of one, so their times say nothing about each other:\n  {}\n  \
             what to do: repeat one of them where the other was made, or compare with --anyway",
            found.machine.join("\n  ")
        )));
    }
    let (a, b) = (first.journal.records(), second.journal.records());
    let side = |records, design| Side { records, design };
    let lines = versus_run(side(&a, &first.manifest.design), side(&b, &second.manifest.design));
    Ok((lines, found.all()))
}

fn treatments(arguments: &CompareArguments) -> Result<(Vec<Line>, Vec<String>), Failure> {
    let run = open(arguments.run.as_deref(), &arguments.results)?;
    let design = &run.manifest.design;
    let (first, second) = (group(design, &arguments.first)?, group(design, &arguments.second)?);
    let records = run.journal.records();
    say(&format!("in run {} of {}", run.manifest.run, run.manifest.experiment));
    Ok((versus_group(Side { records: &records, design }, &first, &second), Vec::new()))
}

fn open(run: Option<&Path>, results: &Path) -> Result<StoredRun, Failure> {
    let stored = read_run(&find(run, results)?)?;
    if stored.manifest.smoke {
        return Err(Failure::wrong(format!(
            "error: {} is a smoke run: its numbers prove nothing about speed and are not compared",
            stored.path.display()
        )));
    }
    Ok(stored)
}

/// Levels as written on the command line, `storage=logged,batch=500`.
fn group(design: &Design, text: &str) -> Result<Group, Failure> {
    let mut levels = Vec::new();
    for part in text.split(',') {
        let (name, level) = part.split_once('=').unwrap_or((part, ""));
        let factor =
            design.factors.iter().position(|factor| factor.name == name.trim()).ok_or_else(|| {
                let names: Vec<&str> = design.factors.iter().map(|factor| factor.name.as_str()).collect();
                Failure::wrong(format!(
                    "error: there is no factor `{}`: expected one of {}",
                    name.trim(),
                    names.join(", ")
                ))
            })?;
        let known = &design.factors[factor].levels;
        let index = known.iter().position(|known| known.name == level.trim()).ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|level| level.name.as_str()).collect();
            Failure::wrong(format!(
                "error: {} has no level `{}`: expected one of {}",
                name.trim(),
                level.trim(),
                names.join(", ")
            ))
        })?;
        levels.push((factor, index));
    }
    levels.sort_unstable();
    Ok(Group { levels })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_or_refused() {
        assert_eq!("slower=5%".parse(), Ok(Slower(0.05)));
        assert_eq!("slower=2.5 %".parse(), Ok(Slower(0.025)));
        for wrong in ["slower=5", "faster=5%", "slower=-1%", "slower=x%", ""] {
            assert!(wrong.parse::<Slower>().is_err(), "{wrong}");
        }
    }
}
