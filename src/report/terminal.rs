//! Tables for a terminal, in plain ASCII so that they survive logs, mails and tickets.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::layout::{Section, layout};
use crate::compare::Summary;

/// The summary as text, no line longer than `width` (80 at least) unless a single word is.
#[must_use]
pub fn table(summary: &Summary, width: u16) -> String {
    let width = width.max(80);
    let layout = layout(summary, false);
    let mut blocks: Vec<String> = layout.sections.iter().map(|section| draw(section, width)).collect();
    let notes = layout.notes.iter().map(|note| wrap(note, usize::from(width)));
    blocks.push(notes.collect::<Vec<_>>().join("\n"));
    format!("{}\n", blocks.join("\n\n"))
}

pub(super) fn draw(section: &Section, width: u16) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_BORDERS_ONLY_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width).force_no_tty();
    table.set_header(section.header.clone());
    table.add_rows(section.rows.clone());
    for (index, words) in section.words.iter().enumerate() {
        if let (false, Some(column)) = (*words, table.column_mut(index)) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!("{}\n{}", section.title, table.trim_fmt())
}

/// Breaks a note at spaces; following lines are indented.
pub(super) fn wrap(text: &str, width: usize) -> String {
    let mut lines = vec![String::from("*")];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        if line.chars().count() + 1 + word.chars().count() > width && line.trim().len() > 1 {
            lines.push(format!("  {word}"));
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.join("\n")
}
