//! Golden messages: every file in `tests/cases/invalid/` is wrong in one way that people get wrong, and
//! the whole message is a snapshot. Writing the bad file is how a message is improved.
//!
//! A first line `# args: --set a=b --only c=d --profile e` gives command-line options.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loadlab::spec::{LoadOptions, load};

/// Longest time from a bad file to its message, with room for a slow machine and a debug build.
const QUICK: Duration = Duration::from_secs(30);

fn options(text: &str) -> LoadOptions {
    let mut options = LoadOptions::default();
    let args = text.lines().next().and_then(|line| line.strip_prefix("# args: ")).unwrap_or_default();
    let mut words = args.split_whitespace();
    while let (Some(option), Some(value)) = (words.next(), words.next()) {
        match option {
            "--set" => options.set.push(value.to_owned()),
            "--only" => options.only.push(value.to_owned()),
            "--profile" => options.profile = Some(value.to_owned()),
            other => panic!("unknown option {other}"),
        }
    }
    options
}

/// What `loadlab check` says about a file.
fn message(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path).expect("the case can be read");
    let spec = load(path, &options(&text)).map_err(|found| found.to_string())?;
    let report = spec.check_all().map_err(|found| found.to_string())?;
    Ok(format!("{report}\n{}", report.warnings))
}

fn cases(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new("tests/cases").join(folder);
    let entries = folder.read_dir().expect("the folder exists");
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    cases.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    cases.sort();
    cases
}

fn snapshot(path: &Path, text: &str) {
    let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
    let description = path.display().to_string();
    insta::with_settings!({ snapshot_path => "snapshots/invalid", prepend_module_to_snapshot => false, description => description, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn every_invalid_file_has_its_message() {
    let cases = cases("invalid");
    assert!(cases.len() >= 35, "{} cases", cases.len());
    for path in cases {
        let started = Instant::now();
        match message(&path) {
            Ok(report) => panic!("{} was not refused: {report}", path.display()),
            Err(found) => snapshot(&path, &found),
        }
        assert!(started.elapsed() < QUICK, "{} took {:?}", path.display(), started.elapsed());
    }
}

#[test]
fn doubtful_files_are_warned_about() {
    for path in cases("doubtful") {
        let report =
            message(&path).unwrap_or_else(|found| panic!("{} was refused:\n{found}", path.display()));
        snapshot(&path, &report);
    }
}

#[test]
fn a_missing_file_is_named() {
    let found =
        load(Path::new("experiments/nowhere.yaml"), &LoadOptions::default()).expect_err("it is not there");
    assert_eq!(
        found.to_string().trim(),
        "error: cannot read `experiments/nowhere.yaml`: No such file or directory (os error 2)"
    );
}

/// Generated because nobody wants to read them.
#[test]
fn large_files_are_refused_quickly() {
    let folder = tempfile::tempdir().expect("a folder");
    let columns: Vec<String> = (0..1601).map(|number| format!("c{number} integer")).collect();
    let wide = format!(
        "experiment: x\nquestion: q\ntables: {{t: {{ddl: \"CREATE TABLE t ({})\", rows: 1}}}}\nsteps: [{{create: t}}]\n",
        columns.join(", ")
    );
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        bomb = format!("{bomb}a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(", "));
    }
    let levels =
        vec!["1"; 1000].iter().enumerate().map(|(index, _)| index.to_string()).collect::<Vec<_>>().join(", ");
    let matrix = format!(
        "experiment: x\nquestion: q\ndesign: {{factors: {{a: [{levels}], b: [{levels}], c: [{levels}]}}}}\n\
         tables: {{t: {{ddl: \"CREATE TABLE t (a integer)\", rows: \"{{{{ a + b + c }}}}\"}}}}\nsteps: [{{create: t}}]\n"
    );
    for (name, text, part) in [
        ("wide", wide, "1601"),
        ("bomb", bomb, "asks for too much"),
        ("brackets", "[".repeat(400_000), "asks for too much"),
        ("matrix", matrix, "1000000000 combinations: a (1000) x b (1000) x c (1000)"),
        ("large", "# long\n".repeat(200_000), "larger than 1 MiB"),
    ] {
        let path = folder.path().join(format!("{name}.yaml"));
        std::fs::write(&path, text).expect("written");
        let started = Instant::now();
        let found = message(&path).expect_err(name);
        assert!(found.contains(part), "{name}: {}", found.chars().take(2000).collect::<String>());
        assert!(started.elapsed() < QUICK, "{name} took {:?}", started.elapsed());
    }
}

/// A correct experiment with a piece cut out and something else put in never makes loadlab panic, and
/// every message can be shown.
fn mutated(at: usize, length: usize, with: &str) {
    let text = std::fs::read_to_string("tests/cases/valid/orders.yaml").expect("the case can be read");
    let start = (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let end = (start + length..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("orders.yaml");
    std::fs::write(&path, format!("{}{with}{}", &text[..start], &text[end..])).expect("written");
    let _ = message(&path);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_change_of_a_file_makes_it_panic(
        at in 0_usize..2500,
        length in 0_usize..40,
        with in "(|\\{\\{|\\}\\}|[-:\\[{}\\]'\"%&*!|>#\n]|ä|\u{0}|0|-1|1e9|null|\\{% if %\\}|\n  - |[a-z ]{0,8})",
    ) {
        mutated(at, length, &with);
    }
}

#[test]
fn the_valid_case_is_valid() {
    let report =
        message(Path::new("tests/cases/valid/orders.yaml")).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(report.trim(), "11 treatments, 66 trials, every treatment checked");
}
