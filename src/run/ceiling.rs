//! The ceiling of the client: how fast it makes and encodes the rows of each load step when there is no server to wait for.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use super::client::cpu_seconds;
use crate::engine::postgres::load::{NullSink, Piece};
use crate::model::{
    BoundTrial, Ceiling, Copy, CopySource, Insert, LoadMethod, SameTransaction, StepKind, Table, Unnest,
};

/// Distinct load steps that are measured; each takes [`REPETITIONS`] times [`REPETITION`].
const MOST: usize = 32;
/// How often each is measured: the one in the middle counts.
const REPETITIONS: u32 = 3;
/// How long one measurement takes, unless a single batch takes longer.
const REPETITION: Duration = Duration::from_millis(500);
/// The clock is looked at after so many rows or bytes, so that looking costs nothing beside them.
const ROWS_PER_LOOK: u64 = 500;
const BYTES_PER_LOOK: u64 = 1 << 20;

/// The load steps of a plan whose rows the client makes, each distinct one once.
#[derive(Debug, Default)]
pub struct LoadSteps {
    /// Those that are measured.
    steps: Vec<LoadStep>,
    /// All of them by their hash, with their number.
    known: HashMap<u64, usize>,
}

/// A load step: what its rows are and how they are encoded.
#[derive(Debug)]
struct LoadStep {
    table: Table,
    method: LoadMethod,
    words: String,
    of: BTreeMap<String, Vec<u64>>,
}

impl LoadSteps {
    /// Adds the load steps of a treatment.
    pub fn add(&mut self, treatment: u64, trial: &BoundTrial) {
        for step in &trial.steps {
            let StepKind::Load(load) = &step.kind else { continue };
            if let Some(table) = trial.tables.get(load.table) {
                self.add_step(treatment, &step.name, table, &load.method);
            }
        }
    }

    fn add_step(&mut self, treatment: u64, name: &str, table: &Table, method: &LoadMethod) {
        let Some((method, words)) = encoding(method).filter(|_| table.rows > 0) else { return };
        let mut key = DefaultHasher::new();
        format!("{method:?} {} {:?} {}", table.rows, table.columns, table.seed).hash(&mut key);
        let next = self.known.len();
        let index = *self.known.entry(key.finish()).or_insert(next);
        if index == self.steps.len() && index < MOST {
            self.steps.push(LoadStep { table: table.clone(), method, words, of: BTreeMap::new() });
        }
        if let Some(step) = self.steps.get_mut(index) {
            step.of.entry(name.to_owned()).or_default().push(treatment);
        }
    }

    /// How many are measured.
    #[must_use]
    pub fn measured(&self) -> usize {
        self.steps.len()
    }

    /// How many are too many to be measured.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        (self.known.len() - self.steps.len()) as u64
    }

    /// How many are measured, in words: `3 kinds of load`.
    #[must_use]
    pub fn words(&self) -> String {
        match self.measured() {
            1 => "1 kind of load".to_owned(),
            many => format!("{many} kinds of load"),
        }
    }

    /// About how long measuring takes, seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        let each = REPETITION * REPETITIONS;
        each.as_secs_f64() * f64::from(u32::try_from(self.measured()).unwrap_or(u32::MAX))
    }

    /// Measures them, on this thread. A step whose rows cannot be made has no ceiling: its trials say why.
    #[must_use]
    pub fn measure(self) -> Vec<Ceiling> {
        self.steps.into_iter().filter_map(measure).collect()
    }
}

/// The method with only those knobs that change how rows are encoded, and in words; `None` where the client encodes nothing
/// under the clock.
fn encoding(method: &LoadMethod) -> Option<(LoadMethod, String)> {
    let rows = |count: u64| if count == 1 { "1 row".to_owned() } else { format!("{count} rows") };
    match method {
        LoadMethod::Insert(insert) => {
            let words = format!(
                "insert, {} a batch{}{}",
                rows(insert.rows_per_batch),
                match insert.rows_per_statement {
                    0 | 1 => String::new(),
                    many => format!(" in statements of {many}"),
                },
                if insert.prepared { "" } else { ", as text" }
            );
            Some((LoadMethod::Insert(Insert { rows_per_commit: None, ..insert.clone() }), words))
        }
        LoadMethod::Unnest(unnest) => {
            let words = format!("unnest, {} a batch", rows(unnest.rows_per_batch));
            Some((LoadMethod::Unnest(Unnest { rows_per_commit: None, ..unnest.clone() }), words))
        }
        LoadMethod::Copy(copy) if copy.source == CopySource::Client => {
            let same_transaction = SameTransaction::None;
            let method = LoadMethod::Copy(Copy { freeze: false, same_transaction, ..copy.clone() });
            Some((method, format!("copy {}", copy.format.sql())))
        }
        // A file for the server is written before the clock starts.
        LoadMethod::Copy(_) | LoadMethod::Generate(_) | LoadMethod::Procedure(_) => None,
    }
}

/// One repetition.
struct Span {
    made: Piece,
    seconds: f64,
    cpu_seconds: Option<f64>,
}

impl Span {
    #[expect(clippy::cast_precision_loss, reason = "rows of half a second stay far below 2^53")]
    fn rate(&self) -> f64 {
        self.made.rows as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }
}

