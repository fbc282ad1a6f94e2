//! `docs/FORMAT.md`, made from the JSON Schemas, which are made from the wire types.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::schema::{environment_schema, experiment_schema};
use crate::model::{METRICS, Nature};

/// What the types do not say.
const INTRODUCTION: &str = "# File formats

Generated from `src/spec/wire/`; do not edit. The same as JSON Schema, for editors: `docs/schema/`. Examples: `experiments/`,
`environments/`.

An experiment file is YAML. Unknown keys are mistakes, and all mistakes are reported at once, each with its place
(`just check FILE`). Single values may be templates in the language of Jinja: `\"{{ batch }}\"` is the level of the factor
`batch`, `\"{{ load.clients }}\"` a value of a named level, `\"{{ batch * 2 }}\"` a number; `ddl`, `indexes` and `.sql` files may
also use `{% if ... %}`. A template knows the factors and nothing of the machine. What `design`, `profiles`, `sources` and
`claims` hold is read before treatments exist and takes no templates.

Numbers may have underscores (`1_000_000`); sizes and durations have units (`64MB`, `30s`). Keys marked * are required.
";

/// The text of `docs/FORMAT.md`; a test compares it with the file.
///
/// # Panics
/// Never: both schemas have definitions.
#[must_use]
pub fn format_document() -> String {
    let mut text = INTRODUCTION.to_owned();
    let mut told = Vec::new();
    for (title, schema) in
        [("Experiment file", experiment_schema()), ("Environment file", environment_schema())]
    {
        let definitions = schema["definitions"].as_object().expect("both schemas have definitions");
        let document = Document { definitions };
        let _ = write!(text, "\n## {title}\n\n{}\n", words(&schema));
        document.keys(&schema, &mut text);
        for (name, definition) in definitions {
            if has_section(definition) && !told.contains(name) {
                let _ = write!(text, "\n### {}\n\n{}\n", display(name), sentence(&words(definition)));
                document.section(definition, &mut text);
                told.push(name.clone());
            }
        }
    }
    text += &metrics();
    text
}

/// The numbers that claims may ask for; what each is stands in the list of columns.
fn metrics() -> String {
    let natures = [
        (Nature::Rate, "something per second: more is better"),
        (Nature::Time, "times; those of several steps may be added: `copy+index.seconds`"),
        (Nature::Longest, "times at the far end of many; not to be added"),
        (Nature::Counter, "counts, asked for with `counter`; those of several steps may be added"),
        (Nature::Size, "sizes after a step, asked for with `counter`; not to be added"),
    ];
    let mut text = "\n## Metrics\n\nWritten `STEP.METRIC`. A number that a `command` step captures is a metric under its own name. \
                    What each is: [RESULTS.md](RESULTS.md).\n\n| metrics | what they are |\n| --- | --- |\n"
        .to_owned();
    for (nature, meaning) in natures {
        let names = METRICS.iter().filter(|metric| metric.nature == nature);
        let names: Vec<String> = names.map(|metric| format!("`{}`", metric.name)).collect();
        let _ = writeln!(text, "| {} | {meaning} |", names.join(", "));
    }
    text
}

/// A schema whose parts refer to each other.
struct Document<'a> {
    definitions: &'a Map<String, Value>,
}

