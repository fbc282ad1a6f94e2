//! Claims that nothing could ever decide are mistakes of the file.

use crate::spec::claims::ClaimBinder;
use crate::spec::diagnostic::Diagnostics;
use crate::spec::suggest::{did_you_mean, one_of};
use crate::spec::wire::claim::{ClaimFile, ContrastFile};

/// What a claim may need, as far as a run can tell; the first are numbers.
const NEEDS: [&str; 9] =
    ["rows", "seconds", "version", "cores", "memory", "backend", "storage", "connection", "durable"];
/// How many of [`NEEDS`] are numbers.
const NUMBERS: usize = 5;

impl ClaimBinder<'_> {
    /// Reports what makes a claim impossible to judge.
    pub(super) fn can_be_judged(&self, file: &ClaimFile, path: &str, found: &mut Diagnostics) {
        if file.published.is_some_and(|number| !(number.is_finite() && number > 0.0)) {
            let problem = self.tree.problem(&format!("{path}.published"), "a published number is above 0");
            found.push(problem.hint("a ratio under 1 says that the first group is the slower one"));
        }
        if file.not_comparable.as_ref().is_some_and(|reason| reason.trim().is_empty()) {
            let problem = self.tree.problem(&format!("{path}.not_comparable"), "there is no reason here");
            found.push(problem.expected("why the statement cannot be tested here, in words"));
        }
        let contrasts = [("ratio", &file.ratio), ("no_difference", &file.no_difference)];
        for (key, contrast) in contrasts {
            if let Some(contrast) = contrast {
                self.groups_differ(contrast, &format!("{path}.{key}"), found);
            }
        }
        let repeated =
            |groups: &[_]| groups.iter().enumerate().any(|(index, group)| groups[..index].contains(group));
        if file.order.as_ref().is_some_and(|groups| groups.len() < 2 || repeated(groups)) {
            let problem =
                self.tree.problem(&format!("{path}.order"), "an order has two different groups or more");
            found.push(
                problem.expected("`[{storage: unlogged}, {storage: logged}]`, the highest value first"),
            );
        }
        self.needs_are_known(file, path, found);
    }

    fn groups_differ(&self, contrast: &ContrastFile, path: &str, found: &mut Diagnostics) {
        if contrast.of == contrast.to {
            let problem = self.tree.problem(path, "both groups are the same treatments");
            found.push(problem.expected("`of` and `to` with different levels"));
        }
        if contrast.margin.is_some_and(|margin| margin.0 <= 0.0) {
            let problem = self.tree.problem(&format!("{path}.margin"), "a margin of nothing is never kept");
            found.push(problem.expected("a share above 0, such as `5%`"));
        }
    }

    fn needs_are_known(&self, file: &ClaimFile, path: &str, found: &mut Diagnostics) {
        for (name, value) in &file.needs {
            let path = format!("{path}.needs.{name}");
            let Some(place) = NEEDS.iter().position(|known| known == name) else {
                let problem = self.tree.problem(&path, format!("`{name}` is nothing that a run can tell"));
                let hint = did_you_mean(name, NEEDS.iter().copied());
                found.push(problem.expected(one_of(NEEDS.iter().copied())).maybe_hint(hint));
                continue;
            };
            let text = value.0.to_string();
            if place < NUMBERS && !text.contains(|character: char| character.is_ascii_digit()) {
                let problem = self.tree.problem(&path, format!("`{text}` is no bound"));
                found.push(problem.expected("a comparison such as `\">= 100_000\"`"));
            }
        }
    }
}
