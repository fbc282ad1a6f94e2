//! Loading rows: what all methods share. One file per method.
//!
//! Each client connects and prepares outside the clock, then sends its contiguous share of the rows
//! of its table copy.

mod copy;
mod feed;
mod generate;
mod insert;
mod procedure;
mod sink;
mod unnest;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use feed::Supply;
use feed::{Batch, Feed, Schedule, Source};
pub use sink::{NullSink, Piece};

use super::encode::{StreamError, expressions};
use super::work::{Progress, WorkDone};
use super::{Endpoint, Exchange, Role, Session, SessionError, WORKER};
use crate::data::{DataError, TableGenerator, share, share_of};
use crate::model::{CopySource, Load, LoadMethod, SameTransaction, Table};

/// Why a load or read failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The server refused or the connection broke.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Rows could not be made or read back.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A COPY stream from the server is damaged or ended early.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A file for the server could not be written.
    #[error("cannot write {what}: {source}")]
    File {
        /// Which file.
        what: String,
        /// Why.
        source: std::io::Error,
    },
    /// A load by duration has sent all rows of a table before its window closed.
    #[error(
        "all {rows} rows of table {table} were loaded {left:.1} s before the window closed: raise `rows` of the table \
         (in a load by duration it is the most that may be loaded), or measure for a shorter time"
    )]
    UsedUp {
        /// The table copy.
        table: String,
        /// Its rows.
        rows: u64,
        /// Seconds that were left.
        left: f64,
    },
    /// A client program did not do its work.
    #[error("{0}")]
    Program(String),
    /// The server could not be stopped or started again between steps.
    #[error("the server could not be started again: {0}")]
    Restart(String),
    /// The result is not what the protocol promises.
    #[error("{0}")]
    Protocol(String),
}

impl From<tokio_postgres::Error> for WorkError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Session(SessionError::Statement(error))
    }
}

impl WorkError {
    /// SQLSTATE, when the server sent one.
    #[must_use]
    pub fn sqlstate(&self) -> Option<String> {
        match self {
            Self::Session(SessionError::Statement(error) | SessionError::Connect(error)) => {
                error.code().map(|code| code.code().to_owned())
            }
            _ => None,
        }
    }

    /// Whether the server went away: the connection broke, or the server said that it is ending. Everything
    /// else is between the experiment and a server that goes on.
    #[must_use]
    pub fn server_is_gone(&self) -> bool {
        match self {
            Self::Session(SessionError::Connect(_) | SessionError::Deadline(..)) | Self::Restart(_) => true,
            Self::Session(SessionError::Statement(error)) => match error.code() {
                Some(code) => ENDING.contains(&code.code()),
                None => error.is_closed() || is_io(error),
            },
            _ => false,
        }
    }
}

/// `admin_shutdown`, `crash_shutdown`, `cannot_connect_now`.
const ENDING: [&str; 3] = ["57P01", "57P02", "57P03"];

fn is_io(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source())
        .any(<dyn std::error::Error>::is::<std::io::Error>)
}

/// What a client of a load works on.
#[derive(Clone)]
pub(super) struct Task {
    client: u32,
    table: Arc<Table>,
    copy: usize,
    /// The client's share of a load that ends with the last row; of a load by duration, all rows of its copy.
    rows: Range<u64>,
    generator: Arc<TableGenerator>,
    progress: Progress,
    feed: Feed,
}

impl Task {
    fn target(&self) -> String {
        super::quote_ident(&self.table.copies[self.copy].name)
    }

    /// The next batch, of at most `most` rows, once it is due.
    async fn next(&mut self, most: u64) -> Result<Option<Batch>, WorkError> {
        self.feed.next(most).await
    }

    /// Whether the load ends by the clock.
    fn is_timed(&self) -> bool {
        self.progress.window().is_some()
    }

    /// The server answered a batch of `rows` that was begun at `begun`. What was begun outside the measured window is in the
    /// table, but not in latencies and bytes; with a rate, a batch begins when it is due.
    fn answered(&self, batch: &Batch, rows: u64, begun: Instant, bytes: u64, done: &mut WorkDone) {
        self.progress.acknowledged(rows);
        done.rows += rows;
        self.progress.set(self.client, done.rows);
        if !self.progress.is_measured(batch.due.unwrap_or(begun)) {
            return;
        }
        done.payload_bytes += bytes;
        done.batches.add(begun.elapsed());
        if let Some(due) = batch.due {
            done.scheduled.get_or_insert_default().add(due.elapsed());
        }
    }

    /// The server acknowledged a transaction of rows; `begun`: when its COMMIT was sent, if it had one of its own.
    fn committed(&self, rows: u64, begun: Option<Instant>, done: &mut WorkDone) {
        self.progress.committed(self.client, rows);
        if let Some(begun) = begun.filter(|begun| self.progress.is_measured(*begun)) {
            done.committed(begun);
        }
    }

    /// Ends the open transaction with its rows.
    async fn commit(&self, session: &Session, open: &mut u64, done: &mut WorkDone) -> Result<(), WorkError> {
        let start = Instant::now();
        session.client.batch_execute("COMMIT").await?;
        self.committed(std::mem::take(open), Some(start), done);
        Ok(())
    }

    /// The rows of each transaction of so many rows; one empty one where there are none.
    fn transactions(&self, rows_per_commit: Option<u64>) -> Vec<Range<u64>> {
        let Range { start, end } = self.rows;
        let step = rows_per_commit.unwrap_or(u64::MAX);
        let mut parts = Vec::new();
        let mut next = start;
        while next < end || parts.is_empty() {
            let until = end.min(next.saturating_add(step));
            parts.push(next..until);
            next = until;
        }
        parts
    }

