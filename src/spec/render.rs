//! Templates of one treatment: the tree as written into a tree of final values.
//!
//! `ddl`, `indexes` and `template` stay as they are written, because they are rendered once per copy of a
//! table or for every row. Names of `.sql` files are replaced by the text of the file.

use crate::model::{Design, Treatment};
use crate::spec::diagnostic::{Diagnostic, Diagnostics};
use crate::spec::files::{Files, is_sql_file};
use crate::spec::template::{Names, Templates, is_template, level_value, to_dynamic};
use crate::spec::tree::{Node, Place, Value};

/// Renders the parts of a file that belong to a trial.
pub struct Renderer<'a> {
    /// The engine.
    pub templates: &'a Templates,
    /// The files.
    pub files: &'a Files,
}

/// The factors of a treatment as names for templates.
#[must_use]
pub fn names_of(design: &Design, treatment: &Treatment) -> Names {
    let pairs = design.describe(treatment).into_iter();
    pairs.map(|(factor, level)| (factor.to_owned(), level_value(level))).collect()
}

impl Renderer<'_> {
    /// `needs`, `server`, `tables` and `steps`, rendered; what cannot be rendered is marked as broken.
    pub fn trial(&self, root: &Node, names: &Names, found: &mut Diagnostics) -> Node {
        let parts = root
            .entries()
            .iter()
            .filter(|(key, _)| matches!(key.text.as_str(), "needs" | "server" | "tables" | "steps"));
        let entries = parts.map(|(key, node)| {
            let rendered = match key.text.as_str() {
                "tables" => self.tables(node, names, found),
                "steps" => self.steps(node, names, found),
                _ => self.node(node, names, found),
            };
            (key.clone(), rendered)
        });
        Node { value: Value::Map(entries.collect()), place: root.place.clone() }
    }

    /// One value with everything below it.
    pub fn node(&self, node: &Node, names: &Names, found: &mut Diagnostics) -> Node {
        let value = match &node.value {
            Value::Text(text) => {
                self.templates.render(text, &node.place, names, found).unwrap_or(Value::Broken)
            }
            Value::List(items) => {
                Value::List(items.iter().map(|item| self.node(item, names, found)).collect())
            }
            Value::Map(entries) => Value::Map(
                entries.iter().map(|(key, child)| (key.clone(), self.node(child, names, found))).collect(),
            ),
            other => other.clone(),
        };
        Node { value, place: node.place.clone() }
    }

    fn tables(&self, node: &Node, names: &Names, found: &mut Diagnostics) -> Node {
        map_entries(node, |_, table| {
            let mut names = names.clone();
            // Other values of the table may ask for its number of rows.
            if let Some(rows) = table.get("rows") {
                let rows = self.node(rows, &names, &mut Diagnostics::default());
                names.extend(rows.scalar().map(|rows| ("rows".to_owned(), to_dynamic(&rows))));
            }
            map_entries(table, |key, child| match key {
                "ddl" | "indexes" => self.sql(child, found),
                "values" | "values_by_type" => self.values(child, &names, found),
                _ => self.node(child, &names, found),
            })
        })
    }

    /// The values of all columns.
    fn values(&self, node: &Node, names: &Names, found: &mut Diagnostics) -> Node {
        map_entries(node, |_, value| self.generator(value, names, found))
    }

    /// A generator: everything but what stands at `template:`.
    fn generator(&self, node: &Node, names: &Names, found: &mut Diagnostics) -> Node {
        if !matches!(node.value, Value::Map(_)) {
            return self.node(node, names, found);
        }
        map_entries(node, |key, child| match (&child.value, key) {
            (Value::Text(_), "template") => child.clone(),
            _ => self.generator(child, names, found),
        })
    }

    fn steps(&self, node: &Node, names: &Names, found: &mut Diagnostics) -> Node {
        let Value::List(items) = &node.value else { return self.node(node, names, found) };
        let items = items.iter().map(|step| {
            if !self.wanted(step, names, found) {
                return Node { value: Value::Broken, place: step.place.clone() };
            }
            let with_sql =
                map_entries(step, |kind, content| match (kind, &content.value) {
                    ("sql", Value::Text(_)) => self.sql(content, found),
                    ("sql", Value::Map(_)) => map_entries(content, |key, child| {
                        if key == "run" { self.sql(child, found) } else { child.clone() }
                    }),
                    ("load", Value::Map(_)) => self.body(content, found),
                    _ => content.clone(),
                });
            self.node(&with_sql, names, found)
        });
        Node { value: Value::List(items.collect()), place: node.place.clone() }
    }

    /// A load whose method has a body of its own.
    fn body(&self, load: &Node, found: &mut Diagnostics) -> Node {
        map_entries(load, |key, method| match key {
            "method" => {
                map_entries(method, |name, options| match name {
                    "procedure" => map_entries(options, |key, child| {
                        if key == "body" { self.sql(child, found) } else { child.clone() }
                    }),
                    _ => options.clone(),
                })
            }
            _ => method.clone(),
        })
    }

    /// What a step's `when` says. A step that is left out is marked as broken, so that nothing below it is
    /// rendered or bound.
    fn wanted(&self, step: &Node, names: &Names, found: &mut Diagnostics) -> bool {
        let when = step.entries().first().and_then(|(_, content)| content.get("when"));
        let Some(when) = when else { return true };
        let rendered = self.node(when, names, found);
        match rendered.value {
            Value::Bool(wanted) => wanted,
            Value::Broken => false,
            _ => {
                let problem =
                    Diagnostic::new(when.place.first_line(), format!("`when` is {}", rendered.describe()));
                found.push(problem.expected("true or false, such as \"{{ method == 'copy' }}\""));
                false
            }
        }
    }

    /// SQL: the name of a file is replaced by its text.
    fn sql(&self, node: &Node, found: &mut Diagnostics) -> Node {
        let Some(text) = node.text().filter(|text| is_sql_file(text)) else { return node.clone() };
        let broken = Node { value: Value::Broken, place: node.place.clone() };
        if is_template(text) {
            found.push(
                Diagnostic::new(node.place.first_line(), "the name of a file cannot be a template")
                    .hint("name one `.sql` file and choose inside it: `{% if ... %} ... {% endif %}`"),
            );
            return broken;
        }
        match self.files.sql(text.trim()) {
            Ok(source) => {
                let place = Place { start: 0, end: source.text.len(), source };
                Node { value: Value::Text(place.text().to_owned()), place }
            }
            Err(problem) => {
                found
                    .push(Diagnostic::new(node.place.first_line(), problem.message).maybe_hint(problem.hint));
                broken
            }
        }
    }
}

/// A map with every value replaced; other values as they are.
fn map_entries(node: &Node, mut change: impl FnMut(&str, &Node) -> Node) -> Node {
    let Value::Map(entries) = &node.value else { return node.clone() };
    let entries = entries.iter().map(|(key, child)| (key.clone(), change(&key.text, child)));
    Node { value: Value::Map(entries.collect()), place: node.place.clone() }
}
