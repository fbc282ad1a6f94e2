//! `command` steps: the program, its folder, and captures that can be found.

use std::path::{Component, Path};

use super::StepBinder;
use crate::model::{Capture, CaptureFrom, Command, Stream, Unit};
use crate::spec::diagnostic::Diagnostics;
use crate::spec::wire::step::{CaptureFile, CommandFile};

/// Characters no argument can hold: the system ends it there.
const NUL: char = '\0';
/// Names of numbers that every step has; a capture of that name could not be told from them.
const TAKEN: [&str; 4] = ["seconds", "rows_per_second", "wal_bytes", "client_cpu_seconds"];

impl StepBinder<'_> {
    pub(super) fn command(&self, file: &CommandFile, path: &str, found: &mut Diagnostics) -> Option<Command> {
        let before = found.items.len();
        let run: Vec<String> = file.run.iter().map(|word| word.0.clone()).collect();
        if run.first().is_none_or(|program| program.trim().is_empty()) {
            let problem = self.tree.problem(&format!("{path}.run"), "no program is named here");
            found.push(problem.expected("a list such as `[pgbench, -n, -T, 10]`, the program first"));
        }
        if let Some(index) = run.iter().position(|word| word.contains(NUL)) {
            let problem = self.tree.problem(&format!("{path}.run.{index}"), "an argument cannot hold NUL");
            found.push(problem.hint("take the character out"));
        }
        let folder = file.folder.clone().unwrap_or_else(|| ".".to_owned());
        let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(&folder).components().all(inside) {
            let problem = self.tree.problem(
                &format!("{path}.folder"),
                format!("`{folder}` is outside of the experiment's folder"),
            );
            found.push(problem.expected("a folder below the folder of the experiment file, without `..`"));
        } else if !self.folder.join(&folder).is_dir() {
            let problem =
                self.tree.problem(&format!("{path}.folder"), format!("there is no folder `{folder}`"));
            found.push(problem.expected("a folder below the folder of the experiment file"));
        }
        let captures = file.captures.iter().filter_map(|(name, capture)| {
            self.capture(name, capture, &format!("{path}.captures.{name}"), found)
        });
        let captures = captures.collect();
        (found.items.len() == before).then_some(Command { run, folder, captures })
    }

    fn capture(
        &self,
        name: &str,
        file: &CaptureFile,
        path: &str,
        found: &mut Diagnostics,
    ) -> Option<Capture> {
        let fits = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.len() <= 40
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if !fits {
            let problem = self.tree.problem(path, format!("`{name}` cannot be the name of a capture"));
            found.push(
                problem
                    .expected("a lower-case letter, then lower-case letters, digits and `_`, at most 40")
                    .hint("the metric is called `<step>.<capture>`"),
            );
            return None;
        }
        if TAKEN.contains(&name) {
            let problem = self.tree.problem(path, format!("every step has a number called `{name}` already"));
            found.push(problem.hint("give the capture another name, such as `own_seconds`"));
            return None;
        }
        if name == "rows" && Unit::from(file.unit) != Unit::Rows {
            let problem = self.tree.problem(path, "a capture called `rows` counts the rows that were moved");
            found.push(problem.expected("`unit: rows`, or another name"));
            return None;
        }
        let from = match (&file.regex, &file.json) {
            (Some(regex), None) => self.regex(regex, &format!("{path}.regex"), found)?,
            (None, Some(json)) => self.json(json, &format!("{path}.json"), found)?,
            _ => {
                let problem = self.tree.problem(path, "a capture is found in exactly one way");
                found.push(problem.expected("either `regex` or `json`"));
                return None;
            }
        };
        Some(Capture {
            name: name.to_owned(),
            stream: file.stream.map_or(Stream::Stdout, Stream::from),
            from,
            unit: Unit::from(file.unit),
        })
    }

    fn regex(&self, text: &str, path: &str, found: &mut Diagnostics) -> Option<CaptureFrom> {
        let compiled = match regex::Regex::new(text) {
            Ok(compiled) => compiled,
            Err(error) => {
                // The last line says why, those before draw the place, which we have.
                let words = error.to_string();
                let why = words.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                let problem = self.tree.problem(path, format!("this is no regular expression: {why}"));
                found.push(problem.hint("in YAML, single quotes keep backslashes: 'tps = (\\d+)'"));
                return None;
            }
        };
        let groups = compiled.captures_len() - 1;
        if groups != 1 {
            let problem = self.tree.problem(path, format!("this regular expression has {groups} groups"));
            found.push(
                problem
                    .expected("exactly one group in parentheses, which is the number")
                    .hint("write `(?:...)` for parentheses that only hold together"),
            );
            return None;
        }
        Some(CaptureFrom::Regex(text.to_owned()))
    }

    fn json(&self, text: &str, path: &str, found: &mut Diagnostics) -> Option<CaptureFrom> {
        let parts: Vec<String> = text.split('.').map(str::to_owned).collect();
        if parts.iter().any(String::is_empty) || text.starts_with('$') {
            let problem = self.tree.problem(path, format!("`{text}` is no path into a JSON document"));
            found.push(problem.expected("keys and list indexes between dots, such as `runs.0.seconds`"));
            return None;
        }
        Some(CaptureFrom::Json(parts))
    }
}
