//! Names and labels of what we make in the engine.

use std::collections::HashMap;

use crate::environment::ledger::Ledger;

/// Label of containers and volumes: the run they belong to.
pub const LABEL_RUN: &str = "io.loadlab.run";
/// Label of containers and volumes: the process they belong to, as `pid:start:boot id`.
pub const LABEL_OWNER: &str = "io.loadlab.owner";
/// Label of baked images: their key. Such images are kept between runs.
pub const LABEL_BAKED: &str = "io.loadlab.baked";

/// The labels of something that must be gone when the run is over.
pub(super) fn of_run(ledger: &Ledger) -> HashMap<String, String> {
    HashMap::from([
        (LABEL_RUN.to_owned(), ledger.run_id().to_owned()),
        (LABEL_OWNER.to_owned(), ledger.owner().to_string()),
    ])
}

/// Name of a trial's container. Engines allow letters, digits, `_`, `.` and `-`.
pub(super) fn container_name(run_id: &str, trial: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '-' };
    format!("loadlab-{}-{trial}", run_id.chars().map(allowed).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_only_what_engines_allow() {
        assert_eq!(container_name("2026-01-02 a/b~2", "7"), "loadlab-2026-01-02-a-b-2-7");
    }
}
