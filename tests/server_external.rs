//! A server that already runs, and the choice between backends.

use loadlab::engine::postgres::{Endpoint, Role, Secret, Session};
use loadlab::environment::choose::{Choice, On, choose};
use loadlab::environment::external::{ExternalProvider, abandoned_schemas};
use loadlab::environment::ledger::Ledger;
use loadlab::environment::{Launch, Provider};
use loadlab::model::{Backend, ConnectionPath, EnvironmentSpec};

use crate::server_container::{Bench, answer, engine, environment};

#[tokio::test(flavor = "multi_thread")]
async fn an_external_server_gets_a_schema_and_gives_it_back() {
    let Some(engine) = engine().await else { return };
    // Any server will do as the one that already runs.
    let connection = ConnectionPath::Address;
    let bench = Bench::new(&engine, "outer", EnvironmentSpec { connection, ..environment() }).await;
    let outer = bench.start(1).await;
    let Endpoint::Tcp { host, port, password } = &outer.endpoint else { panic!("TCP was asked for") };
    let url = Secret(format!("postgres://loadlab:{}@{host}:{port}/loadlab", password.0));
    let cache = tempfile::tempdir().expect("folder");
    let ledger = Ledger::open(cache.path(), "Run-7").expect("ledger");

    // What a run that was killed has left, and what belongs to somebody else.
    let session = Session::open(&outer.endpoint, Role::Owner).await.expect("connected");
    let foreign = "CREATE SCHEMA loadlab_dead_1; CREATE TABLE loadlab_dead_1.t (n int); CREATE SCHEMA loadlab_foreign_1";
    session.client.batch_execute(foreign).await.expect("made");
    let spec = environment();
    let provider = ExternalProvider::at(url.clone(), &spec, cache.path(), &ledger).await.expect("reached");
    let launch = Launch { run_id: "Run-7".to_owned(), trial: 3, environment: spec.clone() };
    let instance = provider.start(&launch).await.expect("a schema");
    assert_eq!(instance.facts.backend, Backend::External);
    assert_eq!(answer(&instance, "SELECT current_schema()::text").await, "loadlab_run_7_3");
    let notes =
        std::fs::read_dir(cache.path().join("external")).expect("folder").flatten().next().expect("one");
    let dead = ledger.owner().to_string().replacen(':', ":1", 1);
    std::fs::write(notes.path().join("loadlab_dead_1"), dead).expect("note");
    assert_eq!(abandoned_schemas(cache.path()).len(), 1);

    provider.prepare().await.expect("swept");
    instance.running.stop().await.expect("stopped");
    let schemas =
        "SELECT string_agg(nspname, ' ' ORDER BY nspname) FROM pg_namespace WHERE nspname LIKE 'loadlab%'";
    let left: String = session.client.query_one(schemas, &[]).await.expect("answered").get(0);
    assert_eq!(left, "loadlab_foreign_1");
    assert!(abandoned_schemas(cache.path()).is_empty());

    let wrong = Secret(url.0.replace(&password.0, "canary-password"));
    let error =
        ExternalProvider::at(wrong, &spec, cache.path(), &ledger).await.map(drop).expect_err("refused");
    assert!(!error.to_string().contains("canary"), "{error}");
    assert!(error.to_string().contains("password authentication failed"), "{error}");
    drop(session);
    outer.running.stop().await.expect("stopped");
    bench.assert_nothing_left();
}

#[tokio::test(flavor = "multi_thread")]
async fn auto_takes_the_container_and_says_so() {
    let Some(_engine) = engine().await else { return };
    let cache = tempfile::tempdir().expect("folder");
    let ledger = Ledger::open(cache.path(), "auto").expect("ledger");
    let choice = Choice { on: On::Auto, offline: true, cache: cache.path().to_owned(), earlier: None };
    let chosen = choose(&environment(), &choice, &ledger).await.expect("chosen");
    assert_eq!(chosen.provider.backend(), Backend::Container);
    assert!(chosen.why.starts_with("container of image loadlab/postgres:15 on engine "), "{}", chosen.why);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_for_is_never_replaced() {
    let Some(_engine) = engine().await else { return };
    let cache = tempfile::tempdir().expect("folder");
    let ledger = Ledger::open(cache.path(), "explicit").expect("ledger");
    let choice = |on| Choice { on, offline: true, cache: cache.path().to_owned(), earlier: None };
    let absent = EnvironmentSpec { image: "loadlab/never-made:1".to_owned(), ..environment() };
    let error = choose(&absent, &choice(On::Container), &ledger).await.map(drop).expect_err("no image");
    assert!(error.to_string().contains("loadlab/never-made:1"), "{error}");
    let mut limited = environment();
    limited.limits.memory_bytes = Some(1 << 30);
    let error = choose(&limited, &choice(On::Local), &ledger).await.map(drop).expect_err("no memory limit");
    assert!(error.to_string().contains("a memory limit"), "{error}");
    let unset = EnvironmentSpec { url_variable: "LOADLAB_NO_SUCH_URL".to_owned(), ..environment() };
    let error = choose(&unset, &choice(On::External), &ledger).await.map(drop).expect_err("no URL");
    assert!(error.to_string().contains("LOADLAB_NO_SUCH_URL is not set"), "{error}");
}