impl Document<'_> {
    fn section(&self, definition: &Value, text: &mut String) {
        if definition.get("properties").is_some() {
            self.keys(definition, text);
        } else if let Some(choices) = definition.get("oneOf").and_then(Value::as_array) {
            text.push_str("\n| written | value | meaning |\n| --- | --- | --- |\n");
            choices.iter().filter(|choice| !is_template(choice)).for_each(|choice| self.choice(choice, text));
        } else if self.kind(definition).contains("](#") {
            let _ = write!(text, "\nWritten as: {}.\n", self.kind(definition));
        }
    }

    /// A table of an object's keys.
    fn keys(&self, object: &Value, text: &mut String) {
        let Some(properties) = object["properties"].as_object() else { return };
        text.push_str("\n| key | value | meaning |\n| --- | --- | --- |\n");
        for (key, schema) in properties {
            let required =
                object["required"].as_array().is_some_and(|keys| keys.iter().any(|name| name == key));
            let mark = if required { " *" } else { "" };
            let _ = writeln!(text, "| `{key}`{mark} | {} | {} |", self.kind(schema), words(schema));
        }
    }

    /// A row for one alternative: words, or a map of one key.
    fn choice(&self, choice: &Value, text: &mut String) {
        let meaning = words(choice);
        if let Some((key, schema)) = choice["properties"].as_object().and_then(|keys| keys.iter().next()) {
            let _ = writeln!(text, "| `{key}:` | {} | {meaning} |", self.kind(schema));
        } else {
            let _ = writeln!(text, "| {} | | {meaning} |", self.kind(choice));
        }
    }

    /// What may be written for a schema, in words.
    fn kind(&self, schema: &Value) -> String {
        if let Some(reference) = schema["$ref"].as_str() {
            return self.reference(reference);
        }
        if let Some(constant) = schema.get("const") {
            return format!("`{}`", plain(constant));
        }
        if let Some(allowed) = schema["enum"].as_array() {
            return allowed.iter().map(|word| format!("`{}`", plain(word))).collect::<Vec<_>>().join(", ");
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            if let Some(forms) = schema[key].as_array() {
                return join(forms.iter().filter(|form| !is_template(form)).map(|form| self.kind(form)));
            }
        }
        match &schema["type"] {
            Value::String(name) => self.simple(name, schema),
            Value::Array(names) => {
                join(names.iter().filter_map(Value::as_str).map(|name| self.simple(name, schema)))
            }
            _ => "anything".to_owned(),
        }
    }

    fn simple(&self, name: &str, schema: &Value) -> String {
        match name {
            "string" => "text".to_owned(),
            "integer" => "whole number".to_owned(),
            "boolean" => "`true`, `false`".to_owned(),
            "array" => format!("list of {}", grouped(self.kind(&schema["items"]))),
            "object" => format!("map of {}", grouped(self.kind(&schema["additionalProperties"]))),
            // An absent key; nobody writes it.
            "null" => String::new(),
            other => other.to_owned(),
        }
    }

    /// A link to the definition's section, or what it stands for when it has none.
    fn reference(&self, reference: &str) -> String {
        let name = reference.rsplit('/').next().unwrap_or_default();
        match self.definitions.get(name) {
            Some(definition) if has_section(definition) => {
                format!("[{0}](#{1})", display(name), anchor(&display(name)))
            }
            Some(definition) => self.kind(definition),
            None => name.to_owned(),
        }
    }
}

/// Definitions without a description only join others.
fn has_section(definition: &Value) -> bool {
    definition.get("description").is_some()
}

/// A template may stand for most values; the introduction says so once.
fn is_template(form: &Value) -> bool {
    form["pattern"] == r"\{[{%]"
}

/// `LoadFile` is called Load, `UntilWord` Until word.
fn display(name: &str) -> String {
    let word = name.strip_suffix("Word").map(|stem| format!("{stem} word"));
    word.unwrap_or_else(|| name.strip_suffix("File").unwrap_or(name).to_owned())
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}

/// The description, fit for a table.
fn words(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|")
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if text.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn grouped(kind: String) -> String {
    if kind.contains(" or ") { format!("({kind})") } else { kind }
}

fn join(kinds: impl Iterator<Item = String>) -> String {
    let mut kinds: Vec<String> = kinds.filter(|kind| !kind.is_empty()).collect();
    let mut seen = Vec::new();
    kinds.retain(|kind| {
        !seen.contains(kind) && {
            seen.push(kind.clone());
            true
        }
    });
    kinds.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_document_is_the_generated_one() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/FORMAT.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, format_document()).expect("the document can be written");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == format_document(), "docs/FORMAT.md is old: run `just schema`");
    }

    #[test]
    fn links_lead_to_sections_with_names_of_their_own() {
        let text = format_document();
        let mut anchors: Vec<String> =
            text.lines().filter_map(|line| line.strip_prefix("### ")).map(anchor).collect();
        for link in text.split("](#").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(anchors.iter().any(|anchor| anchor == link), "{link}");
        }
        let all = anchors.len();
        anchors.sort_unstable();
        anchors.dedup();
        assert_eq!(anchors.len(), all, "two sections have one name");
    }
}
