//! Smoke runs: every treatment once and small, to see that an experiment works. They prove nothing about speed.

use std::time::Duration;

use crate::model::{BoundTrial, Design, Load, Step, StepKind, Table};

/// Rows of a table over all its copies.
const ROWS: u64 = 1_000;
/// Rows of a table that another one points to. Its keys must stay what the other's values were made for, so it is cut
/// only where it would take long.
const REFERENCED_ROWS: u64 = 100_000;

/// Longest warm-up and window of a load by duration, and widest distance of its samples.
const WARM_UP: Duration = Duration::from_millis(100);
const MEASURE: Duration = Duration::from_millis(500);
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// One block, and no rule that would ask for more.
pub fn smoke_design(design: &mut Design) {
    design.blocks.min = 1;
    design.blocks.max = 1;
    design.blocks.until = None;
    design.blocks.budget = None;
}

/// Caps what makes a trial long. Only amounts become smaller; batches, commits, clients and values stay as written, so
/// what is legal in full is legal here.
pub fn smoke_trial(trial: &mut BoundTrial) {
    let by_duration = cap_durations(&mut trial.steps);
    // What ends by the clock must not run out of rows before.
    let rows: Vec<(usize, u64)> =
        by_duration.iter().filter_map(|table| Some((*table, trial.tables.get(*table)?.rows))).collect();
    cap_rows(&mut trial.tables);
    for (table, rows) in rows {
        trial.tables[table].rows = rows;
    }
    cap_paced(trial);
}

/// Loads by duration become short. Returns their tables.
fn cap_durations(steps: &mut [Step]) -> Vec<usize> {
    let mut tables = Vec::new();
    for step in steps {
        let StepKind::Load(load) = &mut step.kind else { continue };
        if let Some(window) = &mut load.duration {
            window.warm_up = window.warm_up.min(WARM_UP);
            // At a rate, the first batch of a client must be due.
            let first = load.rate.zip(load.method.rows_per_batch());
            let first = first.map_or(0, |(rate, rows)| rows.saturating_mul(1000).div_ceil(rate.max(1)));
            window.measure = window.measure.min(MEASURE.max(Duration::from_millis(first)));
            window.sample_every = window.sample_every.min(SAMPLE_EVERY);
            tables.push(load.table);
        }
    }
    tables
}

/// A load at a rate that ends with the last row has no more rows than are due in the time of a short window.
fn cap_paced(trial: &mut BoundTrial) {
    for step in &trial.steps {
        let StepKind::Load(Load { table, duration: None, rate: Some(rate), .. }) = step.kind else {
            continue;
        };
        if let Some(table) = trial.tables.get_mut(table) {
            let due = u128::from(rate) * MEASURE.as_millis() / 1000;
            let most = u64::try_from(due).unwrap_or(u64::MAX).max(table.copies.len() as u64);
            table.rows = table.rows.min(most);
        }
    }
}

fn cap_rows(tables: &mut [Table]) {
    let referenced: Vec<bool> = tables.iter().map(|table| is_referenced(table, tables)).collect();
    for (table, referenced) in tables.iter_mut().zip(referenced) {
        let most = if referenced { REFERENCED_ROWS } else { ROWS };
        // Every copy gets a row.
        table.rows = table.rows.min(most.max(table.copies.len() as u64));
    }
}

/// Whether the SQL of another table has a foreign key to this one.
fn is_referenced(table: &Table, tables: &[Table]) -> bool {
    let others = tables.iter().filter(|other| other.name != table.name);
    let sql = others.flat_map(|other| &other.copies).flat_map(|copy| copy.ddl.iter().chain(&copy.indexes));
    sql.into_iter().any(|statement| table.copies.iter().any(|copy| refers_to(statement, &copy.name)))
}

