//! The same seed and version give the same plan, SQL and rows, to the last byte: in every process, whatever its locale,
//! time zone and number of threads, and in every version unless the change is announced.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use loadlab::engine::postgres::encode::expected_content;
use loadlab::model::{BoundTrial, StepKind};
use loadlab::plan::Plan;
use loadlab::spec::{LoadOptions, load};
use sha2::{Digest, Sha256};

/// Where the program under test writes everything that it makes of the golden experiments.
const TELL: &str = "LOADLAB_TELL_WHAT_IS_MADE";
/// The test that does so.
const TEST: &str = "determinism::the_golden_experiments_make_what_they_always_made";

/// What version 0.1 makes of the experiments in `tests/cases/golden/`: digest of the order, of all SQL, of all rows.
/// Kept runs and published numbers rest on these: a seed stands for certain rows in a certain order. Whoever changes one
/// of them on purpose says so in CHANGELOG.md under a new version, and only then changes it here.
const GOLDEN: [(&str, &str, &str, &str); 2] = [
    (
        "every-generator",
        "4ce19ece4fb44fcf88114825b6f9277a7663b973ed21bbcf7e6cbe5444b36933",
        "d5d06d95cbf45b4389b672f201f3f05f16eff6c60cd47ef002c42327d66aba9b",
        "bb3824f1d7eebbb1d2aad02e68456177f825fc74fc1f4ddc0058861b43c36779",
    ),
    (
        "every-method",
        "41369bc751a995df406315adc9c18e9ce846744e3f59970d9cc96dd5ce53feeb",
        "8199e3069a01d8bf96d1cf556f37a9d31c9b034de69a64a5a3ab55c6c49b4b1b",
        "1fffc551611c56bfbe175204be484a11fd354359d967d2f6a3c4738158a7e223",
    ),
];

/// Everything that is made of an experiment.
struct Made {
    order: String,
    /// All statements of all treatments, one a line.
    sql: String,
    /// Content of every copy of every table.
    rows: String,
    /// The trials as `run` sees them.
    bound: String,
}

fn make(name: &str) -> Made {
    let file = format!("{}/tests/cases/golden/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let spec = load(Path::new(&file), &LoadOptions::default()).unwrap_or_else(|found| panic!("{found}"));
    let plan = Plan::new(&spec.design).unwrap();
    let mut made =
        Made { order: plan.order_digest(), sql: String::new(), rows: String::new(), bound: String::new() };
    for index in 0..plan.treatments() {
        let trial = spec.bind(&plan.treatment(index)).unwrap_or_else(|found| panic!("{found}"));
        for statement in statements(&trial) {
            writeln!(made.sql, "{statement}").unwrap();
        }
        for table in &trial.tables {
            for copy in 0..table.copies.len() {
                writeln!(made.rows, "{} {}", table.copies[copy].name, expected_content(table, copy).unwrap())
                    .unwrap();
            }
        }
        made.bound += &serde_json::to_string(&trial).unwrap();
    }
    made
}

fn statements(trial: &BoundTrial) -> Vec<&String> {
    let copies = trial.tables.iter().flat_map(|table| &table.copies);
    let mut all: Vec<&String> = copies.flat_map(|copy| copy.ddl.iter().chain(&copy.indexes)).collect();
    for step in &trial.steps {
        if let StepKind::Sql { statements, .. } = &step.kind {
            all.extend(statements);
        }
    }
    all
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

#[test]
fn the_golden_experiments_make_what_they_always_made() {
    let mut all = String::new();
    for (name, order, sql, rows) in GOLDEN {
        let made = make(name);
        write!(all, "{name}\n{}\n{}\n{}\n{}\n", made.order, made.sql, made.rows, made.bound).unwrap();
        let now = (name, &*made.order, &*digest(&made.sql), &*digest(&made.rows));
        assert_eq!(now, (name, order, sql, rows), "a seed no longer stands for the same; see GOLDEN");
    }
    if let Some(file) = std::env::var_os(TELL) {
        fs::write(file, all).unwrap();
    }
}

/// Surroundings in which a process may find itself: variables and their values.
const SURROUNDINGS: [&[(&str, &str)]; 2] = [
    &[
        ("LC_ALL", "C"),
        ("LANG", "C"),
        ("TZ", "UTC"),
        ("TOKIO_WORKER_THREADS", "1"),
        ("RUST_TEST_THREADS", "1"),
    ],
    &[
        ("LC_ALL", "tr_TR.UTF-8"),
        ("LANG", "de_DE.UTF-8"),
        ("TZ", "Asia/Kathmandu"),
        ("TOKIO_WORKER_THREADS", "7"),
        ("POLARS_MAX_THREADS", "5"),
        ("RUST_TEST_THREADS", "8"),
    ],
];

#[test]
fn another_process_in_other_surroundings_makes_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let told = SURROUNDINGS.map(|variables| {
        let file = folder.path().join(variables[2].1.replace('/', "-"));
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", TEST]).envs(variables.iter().copied()).env(TELL, &file);
        let output = command.current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        fs::read_to_string(file).unwrap()
    });
    assert!(told[0].len() > 10_000, "something was told: {}", told[0].len());
    assert!(told[0] == told[1], "two processes made different things");
}

#[test]
fn plans_are_the_same_to_the_last_byte() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let golden = ["tests/cases/golden/every-generator.yaml", "tests/cases/golden/every-method.yaml"];
    for file in golden.into_iter().chain(["experiments/quickstart.yaml", "experiments/unlogged.yaml"]) {
        let told = SURROUNDINGS.map(|variables| {
            // Elsewhere, without an earlier run to learn from.
            let folder = tempfile::tempdir().unwrap();
            let mut command = Command::new(env!("CARGO_BIN_EXE_loadlab"));
            command.args(["plan", "--all", "--format", "json"]).arg(root.join(file));
            command.envs(variables.iter().copied()).env("LOADLAB_CACHE", folder.path());
            let output = command.current_dir(folder.path()).output().unwrap();
            assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        });
        assert!(told[0].contains("order_digest"), "{file}: {}", told[0]);
        assert!(told[0] == told[1], "{file}: two processes made different plans");
        assert!(
            !told[0].contains(env!("CARGO_MANIFEST_DIR")),
            "{file}: the plan depends on where the file is"
        );
    }
}
