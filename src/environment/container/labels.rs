//! Names and labels of what we make in the engine.

use std::collections::HashMap;

use crate::environment::engine::{OWNER_LABEL, RUN_LABEL};
use crate::environment::ledger::Ledger;

/// Label of baked images: their key. Such images are kept between runs.
pub const BAKED_LABEL: &str = "io.loadlab.baked";

/// The labels of something that must be gone when the run is over.
pub(super) fn of_run(ledger: &Ledger) -> HashMap<String, String> {
    HashMap::from([
        (RUN_LABEL.to_owned(), ledger.run_id().to_owned()),
        (OWNER_LABEL.to_owned(), ledger.owner().to_string()),
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