    /// `(a, b, c)` of the table's columns.
    fn column_list(&self) -> String {
        super::encode::column_list(self.table.columns.iter().map(|column| column.name.as_str()))
    }
}

/// A client that is connected and prepared, ready for the clock.
pub enum LoadClient {
    /// INSERT.
    Insert(Box<insert::Inserter>),
    /// COPY.
    Copy(Box<copy::Copier>),
    /// Bound arrays.
    Unnest(Box<unnest::Unnester>),
    /// Rows made by the server.
    Generate(Box<generate::Generating>),
    /// A loop in the server.
    Procedure(Box<procedure::Looping>),
}

impl LoadClient {
    /// Sends the rows and commits.
    pub async fn work(self) -> Result<WorkDone, WorkError> {
        match self {
            Self::Insert(inserter) => inserter.work().await,
            Self::Copy(copier) => copier.work().await,
            Self::Unnest(unnester) => unnester.work().await,
            Self::Generate(generating) => generating.work().await,
            Self::Procedure(looping) => looping.work().await,
        }
    }
}

/// The clients of a load, ready for the clock.
pub struct Ready {
    /// Connected and prepared.
    pub clients: Vec<LoadClient>,
    /// Time that connecting took, over all clients.
    pub connecting: Duration,
    /// The rows that each table copy of a load by duration takes its batches from; empty for other loads.
    pub supplies: Vec<Supply>,
}

/// Connects and prepares all clients of a load. Client `i` of `n` feeds table copy `i % copies`.
pub async fn prepare(
    endpoint: &Endpoint,
    exchange: Option<&Exchange>,
    table: &Arc<Table>,
    load: &Load,
    progress: &Progress,
) -> Result<Ready, WorkError> {
    let generator = Arc::new(TableGenerator::new(table)?);
    let copies = table.copies.len() as u64;
    let schedule = load.rate.map(|rate| Arc::new(Schedule::new(rate, load.duration)));
    let supplies: Vec<Supply> = match load.duration {
        Some(_) => (0..copies).map(|copy| Supply::new(share(table.rows, copies, copy))).collect(),
        None => Vec::new(),
    };
    let mut clients = Vec::with_capacity(load.clients as usize);
    let mut connecting = Duration::ZERO;
    for client in 0..load.clients {
        let copy = u64::from(client) % copies;
        let place = usize::try_from(copy).unwrap_or(usize::MAX);
        // Clients of this copy: copy, copy + copies, copy + 2 * copies, ...
        let sharing = (u64::from(load.clients) - copy).div_ceil(copies);
        let all = share(table.rows, copies, copy);
        let (rows, source) = if let Some(supply) = supplies.get(place) {
            (all, Source::Shared(supply.clone()))
        } else {
            let rows = share_of(all, sharing, u64::from(client) / copies);
            (rows.clone(), Source::Share(rows))
        };
        let feed = Feed {
            source,
            schedule: schedule.clone(),
            progress: progress.clone(),
            target: table.copies[place].name.clone(),
        };
        let task = Task {
            client,
            table: Arc::clone(table),
            copy: place,
            rows,
            generator: Arc::clone(&generator),
            progress: progress.clone(),
            feed,
        };
        let (session, span) = connect(endpoint, &load.method).await?;
        connecting += span;
        clients.push(prepare_one(session, exchange, task, &load.method).await?);
    }
    Ok(Ready { clients, connecting, supplies })
}

async fn connect(endpoint: &Endpoint, method: &LoadMethod) -> Result<(Session, Duration), WorkError> {
    let start = Instant::now();
    // Only the superuser may read files of the server.
    let role = match method {
        LoadMethod::Copy(knobs) if knobs.source == CopySource::Server => Role::Admin,
        _ => Role::Owner,
    };
    let session = Session::open_as(endpoint, role, WORKER).await?;
    Ok((session, start.elapsed()))
}

async fn prepare_one(
    session: Session,
    exchange: Option<&Exchange>,
    task: Task,
    method: &LoadMethod,
) -> Result<LoadClient, WorkError> {
    match method {
        LoadMethod::Insert(knobs) => {
            Ok(LoadClient::Insert(Box::new(insert::Inserter::prepare(session, task, knobs.clone()).await?)))
        }
        LoadMethod::Copy(knobs) => {
            Ok(LoadClient::Copy(Box::new(copy::Copier::prepare(session, exchange, task, knobs.clone())?)))
        }
        LoadMethod::Unnest(knobs) => {
            Ok(LoadClient::Unnest(Box::new(unnest::Unnester::prepare(session, task, knobs.clone()).await?)))
        }
        LoadMethod::Generate(knobs) => {
            let generating = generate::Generating::prepare(session, task, knobs.clone()).await?;
            Ok(LoadClient::Generate(Box::new(generating)))
        }
        LoadMethod::Procedure(knobs) => {
            Ok(LoadClient::Procedure(Box::new(procedure::Looping::prepare(session, task, knobs)?)))
        }
    }
}

/// SQL of the variable `row` for each column.
fn own_or_generated(task: &Task, own: &BTreeMap<String, String>) -> Result<Vec<String>, WorkError> {
    expressions(&task.generator, own).map_err(WorkError::Protocol)
}

/// SQL that runs first in a COPY's own transaction.
fn preamble(task: &Task, same_transaction: SameTransaction) -> Vec<String> {
    match same_transaction {
        SameTransaction::None => Vec::new(),
        SameTransaction::Truncate => vec![format!("TRUNCATE {}", task.target())],
        SameTransaction::Create => task.table.copies[task.copy].ddl.clone(),
    }
}
