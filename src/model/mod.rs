//! The words of loadlab as plain data: no I/O, no async, no knowledge of YAML.
//!
//! Three shapes of an experiment exist, each a type of its own: *as written* (a tree of
//! placed values, in `spec`), *as planned* ([`Design`], here) and *as bound* ([`BoundTrial`], here:
//! one treatment with every template rendered and every name resolved). Later stages cannot see
//! the earlier shapes.

mod claim;
mod computable;
mod control;
mod design;
mod environment;
mod measurement;
mod metric;
mod needs;
mod pin;
mod pressure;
mod read_state;
mod sample;
mod scalar;
mod step;
mod table;
mod trial;
mod validity;

pub use claim::{Claim, ClaimSource, Contrast, Group, Metric, RawUnit, RawValues, Reading, Statement};
pub use control::{Ceiling, Controls};
pub use design::{Blocks, Design, Factor, Level, Treatment};
pub use environment::{
    Backend, Builder, Checksums, ConnectionPath, DEFAULT_BLOCK_SIZE, EnvironmentSpec, FreshMethod,
    InitOptions, Limits, LocaleProvider, Storage, VersionRange, block_size_words,
};
pub use measurement::{
    Captured, ClusterFacts, EffectiveSetting, Guard, Latency, Measurement, Outcome, ServerCounters,
    ServerFacts, Spans, TrialRecord,
};
pub use metric::{METRICS, MetricKind, Nature, metric_kind};
pub use needs::{Bound, Needs, Relation};
pub use pin::{Input, PinnedServer, ServerPin, UNKNOWN};
pub use pressure::Pressure;
pub use read_state::{ReadState, Scanned};
pub use sample::{Outside, Phase, Sample};
pub use scalar::Scalar;
pub use step::{
    By, Cache, Capture, CaptureFrom, Command, Copy, CopyFormat, CopySource, Decode, Dump, DumpFormat,
    DumpSource, Generate, Insert, Load, LoadMethod, Procedure, Read, ReadMethod, Restore, SameTransaction,
    SelectMode, State, Step, StepKind, Stream, TextOrBinary, Through, Unit, Unnest, Until, Verify, Window,
};
pub use table::{
    Column, ColumnType, Generator, Persistence, StoredColumn, Table, TableCopy, TemplatePart, TextShape,
};
pub use trial::{BoundTrial, PlannedTrial};
