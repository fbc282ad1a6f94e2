//! Dump steps: tables into the exchange folder, what they hold written down, then dropped.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::Taken;
use crate::data::Content;
use crate::engine::postgres::load::WorkError;
use crate::engine::postgres::{Exchange, quote_ident, verify};
use crate::environment::program::{Pipeline, PipelineEnd, Program};
use crate::environment::{EnvironmentError, Programs};
use crate::model::{Dump, DumpFormat, Measurement, Table};
use crate::run::stage::Stage;

/// A dump that a step has made.
#[derive(Debug, Clone)]
pub(in crate::run) struct Dumped {
    /// Its name in the exchange folder.
    pub(super) file: String,
    /// What the tables held, copy by copy.
    pub(super) contents: Vec<(usize, Vec<Content>)>,
}

pub(super) async fn run_dump(stage: &Stage<'_>, dump: &Dump, taken: &mut Taken) -> Result<(), WorkError> {
    let exchange = exchange(stage)?;
    let tables: Vec<&Arc<Table>> = dump.tables.iter().map(|table| &stage.tables[*table]).collect();
    let mut contents = Vec::new();
    for table in &dump.tables {
        let content = verify::stored_content(&stage.owner.client, &stage.tables[*table]).await?;
        contents.push((*table, content));
    }
    let file = format!("{}.dump", taken.measurement.step);
    let relations = relations(stage, &tables).await?;
    let pipeline = Pipeline(vec![pg_dump(dump, &relations, &format!("{}/{file}", exchange.server_dir))]);
    let ready = stage.instance.running.programs(pipeline).await.map_err(|error| failed(&error))?;
    let before = stage.before().await?;
    let (seconds, end) = timed(ready).await;
    taken.measurement.spans.seconds = seconds;
    let end = end.map_err(|error| failed(&error))?;
    let at_end = stage.at_end().await?;

    let rows = contents.iter().flat_map(|(_, copies)| copies).map(|content| content.rows).sum();
    taken.measurement.rows = Some(rows);
    taken.measurement.rows_expected = Some(rows);
    taken.measurement.payload_bytes = size(&exchange.client_dir.join(&file));
    stage.conclude(&before, &at_end, 0, None, &mut taken.measurement).await?;
    stage.sizes(&tables, &mut taken.measurement).await?;
    count_programs(&end, &mut taken.measurement);
    if dump.drop {
        let names: Vec<String> =
            tables.iter().flat_map(|table| &table.copies).map(|copy| quote_ident(&copy.name)).collect();
        stage.owner.client.batch_execute(&format!("DROP TABLE {}", names.join(", "))).await?;
    }
    stage.dumped(taken.measurement.step.clone(), Dumped { file, contents });
    Ok(())
}

/// The folder that server and client both see.
pub(super) fn exchange<'a>(stage: &'a Stage<'_>) -> Result<&'a Exchange, WorkError> {
    stage.instance.exchange.as_ref().ok_or_else(|| {
        WorkError::Protocol(
            "this backend shares no folder with the server; use --on local or container".to_owned(),
        )
    })
}

/// The clock around programs that are ready.
pub(super) async fn timed(ready: Programs<'_>) -> (f64, Result<PipelineEnd, EnvironmentError>) {
    let start = Instant::now();
    let end = ready.await;
    (start.elapsed().as_secs_f64(), end)
}

pub(super) fn failed(error: &EnvironmentError) -> WorkError {
    WorkError::Program(error.to_string())
}

/// Programs of the trial are its client, wherever they run.
pub(super) fn count_programs(end: &PipelineEnd, measurement: &mut Measurement) {
    let Some(programs) = end.cpu_seconds else { return };
    measurement.client_cpu_seconds = measurement.client_cpu_seconds.map(|own| own + programs);
    if end.counted_with_server {
        let counters = &mut measurement.counters;
        counters.server_cpu_seconds = counters.server_cpu_seconds.map(|all| (all - programs).max(0.0));
    }
}

/// The tables with their partitions: `pg_dump --table` takes none of these along before 16.
async fn relations(stage: &Stage<'_>, tables: &[&Arc<Table>]) -> Result<Vec<String>, WorkError> {
    let names: Vec<String> =
        tables.iter().flat_map(|table| &table.copies).map(|copy| quote_ident(&copy.name)).collect();
    let sql = "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.oid IN (SELECT to_regclass(name)::oid FROM unnest($1::text[]) name UNION \
         SELECT relid::oid FROM unnest($1::text[]) name, pg_partition_tree(to_regclass(name))) ORDER BY c.oid";
    let rows = stage.owner.client.query(sql, &[&names]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

fn pg_dump(dump: &Dump, relations: &[String], file: &str) -> Program {
    let mut arguments = vec![format!("--format={}", dump.format.name()), format!("--file={file}")];
    arguments.extend(["--no-owner".to_owned(), "--no-privileges".to_owned()]);
    if dump.format == DumpFormat::Directory {
        arguments.push(format!("--jobs={}", dump.jobs));
    }
    arguments.extend(dump.compress.map(|level| format!("--compress={level}")));
    arguments.extend(relations.iter().map(|relation| format!("--table={relation}")));
    Program { name: "pg_dump", arguments }
}

/// Bytes of a file or of all files in a folder; `None` where they cannot be seen.
pub(super) fn size(path: &Path) -> Option<u64> {
    if !path.is_dir() {
        return Some(std::fs::metadata(path).ok()?.len());
    }
    let files: Vec<PathBuf> = std::fs::read_dir(path).ok()?.flatten().map(|entry| entry.path()).collect();
    files.iter().map(|file| Some(std::fs::metadata(file).ok()?.len())).sum()
}
