//! `read` steps: options checked, defaults filled in.

use super::StepBinder;
use crate::model::{By, Cache, CopyFormat, Decode, Read, ReadMethod, SelectMode, State, Table, TextOrBinary};
use crate::spec::diagnostic::Diagnostics;
use crate::spec::suggest::{did_you_mean, one_of};
use crate::spec::wire::step::{ByWord, ReadFile, ReadMethodFile, SelectModeFile};

impl StepBinder<'_> {
    pub(super) fn read(&self, file: &ReadFile, path: &str, found: &mut Diagnostics) -> Option<Read> {
        let table = self.table(&file.table, path, found);
        let clients = self.clients(file.clients, path, found);
        let method = match &file.method {
            ReadMethodFile::Select(select) => {
                let mode = match &select.mode {
                    None | Some(SelectModeFile::All) => SelectMode::All,
                    Some(SelectModeFile::Streamed) => SelectMode::Streamed,
                    Some(SelectModeFile::Portal(portal)) => {
                        SelectMode::Portal { fetch_size: portal.fetch_size }
                    }
                };
                if mode == (SelectMode::Portal { fetch_size: 0 }) {
                    let problem = self.tree.problem(
                        &format!("{path}.method.select.mode.portal.fetch_size"),
                        "a fetch size of 0 reads nothing",
                    );
                    found.push(problem.expected("at least 1"));
                    return None;
                }
                ReadMethod::Select {
                    mode,
                    format: select.format.map_or(TextOrBinary::Binary, TextOrBinary::from),
                }
            }
            ReadMethodFile::CopyOut(copy) => {
                ReadMethod::CopyOut { format: copy.format.map_or(CopyFormat::Text, CopyFormat::from) }
            }
            ReadMethodFile::Scan(_) => ReadMethod::Scan,
        };
        let by = self.shares(file, path, found);
        let table = table?;
        Some(Read {
            table,
            columns: self.read_columns(file.columns.as_ref(), &self.tables[table], path, found)?,
            method,
            decode: file.decode.map_or(Decode::None, Decode::from),
            clients: clients?,
            by: by?,
            cache: file.cache.map_or(Cache::AsIs, Cache::from),
            state: file.state.map_or(State::AsLoaded, State::from),
        })
    }

    /// What the shares of several clients are.
    fn shares(&self, file: &ReadFile, path: &str, found: &mut Diagnostics) -> Option<By> {
        match (file.by, &file.key) {
            (Some(ByWord::Key), Some(column)) => Some(By::Key { column: column.clone() }),
            (Some(ByWord::Key), None) => {
                let problem = self.tree.problem(&format!("{path}.by"), "the key is not named");
                found.push(problem.expected("`by: key, key: COLUMN` with an integer column"));
                None
            }
            (_, Some(_)) => {
                let problem =
                    self.tree.problem(&format!("{path}.key"), "clients share the table by its pages here");
                found.push(problem.hint("write `by: key` beside it, or take `key` out"));
                None
            }
            (_, None) => Some(By::Pages),
        }
    }

    fn read_columns(
        &self,
        names: Option<&Vec<String>>,
        table: &Table,
        path: &str,
        found: &mut Diagnostics,
    ) -> Option<Vec<String>> {
        let known = || table.columns.iter().map(|column| column.name.as_str());
        let Some(names) = names else { return Some(known().map(str::to_owned).collect()) };
        if names.is_empty() {
            found.push(
                self.tree
                    .problem(&format!("{path}.columns"), "no columns would be read")
                    .hint("leave `columns` away for all"),
            );
            return None;
        }
        let mut fine = true;
        for (index, name) in names.iter().enumerate() {
            if !known().any(|column| column == name) {
                let problem = self.tree.problem(
                    &format!("{path}.columns.{index}"),
                    format!("the table `{}` has no column `{name}`", table.name),
                );
                found.push(problem.expected(one_of(known())).maybe_hint(did_you_mean(name, known())));
                fine = false;
            }
        }
        fine.then(|| names.clone())
    }
}

/// The method is the name of a step that has none.
pub(super) fn default_name(step: &ReadFile) -> &'static str {
    match step.method {
        ReadMethodFile::Select(_) => "select",
        ReadMethodFile::CopyOut(_) => "copy_out",
        ReadMethodFile::Scan(_) => "scan",
    }
}