/// `REFERENCES name`, with or without quotes and a schema.
fn refers_to(statement: &str, name: &str) -> bool {
    let words = statement.split(|c: char| c.is_whitespace() || c == '(').filter(|word| !word.is_empty());
    let pairs = words.clone().zip(words.skip(1));
    let bare =
        |word: &str| word.rsplit('.').next().unwrap_or(word).trim_matches(['"', ',', ')', ';']).to_owned();
    pairs
        .filter(|(word, _)| word.eq_ignore_ascii_case("references"))
        .any(|(_, target)| bare(target).eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Blocks, Persistence, TableCopy};

    fn table(name: &str, ddl: &str, rows: u64, copies: usize) -> Table {
        let copy = TableCopy { name: name.to_owned(), ddl: vec![ddl.to_owned()], indexes: Vec::new() };
        Table {
            name: name.to_owned(),
            copies: vec![copy; copies],
            columns: Vec::new(),
            persistence: Persistence::Logged,
            partitioned: false,
            rows,
            seed: 1,
        }
    }

    fn capped(mut tables: Vec<Table>) -> Vec<u64> {
        cap_rows(&mut tables);
        tables.iter().map(|table| table.rows).collect()
    }

    #[test]
    fn rows_only_become_fewer_and_no_copy_stays_empty() {
        let tables = vec![table("a", "", 1_000_000, 1), table("b", "", 20, 1), table("c", "", 9_000, 3_000)];
        assert_eq!(capped(tables), [1_000, 20, 3_000]);
    }

    #[test]
    fn a_table_keeps_the_keys_that_others_point_to() {
        let child = "CREATE TABLE orders (customer integer REFERENCES public.\"Customer\"(id))";
        let tables = vec![
            table("Customer", "", 50_000, 1),
            table("orders", child, 50_000, 1),
            table("preferences", "", 50_000, 1),
        ];
        assert_eq!(capped(tables), [50_000, 1_000, 1_000]);
        assert_eq!(capped(vec![table("Customer", "", 900_000, 1), table("o", child, 1, 1)]), [100_000, 1]);
    }

    fn timed(rate: Option<u64>, rows_per_commit: u64) -> Step {
        let span = Duration::from_secs;
        let copy = crate::model::Copy {
            format: crate::model::CopyFormat::Text,
            freeze: false,
            source: crate::model::CopySource::Client,
            same_transaction: crate::model::SameTransaction::None,
            rows_per_commit: Some(rows_per_commit),
            chunk_bytes: 65_536,
            header: false,
        };
        let load = Load {
            table: 0,
            method: crate::model::LoadMethod::Copy(copy),
            clients: 1,
            until: crate::model::Until::Committed,
            verify: crate::model::Verify::Now,
            duration: Some(crate::model::Window {
                warm_up: Duration::from_millis(50),
                measure: span(30),
                sample_every: span(1),
            }),
            rate,
        };
        Step { name: "load".to_owned(), repeat: 1, timeout: span(60), kind: StepKind::Load(load) }
    }

    #[test]
    fn durations_become_short_and_a_batch_at_a_rate_is_still_due() {
        let short = |rate, rows_per_commit| {
            let mut steps = vec![timed(rate, rows_per_commit)];
            assert_eq!(cap_durations(&mut steps), [0]);
            let StepKind::Load(Load { duration: Some(window), .. }) = &steps[0].kind else {
                panic!("{steps:?}")
            };
            [window.warm_up, window.measure, window.sample_every].map(|span| span.as_millis())
        };
        assert_eq!(short(None, 1000), [50, 500, 100]);
        assert_eq!(short(Some(100), 10), [50, 500, 100]);
        assert_eq!(short(Some(100), 1000), [50, 10_000, 100]);
    }

    #[test]
    fn one_block_whatever_the_rule() {
        let blocks =
            Blocks { min: 6, max: 20, until: Some(0.03), budget: Some(std::time::Duration::from_mins(1)) };
        let mut design =
            Design { factors: Vec::new(), include: Vec::new(), exclude: Vec::new(), blocks, seed: 1 };
        smoke_design(&mut design);
        assert_eq!(design.blocks, Blocks { min: 1, max: 1, until: None, budget: None });
    }
}
