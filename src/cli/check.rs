//! `loadlab check FILE...`: every mistake, without any server.

use std::path::PathBuf;

use clap::Args;

use super::failure::Exit;
use super::options::{SpecOptions, colour};
use super::{print, say};
use crate::spec::{self, Diagnostics};

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(super) struct CheckArguments {
    /// Experiment files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    spec: SpecOptions,
    /// `text`, or `json` for machines
    #[arg(long, default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

pub(super) fn check(arguments: &CheckArguments) -> Exit {
    let mut wrong = false;
    let mut all = Vec::new();
    for file in &arguments.files {
        let (found, report) = match spec::load(file, &arguments.spec.load()) {
            Err(found) => (found, None),
            Ok(spec) => match spec.check_all() {
                Err(found) => (found, None),
                Ok(report) => (report.warnings.clone(), Some(report)),
            },
        };
        wrong |= report.is_none();
        if arguments.format == "json" {
            all.push(serde_json::json!({
                "file": file,
                "ok": report.is_some(),
                "diagnostics": serde_json::to_value(&found).expect("diagnostics are plain data"),
            }));
            continue;
        }
        show(&found);
        if let Some(report) = report {
            print(&format!("{}: {report}\n", file.display()));
        }
    }
    if arguments.format == "json" {
        print(&format!("{}\n", serde_json::to_string_pretty(&all).expect("values are plain data")));
    }
    if wrong { Exit::Wrong } else { Exit::Done }
}

fn show(found: &Diagnostics) {
    if !found.is_empty() {
        say(found.render(colour()).trim_end());
        say("");
    }
}
