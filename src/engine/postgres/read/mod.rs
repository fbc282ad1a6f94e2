//! Reading rows: what all methods share. One file per method.

mod copy_out;
mod scan;
mod select;
mod share;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::decode::{Decoder, ReadColumn, columns_of, refuse_lossy_text};
use super::load::WorkError;
use super::work::{Progress, WorkDone};
use super::{Endpoint, Role, Session, WORKER, quote_ident};
use crate::model::{CopyFormat, Decode, Read, ReadMethod, Table, TextOrBinary};

pub use share::KeyRange;

/// What a client of a read works on.
#[derive(Clone)]
struct Task {
    client: u32,
    decode: Decode,
    columns: Vec<ReadColumn>,
    progress: Progress,
}

impl Task {
    fn decoder(&self) -> Decoder {
        Decoder::new(self.decode, self.columns.clone())
    }
}

/// A client that is connected and prepared, ready for the clock.
pub struct ReadClient {
    session: Session,
    task: Task,
    sql: String,
    method: ReadMethod,
    parking: Parking,
}

impl ReadClient {
    /// Reads all its rows.
    pub async fn work(mut self, start: Instant) -> Result<WorkDone, WorkError> {
        let session = &mut self.session;
        let done = match self.method {
            ReadMethod::Select { mode, format } => {
                select::read(session, &self.task, &self.sql, mode, format, start).await
            }
            ReadMethod::CopyOut { format } => {
                copy_out::read(session, &self.task, &self.sql, format, start).await
            }
            ReadMethod::Scan => scan::read(session, &self.task, &self.sql).await,
        };
        self.parking.keep(self.session);
        done
    }
}

/// Sessions that have done their work. A server process that ends while the resources of all are added up would be
/// missing in the sum, so they are kept until that is done.
#[derive(Clone, Default)]
pub struct Parking(Arc<Mutex<Vec<Session>>>);

impl Parking {
    fn keep(&self, session: Session) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }
}

/// What the clients of a read are made of.
pub struct ReadRequest<'a> {
    /// Where the server is.
    pub endpoint: &'a Endpoint,
    /// What is read.
    pub table: &'a Arc<Table>,
    /// How.
    pub read: &'a Read,
    /// Ranges of the key in each copy of the table; empty when clients share it by pages.
    pub keys: &'a [KeyRange],
    /// Settings of each session, from [`session_settings`].
    pub settings: &'a [(&'static str, &'static str)],
    /// Told how far the clients are.
    pub progress: &'a Progress,
    /// Where their sessions stay.
    pub parking: &'a Parking,
}

/// Settings that loadlab gives to the sessions of a read, but for those that an experiment sets itself
/// (`asked_for`): a scan that starts where another left off returns other rows first, workers and just-in-time
/// compilation change the plan with the size of the table. None of them is on in all servers alike.
pub fn session_settings(asked_for: impl Fn(&str) -> bool) -> Vec<(&'static str, &'static str)> {
    let settings =
        [("synchronize_seqscans", "off"), ("max_parallel_workers_per_gather", "0"), ("jit", "off")];
    settings.into_iter().filter(|(name, _)| !asked_for(name)).collect()
}

/// Connects all clients of a read. Client `i` of `n` reads table copy `i % copies`, and of that one of
/// several shares. Also gives the time that connecting took, over all clients.
pub async fn prepare(request: &ReadRequest<'_>) -> Result<(Vec<ReadClient>, Duration), WorkError> {
    let ReadRequest { table, read, .. } = request;
    let copies = u32::try_from(table.copies.len()).unwrap_or(u32::MAX);
    let settings: Vec<String> =
        request.settings.iter().map(|(name, value)| format!("SET {name} = {value}")).collect();
    let mut clients = Vec::with_capacity(read.clients as usize);
    let mut connecting = Duration::ZERO;
    for client in 0..read.clients {
        let start = Instant::now();
        let session = Session::open_as(request.endpoint, Role::Owner, WORKER).await?;
        connecting += start.elapsed();
        session.client.batch_execute(&settings.join("; ")).await?;
        if client == 0 && read.decode != Decode::None && travels_as_text(&read.method) {
            refuse_lossy_text(&session).await?;
        }
        let copy = client % copies;
        let sharing = (read.clients - copy).div_ceil(copies);
        let name = &table.copies[copy as usize].name;
        let part = share::Part { index: client / copies, of: sharing };
        let rows = match request.keys.get(copy as usize) {
            Some(key) => key.share(part),
            None => share::pages(&session, name, part).await?,
        };
        let columns = read.columns.iter().map(|name| quote_ident(name)).collect::<Vec<_>>().join(", ");
        let sql = format!("SELECT {columns} FROM {}{rows}", quote_ident(name));
        let columns = columns_of(table, read);
        let task = Task { client, decode: read.decode, columns, progress: request.progress.clone() };
        let parking = request.parking.clone();
        clients.push(ReadClient { session, task, sql, method: read.method.clone(), parking });
    }
    Ok((clients, connecting))
}

fn travels_as_text(method: &ReadMethod) -> bool {
    matches!(
        method,
        ReadMethod::Select { format: TextOrBinary::Text, .. }
            | ReadMethod::CopyOut { format: CopyFormat::Text | CopyFormat::Csv }
    )
}
