//! The report of a run as Markdown.

use std::fmt::Write;

use super::heading::SMOKE;
use super::layout::{Section, layout};
use super::machine::machine;
use super::notes::capitalised;
use super::numbers::short_seconds;
use crate::compare::Summary;
use crate::store::RunManifest;

/// Question, tables, notes and where the numbers come from.
#[must_use]
pub fn markdown(summary: &Summary, run: &RunManifest) -> String {
    let layout = layout(summary, true);
    let mut text = format!("# {}\n\n{}\n", escape(&run.experiment), escape(run.question.trim()));
    if run.smoke {
        text.insert_str(0, &format!("# {SMOKE}\n\n"));
    }
    for section in &layout.sections {
        draw(&mut text, section);
    }
    text.push_str("\n## Notes\n\n");
    let sync = summary.sync_seconds.map(|seconds| {
        format!("A sync took {} (median over trials): a safe COMMIT takes no less.", short_seconds(seconds))
    });
    for note in layout.notes.iter().chain(&sync) {
        let _ = writeln!(text, "- {}", escape(note));
    }
    provenance(&mut text, run);
    text
}

pub(super) fn draw(text: &mut String, section: &Section) {
    let _ = write!(text, "\n## {}\n\n", escape(&section.title));
    draw_table(text, section);
}

/// The table without its title.
pub(super) fn draw_table(text: &mut String, section: &Section) {
    row(text, &section.header);
    let rules = section.words.iter().map(|words| if *words { "---" } else { "---:" });
    let _ = writeln!(text, "| {} |", rules.collect::<Vec<_>>().join(" | "));
    for cells in &section.rows {
        row(text, cells);
    }
}

fn row(text: &mut String, cells: &[String]) {
    let cells = cells.iter().map(|cell| escape(cell));
    let _ = writeln!(text, "| {} |", cells.collect::<Vec<_>>().join(" | "));
}

fn provenance(text: &mut String, run: &RunManifest) {
    let host = &run.host;
    let known = |value: Option<&String>| value.cloned().unwrap_or_else(|| "unknown".to_owned());
    let memory =
        host.memory_bytes.map_or_else(|| "unknown".to_owned(), |bytes| format!("{} MiB", bytes >> 20));
    let cores = host.cores.map_or_else(|| "unknown".to_owned(), |cores| cores.to_string());
    let mut facts = vec![
        format!("Run {} of {} (SHA-256 {}), seed {}", run.run, run.spec.file, run.spec.hash, run.seed),
        format!("loadlab {} ({}), results schema {}", run.tool.version, run.tool.commit, run.schema_version),
        format!(
            "{} {} on {}, {}, CPUs: {cores}, memory: {memory}, results on {}",
            host.os,
            known(host.kernel.as_ref()),
            host.architecture,
            known(host.cpu_model.as_ref()),
            known(host.filesystem.as_ref())
        ),
    ];
    facts.extend(machine(host).into_iter().nth(1).map(|set_up| capitalised(&set_up)));
    facts.extend(
        run.environments.iter().map(|choice| format!("Environment {}: {}", choice.environment, choice.why)),
    );
    text.push_str("\n## Where this comes from\n\n");
    for fact in facts {
        let _ = writeln!(text, "- {}", escape(&fact));
    }
}

/// Text that may come from an experiment file, so that it cannot break a table or become markup.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '|' | '<' | '*' | '_' | '[' | ']' | '\\' => out.extend(['\\', character]),
            '\n' | '\r' => out.push(' '),
            other => out.push(other),
        }
    }
    out
}
