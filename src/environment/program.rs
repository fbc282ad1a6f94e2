//! Client programs of the server's own version, such as `pg_dump`, run beside the server: from its own folder for a local
//! server, inside the container for a container.
//!
//! Both run one shell script: a pipeline whose every exit code is told, with the CPU time of all of it at the end.

use super::EnvironmentError;
use super::account::last_lines;

/// Programs whose outputs go from one into the next; the last one's is thrown away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline(pub Vec<Program>);

/// A program with its arguments. Host, user, database and password are in its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its name, without a folder.
    pub name: &'static str,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// How a pipeline ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PipelineEnd {
    /// CPU time of the programs and all they started.
    pub cpu_seconds: Option<f64>,
    /// Whether that time is in the server's usage too: the programs ran in its container.
    pub counted_with_server: bool,
}

/// Programs that dumps need.
pub const DUMP_PROGRAMS: [&str; 3] = ["pg_dump", "pg_restore", "psql"];

/// Whether client programs of one major can be used with a server of another: never older ones, and from 17 on
/// `pg_restore` sets a parameter (`transaction_timeout`) that older servers refuse.
#[must_use]
pub fn is_legal(client: u32, server: u32) -> bool {
    client == server || (client > server && (server >= 17 || client < 17))
}

/// The script for `sh -c`. `folder` comes before the names of programs; empty where they are on the search path.
pub(super) fn script(pipeline: &Pipeline, folder: &str) -> String {
    let stages = pipeline.0.iter().enumerate().map(|(number, program)| {
        let words =
            std::iter::once(format!("{folder}{}", program.name)).chain(program.arguments.iter().cloned());
        let words: Vec<String> = words.map(|word| quoted(&word)).collect();
        format!("{{ {}; echo \"code {number} $?\" >&3; }}", words.join(" "))
    });
    format!("exec 3>&1 </dev/null; {{ {}; }} >/dev/null; times", stages.collect::<Vec<_>>().join(" | "))
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Reads what the script wrote.
pub(super) fn ended(
    pipeline: &Pipeline,
    stdout: &str,
    stderr: &str,
    counted_with_server: bool,
) -> Result<PipelineEnd, EnvironmentError> {
    let code = |number: usize| {
        let told = format!("code {number} ");
        stdout.lines().find_map(|line| line.strip_prefix(&told)).and_then(|code| code.parse::<i32>().ok())
    };
    let mut wrong = Vec::new();
    for (number, program) in pipeline.0.iter().enumerate() {
        match code(number) {
            Some(0) => {}
            Some(127) => wrong.push(format!("{} was not found", program.name)),
            Some(code) => wrong.push(format!("{} ended with exit code {code}", program.name)),
            None => wrong.push(format!("{} was cut short", program.name)),
        }
    }
    if !wrong.is_empty() {
        return Err(EnvironmentError::Program { what: wrong.join(", "), words: last_lines(stderr, 12) });
    }
    Ok(PipelineEnd { cpu_seconds: children_seconds(stdout), counted_with_server })
}

/// The second of the two lines that `times` writes: user and system time of ended children, `0m1.230s 0m0.040s`.
fn children_seconds(stdout: &str) -> Option<f64> {
    let line = stdout.lines().last()?;
    let seconds = |word: &str| {
        let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.replace(',', ".").parse::<f64>().ok()?)
    };
    line.split_whitespace().map(seconds).sum()
}

/// What tells a client program where the server is.
pub(super) fn connection_variables(
    host: &str,
    port: u16,
    password: Option<&crate::engine::postgres::Secret>,
) -> Vec<(String, String)> {
    let owner = crate::engine::postgres::OWNER;
    let mut variables = vec![
        ("PGHOST".to_owned(), host.to_owned()),
        ("PGPORT".to_owned(), port.to_string()),
        ("PGUSER".to_owned(), owner.to_owned()),
        ("PGDATABASE".to_owned(), crate::engine::postgres::DATABASE.to_owned()),
        // The server's statistics are complete when no session of this name is left.
        ("PGAPPNAME".to_owned(), crate::engine::postgres::WORKER.to_owned()),
    ];
    variables.extend(password.map(|password| ("PGPASSWORD".to_owned(), password.0.clone())));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &'static str, arguments: &[&str]) -> Program {
        Program { name, arguments: arguments.iter().map(|word| (*word).to_owned()).collect() }
    }

    fn run(pipeline: &Pipeline) -> Result<PipelineEnd, EnvironmentError> {
        let output = std::process::Command::new("sh").arg("-c").arg(script(pipeline, "")).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        ended(pipeline, &text(&output.stdout), &text(&output.stderr), false)
    }

    #[test]
    fn the_code_of_each_end_is_known() {
        let fails = || program("sh", &["-c", "echo 'it''s \"bad\"' >&2; exit 3"]);
        let fine = run(&Pipeline(vec![program("echo", &["a 'b' $c"]), program("grep", &["-q", "a 'b' $c"])]));
        assert!(fine.unwrap().cpu_seconds.is_some());
        for (pipeline, expected) in [
            (vec![fails(), program("cat", &[])], "sh ended with exit code 3"),
            (vec![program("echo", &["x"]), fails()], "sh ended with exit code 3"),
            (vec![program("no-such-program", &[])], "no-such-program was not found"),
        ] {
            let error = run(&Pipeline(pipeline)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn work_of_the_programs_is_counted() {
        let busy = program("sh", &["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]);
        let end = run(&Pipeline(vec![busy, program("cat", &[])])).unwrap();
        assert!(end.cpu_seconds > Some(0.01), "{end:?}");
        assert_eq!(children_seconds("code 0 0\n0m0.000s 0m0.000s\n1m2.500s 0m0.250s\n"), Some(62.75));
    }

    #[test]
    fn older_programs_and_newer_ones_that_set_too_much_are_refused() {
        for (client, server, legal) in [
            (15, 15, true),
            (16, 15, true),
            (14, 15, false),
            (17, 15, false),
            (18, 17, true),
            (17, 18, false),
        ] {
            assert_eq!(is_legal(client, server), legal, "{client} {server}");
        }
    }
}
