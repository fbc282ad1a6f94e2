//! `docs/RESULTS.md`, made from the schema's tables.

use std::fmt::Write;

use super::schema::{CONTROLS, Column, FileSchema, SCHEMA_VERSION, ceilings, files};

/// The text of `docs/RESULTS.md`; a test compares it with the file.
#[must_use]
pub fn results_document() -> String {
    let mut text = format!(
        "# Columns of the results\n\n\
         Generated from `src/store/schema/`; do not edit. Schema version {SCHEMA_VERSION}. How to read the files: \
         [results/README.md](../results/README.md).\n\n\
         Every file has all its columns in every run, whatever the experiment; what is not known is null, never zero, NaN or \
         infinite. Columns are only added, and a change of meaning is a new name.\n\n\
         `treatments.parquet` (one row per treatment of the run) has `experiment`, `run`, `treatment` and one column per factor \
         under the factor's own name and type; the values of a named level are columns `factor.key`. Its columns differ between \
         experiments; join it on `run` and `treatment`.\n\n\
         Runs with controls have two files more. `{}` has the columns of `measurements.parquet`; a row is {}. No other file has rows \
         of control trials. `{}` comes last here.\n",
        CONTROLS.file,
        CONTROLS.row,
        ceilings::CEILINGS
    );
    let all = files();
    section(&mut text, "Identity: the first columns of every file", "", all[0].identity);
    for FileSchema { file, row, own, .. } in all {
        section(&mut text, &format!("`{file}`"), &format!("A row is {row}.\n\n"), own);
    }
    let introduction = format!("A row is {}.\n\n", ceilings::ROW);
    section(&mut text, &format!("`{}`", ceilings::CEILINGS), &introduction, ceilings::COLUMNS);
    text
}

fn section<V>(text: &mut String, title: &str, introduction: &str, columns: &[Column<V>]) {
    let _ = write!(
        text,
        "\n## {title}\n\n{introduction}| column | type | unit | meaning |\n| --- | --- | --- | --- |\n"
    );
    for Column { name, kind, unit, meaning, .. } in columns {
        let _ = writeln!(text, "| `{name}` | {} | {unit} | {meaning} |", kind.name());
    }
}
