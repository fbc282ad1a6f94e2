//! The words of loadlab as plain data: no I/O, no async, no knowledge of YAML.
//!
//! Three shapes of an experiment exist, each a type of its own: *as written* (a tree of
//! placed values, in `spec`), *as planned* ([`Design`], here) and *as bound* ([`BoundTrial`], here:
//! one treatment with every template rendered and every name resolved). Later stages cannot see
//! the earlier shapes.

mod claim;
mod computable;
mod design;
mod environment;
mod measurement;
mod metric;
mod scalar;
mod step;
mod table;
mod trial;
mod validity;

pub use claim::{Claim, ClaimSource, Contrast, Group, Metric, RawUnit, RawValues, Reading, Statement};
pub use design::{Blocks, Design, Factor, Level, Treatment};
pub use environment::{
    Backend, Checksums, ConnectionPath, EnvironmentSpec, FreshMethod, InitOptions, Limits, Storage,
    VersionRange,
};
pub use measurement::{
    Captured, EffectiveSetting, Guard, Latency, Measurement, Outcome, Outside, Phase, Pressure, ReadState,
    Sample, Scanned, ServerCounters, ServerFacts, Spans, TrialRecord,
};
pub use metric::{METRICS, MetricKind, Nature, metric_kind};
pub use scalar::Scalar;
pub use step::{
    By, Cache, Capture, CaptureFrom, Command, Copy, CopyFormat, CopySource, Decode, Generate, Insert, Load,
    LoadMethod, Procedure, Read, ReadMethod, SameTransaction, SelectMode, State, Step, StepKind, Stream,
    TextOrBinary, Unit, Unnest, Until, Verify, Window,
};
pub use table::{
    Column, ColumnType, Generator, Persistence, StoredColumn, Table, TableCopy, TemplatePart, TextShape,
};
pub use trial::{BoundTrial, PlannedTrial};
