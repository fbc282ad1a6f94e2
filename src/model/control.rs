//! What a run finds out about itself: the same treatment twice in a block, and its client without a server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The controls of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Controls {
    /// Number of the treatment that each block runs a second time; `None` where this machine can run none.
    pub treatment: Option<u64>,
    /// What generator and encoder do without a server, for each distinct load step.
    #[serde(default)]
    pub ceilings: Vec<Ceiling>,
    /// Distinct load steps for which that was not measured, because there are too many.
    #[serde(default)]
    pub left_out: u64,
}

/// How fast one thread of the client makes and encodes the rows of a load step when nobody takes them: no load by this
/// method can be faster with one client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// `insert`, `copy` or `unnest`.
    pub method: String,
    /// Method, format and batch in words: `copy binary`, `insert, 500 rows a batch`.
    pub words: String,
    /// Knobs of the method that the encoder knows of, as JSON text.
    pub parameters: String,
    /// Name of the table in the experiment.
    pub table: String,
    /// Rows of the table in the experiment.
    pub table_rows: u64,
    /// How often it was measured; what follows is of the repetition in the middle.
    pub repetitions: u32,
    /// Rows made; those of a small table are made again and again.
    pub rows: u64,
    /// Bytes encoded.
    pub payload_bytes: u64,
    /// Time on the monotonic clock.
    pub seconds: f64,
    /// CPU time of this process, all threads; less than `seconds` where others had the CPU.
    pub cpu_seconds: Option<f64>,
    /// Rows per second of the slowest and the fastest repetition.
    pub range: (f64, f64),
    /// The steps it is about: name of the step to numbers of the treatments.
    pub steps: BTreeMap<String, Vec<u64>>,
}

impl Ceiling {
    /// Rows per second of one thread; `None` over a span of zero.
    #[must_use]
    pub fn rows_per_second(&self) -> Option<f64> {
        self.per_second(self.rows)
    }

    /// Bytes per second of one thread; `None` over a span of zero.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        self.per_second(self.payload_bytes)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of half a second stay far below 2^53")]
    fn per_second(&self, count: u64) -> Option<f64> {
        (self.seconds > 0.0).then(|| count as f64 / self.seconds)
    }

    /// Whether it is about a step of a treatment.
    #[must_use]
    pub fn is_of(&self, treatment: u64, step: &str) -> bool {
        self.steps.get(step).is_some_and(|treatments| treatments.contains(&treatment))
    }
}