fn measure(step: LoadStep) -> Option<Ceiling> {
    let mut sink = NullSink::new(&step.table, &step.method).ok()??;
    let mut spans: Vec<Span> = Vec::new();
    // One batch may take longer than it should.
    let whole = Instant::now();
    while spans.is_empty()
        || (spans.len() < REPETITIONS as usize && whole.elapsed() < REPETITION * REPETITIONS)
    {
        spans.push(repetition(&mut sink));
    }
    spans.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
    let repetitions = u32::try_from(spans.len()).unwrap_or(REPETITIONS);
    let range = (spans.first()?.rate(), spans.last()?.rate());
    let middle = spans.swap_remove(spans.len() / 2);
    let knobs = serde_json::to_value(&step.method).ok()?;
    let (method, parameters) = knobs.as_object()?.iter().next()?;
    Some(Ceiling {
        method: method.clone(),
        words: step.words,
        parameters: parameters.to_string(),
        table: step.table.name,
        table_rows: step.table.rows,
        repetitions,
        rows: middle.made.rows,
        payload_bytes: middle.made.bytes,
        seconds: middle.seconds,
        cpu_seconds: middle.cpu_seconds,
        range,
        steps: step.of,
    })
}

fn repetition(sink: &mut NullSink) -> Span {
    let cpu = cpu_seconds();
    let start = Instant::now();
    let (mut seen, mut made) = (Piece { rows: 0, bytes: 0 }, Piece { rows: 0, bytes: 0 });
    loop {
        let piece = sink.piece();
        made.rows += piece.rows;
        made.bytes += piece.bytes;
        if made.rows - seen.rows < ROWS_PER_LOOK && made.bytes - seen.bytes < BYTES_PER_LOOK {
            continue;
        }
        seen = made;
        if start.elapsed() >= REPETITION {
            break;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let cpu_seconds = cpu.zip(cpu_seconds()).map(|(before, after)| after - before);
    Span { made, seconds, cpu_seconds }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Column, ColumnType, CopyFormat, Generator, Persistence, Scalar, TableCopy};

    fn table(rows: u64) -> Table {
        let column = Column {
            name: "c".to_owned(),
            kind: ColumnType::Int4,
            sql_type: "integer".to_owned(),
            not_null: false,
            nulls: 0.0,
            generator: Generator::Sequence { start: Scalar::Int(1), step: 1.0 },
        };
        Table {
            name: "t".to_owned(),
            copies: vec![TableCopy { name: "t".to_owned(), ddl: Vec::new(), indexes: Vec::new() }],
            columns: vec![column],
            persistence: Persistence::Logged,
            partitioned: false,
            rows,
            seed: 1,
        }
    }

    fn copy(source: CopySource, freeze: bool) -> LoadMethod {
        LoadMethod::Copy(Copy {
            format: CopyFormat::Csv,
            freeze,
            source,
            same_transaction: SameTransaction::None,
            rows_per_commit: None,
            chunk_bytes: 65_536,
            header: false,
        })
    }

    #[test]
    fn steps_that_encode_alike_are_measured_once() {
        let mut steps = LoadSteps::default();
        steps.add_step(0, "load", &table(10), &copy(CopySource::Client, false));
        steps.add_step(1, "load", &table(10), &copy(CopySource::Client, true));
        steps.add_step(1, "again", &table(10), &copy(CopySource::Client, false));
        steps.add_step(2, "load", &table(20), &copy(CopySource::Client, false));
        steps.add_step(3, "load", &table(10), &copy(CopySource::Server, false));
        steps.add_step(4, "load", &table(0), &copy(CopySource::Client, false));
        assert_eq!((steps.measured(), steps.left_out()), (2, 0), "{steps:?}");
        let first = BTreeMap::from([("again".to_owned(), vec![1]), ("load".to_owned(), vec![0, 1])]);
        assert_eq!(steps.steps[0].of, first);
        assert_eq!(steps.steps[1].of["load"], [2]);
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let mut steps = LoadSteps::default();
        for rows in 1..=40 {
            steps.add_step(rows, "load", &table(rows), &copy(CopySource::Client, false));
        }
        assert_eq!((steps.measured(), steps.left_out()), (32, 8));
        assert!((steps.seconds() - 48.0).abs() < 1e-9);
    }

    #[test]
    fn a_ceiling_is_of_whole_rows_and_in_words() {
        let mut steps = LoadSteps::default();
        let insert =
            Insert { rows_per_statement: 1, rows_per_batch: 500, rows_per_commit: Some(7), prepared: true };
        steps.add_step(0, "load", &table(10), &LoadMethod::Insert(insert));
        let found = steps.measure();
        let [ceiling] = &found[..] else { panic!("{found:?}") };
        assert_eq!((ceiling.method.as_str(), ceiling.words.as_str()), ("insert", "insert, 500 rows a batch"));
        assert!(!ceiling.parameters.contains('7'), "commits are not encoded: {}", ceiling.parameters);
        // A number of fields, a length and four bytes for each row.
        assert_eq!(ceiling.payload_bytes, ceiling.rows * 10);
        assert!(ceiling.range.0 <= ceiling.range.1 && ceiling.rows >= ROWS_PER_LOOK, "{ceiling:?}");
    }
}
