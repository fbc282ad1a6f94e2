//! COPY FROM: generated rows from the client in large chunks, or a file on the server.
//!
//! Every COPY runs inside BEGIN ... COMMIT: the driver's `finish` stops at `CommandComplete` and would call
//! an autocommitted COPY done that fails at its commit.

use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use futures_util::SinkExt;

use super::{Batch, Task, WorkDone, WorkError, preamble};
use crate::data::TableGenerator;
use crate::engine::postgres::encode::CopyEncoder;
use crate::engine::postgres::{Exchange, Session};
use crate::model::{Copy, CopySource};

/// One client of a COPY load.
pub struct Copier {
    session: Session,
    task: Task,
    knobs: Copy,
    /// Files on the server, one per transaction.
    files: Vec<ServerFile>,
}

struct ServerFile {
    server_path: String,
    client_path: PathBuf,
    bytes: u64,
}

impl Copier {
    pub(super) fn prepare(
        session: Session,
        exchange: Option<&Exchange>,
        task: Task,
        knobs: Copy,
    ) -> Result<Self, WorkError> {
        let mut copier = Self { session, task, knobs, files: Vec::new() };
        if copier.knobs.source == CopySource::Server {
            let exchange = exchange.ok_or_else(|| WorkError::Protocol(NO_EXCHANGE.to_owned()))?;
            for (index, rows) in
                copier.task.transactions(copier.knobs.rows_per_commit).into_iter().enumerate()
            {
                let file = copier.write_file(exchange, index, rows)?;
                copier.files.push(file);
            }
        }
        Ok(copier)
    }

    fn write_file(
        &self,
        exchange: &Exchange,
        index: usize,
        rows: Range<u64>,
    ) -> Result<ServerFile, WorkError> {
        let name = format!("{}-{index}.copy", self.task.client);
        let path = exchange.client_dir.join(&name);
        let failed = |source| WorkError::File { what: format!("the server's input file {name}"), source };
        let mut file = std::fs::File::create(&path).map_err(failed)?;
        let mut encoder = self.encoder(rows);
        let mut bytes = 0;
        while let Some(chunk) = encoder.next_chunk() {
            bytes += chunk.len() as u64;
            file.write_all(&chunk).map_err(failed)?;
        }
        file.set_permissions(std::fs::Permissions::from_mode(0o644)).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        let server_path = format!("{}/{name}", exchange.server_dir);
        Ok(ServerFile { server_path, client_path: path, bytes })
    }

    fn encoder(&self, rows: Range<u64>) -> ChunkedEncoder {
        ChunkedEncoder::new(&self.knobs, &self.task.generator, rows)
    }

    fn statement(&self, source: &str) -> String {
        let mut options = vec![format!("FORMAT {}", self.knobs.format.sql())];
        if self.knobs.freeze {
            options.push("FREEZE".to_owned());
        }
        if self.knobs.header {
            options.push("HEADER".to_owned());
        }
        let (target, columns) = (self.task.target(), self.task.column_list());
        format!("COPY {target} {columns} FROM {source} ({})", options.join(", "))
    }

    pub(super) async fn work(mut self) -> Result<WorkDone, WorkError> {
        let mut done = WorkDone::default();
        if self.files.is_empty() {
            let rows = self.knobs.rows_per_commit.unwrap_or(u64::MAX);
            let mut next = self.task.next(rows).await?;
            // A client without rows still does what is to be done in the transaction of its COPY.
            if next.is_none() && !self.task.is_timed() {
                next = Some(Batch { rows: 0..0, due: None });
            }
            while let Some(batch) = next {
                self.transaction(None, &batch, &mut done).await?;
                next = self.task.next(rows).await?;
            }
        } else {
            for (file, rows) in self.files.iter().zip(self.task.transactions(self.knobs.rows_per_commit)) {
                self.transaction(Some(file), &Batch { rows, due: None }, &mut done).await?;
            }
        }
        Ok(done)
    }

