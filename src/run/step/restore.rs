//! Restore steps: `pg_restore` directly, or as a script into `psql`; then whether everything came back.

use std::path::Path;
use std::time::Instant;

use super::dump::{count_programs, exchange, failed, size, timed};
use super::verify::{Check, Restored};
use super::{Taken, run_check};
use crate::engine::postgres::DATABASE;
use crate::engine::postgres::load::WorkError;
use crate::environment::program::{Pipeline, Program};
use crate::model::{Backend, DumpFormat, DumpSource, Guard, Restore, Through, Verify};
use crate::run::Expectations;
use crate::run::stage::Stage;

/// Why rows of a dump that no table describes are only counted.
const NOT_DESCRIBED: &str = "no table of the experiment describes the dump; its rows are only counted";

/// A dump where the programs see it, and what it has to bring.
struct Source {
    path: String,
    bytes: Option<u64>,
    restored: Vec<Restored>,
}

pub(super) async fn run_restore(
    stage: &Stage<'_>,
    restore: &Restore,
    expectations: &mut Expectations,
    taken: &mut Taken,
) -> Result<(), WorkError> {
    let start = Instant::now();
    let source = source(stage, restore, &taken.measurement.step)?;
    let pipeline = Pipeline(programs(restore, &source.path));
    let ready = stage.instance.running.programs(pipeline).await.map_err(|error| failed(&error))?;
    taken.measurement.spans.prepare = Some(start.elapsed().as_secs_f64());
    stage.clear_the_way().await?;
    let before = stage.before().await?;
    let (seconds, end) = timed(ready).await;
    taken.measurement.spans.seconds = seconds;
    let end = end.map_err(|error| failed(&error))?;
    let at_end = stage.at_end().await?;

    taken.measurement.payload_bytes = source.bytes;
    stage.conclude(&before, &at_end, 0, None, &mut taken.measurement).await?;
    count_programs(&end, &mut taken.measurement);
    let tables: Vec<_> = restore.tables.iter().map(|table| &stage.tables[*table]).collect();
    if tables.is_empty() {
        return count_everything(stage, taken).await;
    }
    stage.sizes(&tables, &mut taken.measurement).await?;
    let check = Check::Restored(source.restored);
    if restore.verify == Verify::Now {
        run_check(stage, &check, expectations, &mut taken.measurement).await
    } else {
        taken.verify_later = Some(check);
        Ok(())
    }
}

fn source(stage: &Stage<'_>, restore: &Restore, step: &str) -> Result<Source, WorkError> {
    match &restore.from {
        DumpSource::Step(name) => {
            let dumped = stage
                .dump(name)
                .ok_or_else(|| WorkError::Protocol(format!("the step {name} has left no dump")))?;
            let exchange = exchange(stage)?;
            let restored = dumped.contents.into_iter();
            Ok(Source {
                path: format!("{}/{}", exchange.server_dir, dumped.file),
                bytes: size(&exchange.client_dir.join(&dumped.file)),
                restored: restored
                    .map(|(table, content)| Restored { table, expected: Some(content) })
                    .collect(),
            })
        }
        DumpSource::Path { path, .. } => Ok(Source {
            path: reachable(stage, path, step)?,
            bytes: size(path),
            restored: restore.tables.iter().map(|table| Restored { table: *table, expected: None }).collect(),
        }),
    }
}

/// Where the programs see the user's dump: a container sees only the exchange folder.
fn reachable(stage: &Stage<'_>, path: &Path, step: &str) -> Result<String, WorkError> {
    if stage.instance.facts.backend != Backend::Container {
        return Ok(path.display().to_string());
    }
    let exchange = exchange(stage)?;
    let name = format!("{step}.dump");
    let copied = copy(path, &exchange.client_dir.join(&name));
    copied.map_err(|source| WorkError::File { what: format!("the copy of {}", path.display()), source })?;
    Ok(format!("{}/{name}", exchange.server_dir))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        return std::fs::copy(from, to).map(drop);
    }
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn programs(restore: &Restore, path: &str) -> Vec<Program> {
    let psql = |more: &[&str]| {
        let fixed = ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"];
        Program { name: "psql", arguments: fixed.iter().chain(more).map(|word| (*word).to_owned()).collect() }
    };
    if restore.format == DumpFormat::Plain {
        return vec![psql(&["--file", path])];
    }
    let mut arguments =
        vec!["--no-owner".to_owned(), "--no-privileges".to_owned(), "--exit-on-error".to_owned()];
    if !restore.with_indexes {
        arguments.extend(["--section=pre-data".to_owned(), "--section=data".to_owned()]);
    }
    match restore.through {
        Through::Direct => {
            arguments.extend([
                format!("--jobs={}", restore.jobs),
                format!("--dbname={DATABASE}"),
                path.to_owned(),
            ]);
            vec![Program { name: "pg_restore", arguments }]
        }
        Through::Psql => {
            arguments.extend(["--file=-".to_owned(), path.to_owned()]);
            vec![Program { name: "pg_restore", arguments }, psql(&[])]
        }
    }
}

/// Rows of all tables of the database.
async fn count_everything(stage: &Stage<'_>, taken: &mut Taken) -> Result<(), WorkError> {
    let sql = "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind = 'r' AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'";
    let mut rows = 0;
    for table in stage.owner.client.query(sql, &[]).await? {
        let count = format!("SELECT count(*) FROM {}", table.get::<_, String>(0));
        rows += u64::try_from(stage.owner.client.query_one(&count, &[]).await?.get::<_, i64>(0)).unwrap_or(0);
    }
    let measurement = &mut taken.measurement;
    measurement.rows = Some(rows);
    measurement.rows_in_table = Some(rows);
    measurement.content_unverified = Some(NOT_DESCRIBED.to_owned());
    if rows == 0 {
        measurement.guards.push(Guard::RowsWrong);
        measurement.error = Some("no table holds a row after the restore".to_owned());
    }
    Ok(())
}
