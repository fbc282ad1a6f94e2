//! What is wrong, where, what was expected and what to do about it.
//!
//! Mistakes are collected, not thrown: a person fixes a file in passes, and one pass should be enough.
//! A mistake that shows for many treatments is one diagnostic that says for which.

use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::model::{Design, Treatment};
use crate::spec::tree::Place;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The experiment cannot be run.
    Error,
    /// It can be run, but probably not as meant.
    Warning,
}

/// One mistake.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// Where.
    pub place: Place,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// What would have been right.
    pub expected: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// The treatments it shows for; empty when it is about the file as such.
    pub treatments: Vec<Treatment>,
    /// Sentence about the treatments, when it does not show for all.
    pub shows_for: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn new(place: Place, message: impl Into<String>) -> Self {
        Self {
            place,
            severity: Severity::Error,
            message: message.into(),
            expected: None,
            hint: None,
            treatments: Vec::new(),
            shows_for: None,
        }
    }

    /// The same as a warning.
    #[must_use]
    pub fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// Says what would have been right.
    #[must_use]
    pub fn expected(mut self, text: impl Into<String>) -> Self {
        self.expected = Some(text.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        self.hint = Some(text.into());
        self
    }

    /// Says what to do, if there is something to say.
    #[must_use]
    pub fn maybe_hint(mut self, text: Option<String>) -> Self {
        self.hint = text.or(self.hint);
        self
    }

    /// Whether two diagnostics are the same mistake, seen in different treatments.
    fn same_mistake(&self, other: &Self) -> bool {
        self.place == other.place && self.message == other.message
    }

    fn report(&self) -> Group<'_> {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let source = &self.place.source;
        let title = level.primary_title(self.message.as_str());
        let mut group = if source.text.is_empty() {
            // The file as such is wrong; there are no characters to show.
            Group::with_title(title)
        } else {
            let marks = AnnotationKind::Primary.span(self.place.start..self.place.end.max(self.place.start));
            title.element(Snippet::source(source.text.as_str()).path(source.name.as_str()).annotation(marks))
        };
        let notes = [("expected", &self.expected), ("hint", &self.hint), ("shows", &self.shows_for)];
        for (name, text) in notes {
            if let Some(text) = text {
                group = group.element(Level::NOTE.with_name(name).message(text.as_str()));
            }
        }
        group
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Renderer::plain().render(&[self.report()]))
    }
}

impl Serialize for Diagnostic {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (line, column) = self.place.line_column();
        let mut fields = serializer.serialize_struct("Diagnostic", 10)?;
        fields.serialize_field("severity", &self.severity)?;
        fields.serialize_field("file", &self.place.source.name)?;
        fields.serialize_field("line", &line)?;
        fields.serialize_field("column", &column)?;
        fields.serialize_field("start_byte", &self.place.start)?;
        fields.serialize_field("end_byte", &self.place.end)?;
        fields.serialize_field("message", &self.message)?;
        fields.serialize_field("expected", &self.expected)?;
        fields.serialize_field("hint", &self.hint)?;
        fields.serialize_field("shows_for", &self.shows_for)?;
        fields.end()
    }
}

