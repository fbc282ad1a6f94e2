//! Smoke runs: every treatment once and small, to see that an experiment works. They prove nothing about speed.

use crate::model::{BoundTrial, Design, Table};

/// Rows of a table over all its copies.
const ROWS: u64 = 1_000;
/// Rows of a table that another one points to. Its keys must stay what the other's values were made for, so it is cut
/// only where it would take long.
const REFERENCED_ROWS: u64 = 100_000;

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
    cap_rows(&mut trial.tables);
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
