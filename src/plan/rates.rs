//! Rough costs of a load or read, used for nothing but the time estimate of `loadlab plan`.
//!
//! Orders of magnitude of PostgreSQL 15 on two cores of a virtual machine with a fast disk. They are not
//! results, and no result depends on them.

/// Seconds, for one of each.
pub(super) struct Rates {
    /// A fresh server: started, checked, stopped and removed.
    pub(super) server: f64,
    /// A step without rows: statements and counters around it.
    pub(super) step: f64,
    /// A client program, of which nothing is known.
    pub(super) command: f64,
    /// A transaction that reaches the disk.
    pub(super) commit: f64,
    /// Waiting for an answer.
    pub(super) round_trip: f64,
    /// A prepared INSERT executed.
    pub(super) prepared_statement: f64,
    /// An INSERT parsed, planned and executed.
    pub(super) text_statement: f64,
    /// A row inserted by INSERT.
    pub(super) inserted_row: f64,
    /// A row inserted by COPY.
    pub(super) copied_row: f64,
    /// A row of arrays taken apart by unnest.
    pub(super) unnested_row: f64,
    /// A row made and inserted by the server itself.
    pub(super) generated_row: f64,
    /// A row inserted by a loop in the server.
    pub(super) looped_row: f64,
    /// A row read.
    pub(super) read_row: f64,
    /// A byte of a row decoded by the client.
    pub(super) decoded_byte: f64,
    /// A server stopped, its files let go of, started again.
    pub(super) restart: f64,
    /// A row generated again and compared.
    pub(super) verified_row: f64,
    /// An entry of an index made with its row.
    pub(super) index_entry: f64,
    /// An entry of an index made afterwards.
    pub(super) built_entry: f64,
    /// A byte of a row, read or written.
    pub(super) byte: f64,
    /// A byte of WAL.
    pub(super) wal_byte: f64,
    /// A byte brought to disk by CHECKPOINT.
    pub(super) checkpoint_byte: f64,
    /// A byte visited by VACUUM (ANALYZE).
    pub(super) vacuum_byte: f64,
    /// Clients that still make a load faster.
    pub(super) useful_clients: u32,
}

/// The costs in use.
pub(super) const RATES: Rates = Rates {
    server: 0.5,
    step: 0.01,
    command: 10.0,
    commit: 1e-3,
    round_trip: 60e-6,
    prepared_statement: 8e-6,
    text_statement: 25e-6,
    inserted_row: 2e-6,
    copied_row: 0.4e-6,
    unnested_row: 1e-6,
    generated_row: 0.8e-6,
    looped_row: 4e-6,
    read_row: 0.3e-6,
    decoded_byte: 4e-9,
    restart: 1.0,
    verified_row: 0.6e-6,
    index_entry: 1.5e-6,
    built_entry: 0.6e-6,
    byte: 4e-9,
    wal_byte: 3e-9,
    checkpoint_byte: 2e-9,
    vacuum_byte: 3e-9,
    useful_clients: 2,
};
