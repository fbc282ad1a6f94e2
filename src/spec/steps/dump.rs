//! `dump` and `restore` steps: names resolved, options checked, defaults filled in.

use super::StepBinder;
use crate::model::{Dump, DumpFormat, DumpSource, Load, Restore, Step, StepKind, Through, Verify};
use crate::spec::diagnostic::Diagnostics;
use crate::spec::suggest::one_of;
use crate::spec::wire::step::{DumpFile, LoadFile, RestoreFile, StepFile, VerifyWord};

impl StepBinder<'_> {
    pub(super) fn dump(&self, file: &DumpFile, path: &str, found: &mut Diagnostics) -> Option<Dump> {
        let tables = match &file.tables {
            Some(names) => self.tables_named(names, path, found)?,
            None => (0..self.tables.len()).collect(),
        };
        if tables.is_empty() {
            let problem = self.tree.problem(&format!("{path}.tables"), "no table would be dumped");
            found.push(problem.hint("leave `tables` away for all"));
            return None;
        }
        if let Some(level) = file.compress.filter(|level| *level > 9) {
            let problem = self
                .tree
                .problem(&format!("{path}.compress"), format!("there is no compression level {level}"));
            found.push(problem.expected("0 to 9"));
        }
        Some(Dump {
            tables,
            format: file.format.map_or(DumpFormat::Directory, DumpFormat::from),
            jobs: file.jobs.unwrap_or(1),
            compress: file.compress,
            drop: file.drop.unwrap_or(true),
        })
    }

    pub(super) fn restore(
        &self,
        file: &RestoreFile,
        path: &str,
        before: &[Step],
        found: &mut Diagnostics,
    ) -> Option<Restore> {
        let named = file.tables.as_ref().map(|names| self.tables_named(names, path, found));
        let (from, format, tables) = if let Some(dump) = dump_step(before, &file.from) {
            if file.tables.is_some() {
                let path = format!("{path}.tables");
                let problem = self.tree.problem(&path, "the `dump` step says which tables there are");
                found.push(problem.hint("take `tables` out here"));
            }
            (DumpSource::Step(file.from.clone()), dump.format, dump.tables.clone())
        } else {
            let (source, format) = self.dump_at(&file.from, path, before, found)?;
            (source, format, named.unwrap_or_else(|| Some(Vec::new()))?)
        };
        Some(Restore {
            from,
            format,
            tables,
            through: file.through.map_or(Through::Direct, Through::from),
            jobs: file.jobs.unwrap_or(1),
            with_indexes: file.with_indexes.unwrap_or(true),
            verify: if file.verify == Some(VerifyWord::End) { Verify::End } else { Verify::Now },
        })
    }

    fn dump_at(
        &self,
        name: &str,
        path: &str,
        before: &[Step],
        found: &mut Diagnostics,
    ) -> Option<(DumpSource, DumpFormat)> {
        if self.tables.len() < self.table_names.len() {
            // The step may be there and only its table be wrong, which is told already.
            return None;
        }
        match self.files.dump(name) {
            Ok((path, format)) => Some((DumpSource::Path { name: name.to_owned(), path }, format)),
            Err(problem) => {
                let steps: Vec<&str> = before
                    .iter()
                    .filter(|step| matches!(step.kind, StepKind::Dump(_)))
                    .map(|step| &*step.name)
                    .collect();
                let mut wrong =
                    self.tree.problem(&format!("{path}.from"), problem.message).maybe_hint(problem.hint);
                if !steps.is_empty() {
                    wrong = wrong.expected(format!("a `dump` step before it ({}), or a path", one_of(steps)));
                }
                found.push(wrong);
                None
            }
        }
    }

    fn tables_named(&self, names: &[String], path: &str, found: &mut Diagnostics) -> Option<Vec<usize>> {
        let found_ones = names
            .iter()
            .enumerate()
            .map(|(index, name)| self.table_at(name, &format!("{path}.tables.{index}"), found));
        found_ones.collect()
    }
}

fn dump_step<'a>(before: &'a [Step], name: &str) -> Option<&'a Dump> {
    before.iter().find_map(|step| match &step.kind {
        StepKind::Dump(dump) if step.name == name => Some(dump),
        _ => None,
    })
}

/// `verify: auto` of loads and restores: at the end when a later step reads the table as it is, so that the read meets it
/// so. A dump takes the table away, and what comes back is verified by its restore.
pub(super) fn verify_at_end(files: &[StepFile], steps: &mut [Step]) {
    if files.len() != steps.len() {
        return;
    }
    for index in 0..steps.len() {
        let auto = match &files[index] {
            StepFile::Load(LoadFile { verify, .. }) | StepFile::Restore(RestoreFile { verify, .. }) => {
                matches!(verify, None | Some(VerifyWord::Auto))
            }
            _ => false,
        };
        let tables = match &steps[index].kind {
            StepKind::Load(load) => vec![load.table],
            StepKind::Restore(restore) => restore.tables.clone(),
            _ => Vec::new(),
        };
        if !auto || !tables.iter().any(|table| read_later(&steps[index + 1..], *table)) {
            continue;
        }
        match &mut steps[index].kind {
            StepKind::Load(Load { verify, .. }) | StepKind::Restore(Restore { verify, .. }) => {
                *verify = Verify::End;
            }
            _ => {}
        }
    }
}

fn read_later(later: &[Step], table: usize) -> bool {
    let until_dumped = later
        .iter()
        .take_while(|step| !matches!(&step.kind, StepKind::Dump(dump) if dump.tables.contains(&table)));
    until_dumped.into_iter().any(|step| matches!(&step.kind, StepKind::Read(read) if read.table == table))
}