/// All mistakes of one pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Diagnostics {
    /// Without repeats; in the order of the file once [`Diagnostics::sort`] was called.
    pub items: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Adds one, unless the same mistake is there already; then only its treatments are added.
    pub fn push(&mut self, found: Diagnostic) {
        match self.items.iter_mut().find(|item| item.same_mistake(&found)) {
            Some(item) => {
                for treatment in found.treatments {
                    if item.treatments.last() != Some(&treatment) {
                        item.treatments.push(treatment);
                    }
                }
            }
            None => self.items.push(found),
        }
    }

    /// Adds many, marking them as found in a treatment.
    pub fn extend_for(&mut self, treatment: &Treatment, found: Self) {
        for mut item in found.items {
            item.treatments = vec![treatment.clone()];
            self.push(item);
        }
    }

    /// Adds many.
    pub fn extend(&mut self, found: Self) {
        for item in found.items {
            self.push(item);
        }
    }

    /// Whether nothing at all was found.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.items.iter().any(|item| item.severity == Severity::Error)
    }

    /// The warnings, taken out.
    #[must_use]
    pub fn split_warnings(self) -> (Self, Self) {
        let (errors, warnings) = self.items.into_iter().partition(|item| item.severity == Severity::Error);
        (Self { items: errors }, Self { items: warnings })
    }

    /// Sorts by place; the experiment file and its command line come before other files.
    pub fn sort(&mut self, main_file: &str) {
        self.items.sort_by(|a, b| {
            let key = |item: &Diagnostic| {
                let name = item.place.source.name.clone();
                (item.severity, name != main_file, name, item.place.start, item.place.end)
            };
            key(a).cmp(&key(b))
        });
    }

    /// Writes for each mistake that does not show for all `checked` treatments for which it does.
    pub fn name_treatments(&mut self, design: &Design, checked: &[Treatment]) {
        for item in &mut self.items {
            let count = item.treatments.len();
            if count == 0 || count >= checked.len() {
                continue;
            }
            let common = common_levels(&item.treatments);
            let matching = checked.iter().filter(|treatment| {
                common.iter().all(|(factor, level)| treatment.levels.get(*factor) == Some(level))
            });
            let total = checked.len();
            item.shows_for = Some(if !common.is_empty() && matching.count() == count {
                let parts: Vec<String> = common
                    .iter()
                    .map(|(factor, level)| {
                        let factor = &design.factors[*factor];
                        format!("{}={}", factor.name, factor.levels[*level].name)
                    })
                    .collect();
                format!("when {} ({count} of {total} treatments)", parts.join(" "))
            } else {
                let example = design.label(&item.treatments[0]);
                format!("for {count} of {total} treatments, for example {example}")
            });
        }
    }

    /// All of them as text for a terminal.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let parts = self.items.iter().map(|item| renderer.render(&[item.report()]));
        parts.collect::<Vec<_>>().join("\n\n")
    }
}

/// Factor and level pairs that all the treatments share.
fn common_levels(treatments: &[Treatment]) -> Vec<(usize, usize)> {
    let Some(first) = treatments.first() else { return Vec::new() };
    let pairs = first.levels.iter().copied().enumerate();
    pairs
        .filter(|(factor, level)| treatments.iter().all(|other| other.levels.get(*factor) == Some(level)))
        .collect()
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

impl From<Diagnostic> for Diagnostics {
    fn from(found: Diagnostic) -> Self {
        Self { items: vec![found] }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::model::{Blocks, Factor, Level, Scalar};
    use crate::spec::tree::Source;

    use super::*;

    fn place() -> Place {
        let source = Source { name: "x.yaml".to_owned(), text: "design:\n  block: 6\n".to_owned() };
        Place { source: Arc::new(source), start: 10, end: 15 }
    }

    fn design() -> Design {
        let level = |name: &str| Level {
            name: name.to_owned(),
            value: Some(Scalar::Text(name.to_owned())),
            values: indexmap::IndexMap::new(),
        };
        let factor = |name: &str| Factor { name: name.to_owned(), levels: vec![level("a"), level("b")] };
        Design {
            factors: vec![factor("x"), factor("y")],
            include: vec![],
            exclude: vec![],
            blocks: Blocks { min: 6, max: 6, until: None, budget: None },
            seed: 1,
        }
    }

    #[test]
    fn shows_place_expectation_and_hint() {
        let found = Diagnostic::new(place(), "unknown key `block`")
            .expected("`blocks`")
            .hint("did you mean `blocks`?");
        insta::assert_snapshot!(found.to_string(), @r"
        error: unknown key `block`
         --> x.yaml:2:3
          |
        2 |   block: 6
          |   ^^^^^
          |
          = expected: `blocks`
          = hint: did you mean `blocks`?
        ");
        let json = serde_json::to_value(&found).expect("serialises");
        assert_eq!(json["line"], 2);
        assert_eq!(json["column"], 3);
    }

    #[test]
    fn the_same_mistake_is_one_diagnostic_with_its_treatments() {
        let checked: Vec<_> =
            [[0, 0], [0, 1], [1, 0], [1, 1]].map(|levels| Treatment { levels: levels.to_vec() }).to_vec();
        let mut all = Diagnostics::default();
        for treatment in [&checked[2], &checked[3]] {
            all.extend_for(treatment, Diagnostic::new(place(), "wrong").into());
        }
        all.name_treatments(&design(), &checked);
        assert_eq!(all.items.len(), 1);
        assert_eq!(all.items[0].shows_for.as_deref(), Some("when x=b (2 of 4 treatments)"));
        all.extend_for(&checked[0], Diagnostic::new(place(), "wrong").into());
        all.name_treatments(&design(), &checked);
        assert_eq!(all.items[0].shows_for.as_deref(), Some("for 3 of 4 treatments, for example x=b y=a"));
    }
}
