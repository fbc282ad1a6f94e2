//! COPY binary of P1's table from generated rows, against the server's own COPY FROM a binary file (wall time)
//! and against psql's \copy of the same rows from a file (CPU time of the client).
//!
//! fsync is off for all of them, so that the disk does not blur what the client costs. psql's figure is that of the
//! whole process; what its start alone costs is printed beside it, because loadlab's start is not in ours.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use loadlab::data::TableGenerator;
use loadlab::engine::postgres::encode::CopyEncoder;
use loadlab::engine::postgres::load;
use loadlab::engine::postgres::work::Progress;
use loadlab::engine::postgres::{Endpoint, Role, Session};
use loadlab::environment::ledger::Ledger;
use loadlab::environment::local::LocalProvider;
use loadlab::environment::{Instance, Launch, Provider};
use loadlab::model::{CopyFormat, CopySource, Load, LoadMethod, StepKind, Table};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use super::{Promise, cache, milliseconds, paired};

const ROUNDS: usize = 15;

struct Bench {
    instance: Instance,
    admin: Session,
    table: Arc<Table>,
    load: Load,
    psql: std::path::PathBuf,
    file: tempfile::NamedTempFile,
}

pub(super) async fn against_the_server_and_psql() -> Vec<Promise> {
    let ledger = Ledger::open(&cache(), "bench-copy").unwrap();
    let bench = Bench::open(&ledger).await;
    let (mut ours, mut theirs, mut cpu, mut psql, mut idle) = (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        theirs.push(bench.load(CopySource::Server).await.0);
        let (wall, used) = bench.load(CopySource::Client).await;
        ours.push(wall);
        cpu.push(used);
        psql.push(bench.psql(true).await);
        idle.push(bench.psql(false).await);
    }
    bench.instance.running.stop().await.unwrap();
    vec![
        Promise {
            what: "COPY binary, generated rows: wall ratio to the server's own file".to_owned(),
            measured: paired(&ours, &theirs),
            at_most: 1.05,
            detail: format!(
                "{}; {}",
                milliseconds("from the client", &ours),
                milliseconds("from a server file", &theirs)
            ),
        },
        Promise {
            what: "COPY binary, generated rows: client CPU ratio to psql \\copy".to_owned(),
            measured: paired(&cpu, &psql),
            at_most: 1.0,
            detail: format!(
                "{}; {}; of that {}",
                milliseconds("loadlab", &cpu),
                milliseconds("psql", &psql),
                milliseconds("its start", &idle)
            ),
        },
    ]
}

impl Bench {
    async fn open(ledger: &Arc<Ledger>) -> Self {
        let options = loadlab::spec::LoadOptions {
            set: vec!["server.settings.fsync=off".to_owned()],
            ..Default::default()
        };
        let spec = loadlab::spec::load(std::path::Path::new("experiments/unlogged.yaml"), &options);
        let spec = spec.unwrap_or_else(|found| panic!("{}", found.render(false)));
        let plan = loadlab::plan::Plan::new(&spec.design).unwrap();
        let bound = spec.bind(&plan.treatment(0)).unwrap_or_else(|found| panic!("{}", found.render(false)));
        let (provider, _) = LocalProvider::find(&bound.environment, &cache(), true, ledger).await.unwrap();
        provider.prepare().await.unwrap();
        let launch =
            Launch { run_id: "bench-copy".to_owned(), trial: 0, environment: bound.environment.clone() };
        let instance = provider.start(&launch).await.unwrap();
        let admin = Session::open(&instance.endpoint, Role::Admin).await.unwrap();
        let owner = Session::open(&instance.endpoint, Role::Owner).await.unwrap();
        let table = Arc::new(bound.tables[0].clone());
        for statement in &table.copies[0].ddl {
            owner.client.batch_execute(statement).await.unwrap();
        }
        let Some(StepKind::Load(load)) =
            bound.steps.into_iter().map(|step| step.kind).find(|kind| matches!(kind, StepKind::Load(_)))
        else {
            panic!("the experiment loads");
        };
        let file = write_rows(&table);
        Self { instance, admin, table, load, psql: provider.binaries().program("psql"), file }
    }

    async fn empty(&self) {
        self.admin.client.batch_execute("TRUNCATE h_boekingdetail; CHECKPOINT").await.unwrap();
    }

    /// Wall and client CPU seconds of one load by loadlab's own path.
    async fn load(&self, source: CopySource) -> (f64, f64) {
        self.empty().await;
        let copy = loadlab::model::Copy {
            format: CopyFormat::Binary,
            freeze: false,
            source,
            same_transaction: loadlab::model::SameTransaction::None,
            rows_per_commit: None,
            chunk_bytes: 64 * 1024,
            header: false,
        };
        let load = Load { method: LoadMethod::Copy(copy), ..self.load.clone() };
        let progress = Progress::new(1);
        let exchange = self.instance.exchange.as_ref();
        let ready =
            load::prepare(&self.instance.endpoint, exchange, &self.table, &load, &progress).await.unwrap();
        let client = ready.clients.into_iter().next().unwrap();
        let cpu = cpu_seconds(UsageWho::RUSAGE_SELF);
        let start = Instant::now();
        tokio::spawn(client.work()).await.unwrap().unwrap();
        (start.elapsed().as_secs_f64(), cpu_seconds(UsageWho::RUSAGE_SELF) - cpu)
    }

    /// CPU seconds of psql, its start included.
    async fn psql(&self, copies: bool) -> f64 {
        self.empty().await;
        let Endpoint::Socket { directory, port, .. } = &self.instance.endpoint else {
            panic!("a local server has a socket")
        };
        let copy =
            format!("\\copy h_boekingdetail from '{}' with (format binary)", self.file.path().display());
        let copy = if copies { copy } else { "SELECT 1".to_owned() };
        let before = cpu_seconds(UsageWho::RUSAGE_CHILDREN);
        let mut psql = Command::new(&self.psql);
        psql.arg("-h").arg(directory).args([
            "-p",
            &port.to_string(),
            "-U",
            "postgres",
            "-d",
            "loadlab",
            "-qXc",
            &copy,
        ]);
        let status = psql.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
        assert!(status.success());
        cpu_seconds(UsageWho::RUSAGE_CHILDREN) - before
    }
}

fn write_rows(table: &Table) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut encoder = CopyEncoder::new(CopyFormat::Binary, Arc::new(TableGenerator::new(table).unwrap()));
    let mut rows = 0..table.rows;
    let mut out = BytesMut::new();
    encoder.begin(false, &mut out);
    while !rows.is_empty() {
        encoder.fill(&mut rows, 1 << 20, &mut out);
        file.write_all(&out).unwrap();
        out.clear();
    }
    encoder.end(&mut out);
    file.write_all(&out).unwrap();
    file
}

#[expect(clippy::cast_precision_loss, reason = "seconds of CPU time are far below 2^52")]
fn cpu_seconds(who: UsageWho) -> f64 {
    let usage = getrusage(who).unwrap();
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}