    /// One COPY in a transaction of its own.
    async fn transaction(
        &self,
        file: Option<&ServerFile>,
        batch: &Batch,
        done: &mut WorkDone,
    ) -> Result<(), WorkError> {
        self.session.client.batch_execute("BEGIN").await?;
        for sql in preamble(&self.task, self.knobs.same_transaction) {
            self.session.client.batch_execute(&sql).await?;
        }
        let start = Instant::now();
        let (rows, bytes) = match file {
            Some(file) => self.load_file(file).await?,
            None => self.stream_rows(batch.rows.clone(), done.rows).await?,
        };
        self.task.answered(batch, rows, start, bytes, done);
        let start = Instant::now();
        self.session.client.batch_execute("COMMIT").await?;
        self.task.committed(rows, Some(start), done);
        Ok(())
    }

    /// Rows that the server counted, and bytes of the file.
    async fn load_file(&self, file: &ServerFile) -> Result<(u64, u64), WorkError> {
        let path = format!("'{}'", file.server_path.replace('\'', "''"));
        // A count that differs is no error here: the verification after the COMMIT can tell which rows are missing.
        let rows = self.session.client.execute(&self.statement(&path), &[]).await?;
        Ok((rows, file.bytes))
    }

    /// Rows that the server counted, and bytes sent; `before`: rows of the client's earlier transactions.
    async fn stream_rows(&self, rows: Range<u64>, before: u64) -> Result<(u64, u64), WorkError> {
        let expected = rows.end - rows.start;
        let sink = self.session.client.copy_in::<_, Bytes>(&self.statement("STDIN")).await?;
        let mut sink = std::pin::pin!(sink);
        let mut encoder = self.encoder(rows);
        let mut bytes = 0;
        while let Some(chunk) = encoder.next_chunk() {
            bytes += chunk.len() as u64;
            // `feed` hands the chunk over without waiting for the socket; `send` would flush each.
            sink.feed(chunk).await?;
            self.task.progress.set(self.task.client, before + expected - encoder.left());
        }
        // What the server counted: a line `\\.` or a trigger makes it less than what was sent, without an error.
        Ok((sink.finish().await?, bytes))
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        for file in &self.files {
            // The exchange folder goes with the server; a file that stays until then harms nobody.
            drop(std::fs::remove_file(&file.client_path));
        }
    }
}

const NO_EXCHANGE: &str = "this backend shares no folder with the server: \
     COPY from a server file needs the local or the container backend (--on local or --on container)";

enum State {
    Head,
    Rows,
    Done,
}

/// Cuts a COPY stream into chunks of about the wanted size.
pub(super) struct ChunkedEncoder {
    encoder: CopyEncoder,
    rows: Range<u64>,
    chunk: usize,
    header: bool,
    state: State,
}

impl ChunkedEncoder {
    /// The data of one COPY statement.
    pub(super) fn new(knobs: &Copy, generator: &Arc<TableGenerator>, rows: Range<u64>) -> Self {
        let encoder = CopyEncoder::new(knobs.format, Arc::clone(generator));
        let chunk = knobs.chunk_bytes as usize;
        Self { encoder, rows, chunk, header: knobs.header, state: State::Head }
    }

    /// Rows not yet encoded.
    pub(super) fn left(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    pub(super) fn next_chunk(&mut self) -> Option<Bytes> {
        let mut out = BytesMut::with_capacity(self.chunk + self.chunk / 8);
        match self.state {
            State::Done => return None,
            State::Head => self.encoder.begin(self.header, &mut out),
            State::Rows => {}
        }
        self.state = State::Rows;
        self.encoder.fill(&mut self.rows, self.chunk, &mut out);
        if self.rows.is_empty() {
            self.encoder.end(&mut out);
            self.state = State::Done;
        }
        Some(out.freeze())
    }
}
