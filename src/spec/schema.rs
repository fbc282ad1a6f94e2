//! JSON Schema of the file formats, for editors and for the documentation.
//!
//! Generated from the wire types; two things are added that the types do not say: a template may stand
//! wherever a single value stands, and a method without options may be written as a plain word.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::spec::wire::environment::EnvironmentFile;
use crate::spec::wire::experiment::ExperimentFile;

/// Definitions that are read before anything is rendered.
const WITHOUT_TEMPLATES: [&str; 8] =
    ["DesignFile", "Blocks", "BlocksRule", "Levels", "ClaimFile", "ContrastFile", "SourceFile", "Value"];
/// Definitions whose keys may be written as plain words.
const PLAIN_WORDS: [&str; 2] = ["LoadMethodFile", "ReadMethodFile"];

/// Schema of experiment files.
pub fn experiment_schema() -> Value {
    schema_of::<ExperimentFile>(true)
}

/// Schema of environment files.
pub fn environment_schema() -> Value {
    schema_of::<EnvironmentFile>(false)
}

fn schema_of<T: JsonSchema>(templates: bool) -> Value {
    // yaml-language-server understands draft 7 best.
    let schema: Schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<T>();
    let mut schema = schema.to_value();
    if let Some(definitions) = schema.get_mut("definitions").and_then(Value::as_object_mut) {
        for (name, definition) in definitions {
            if PLAIN_WORDS.contains(&name.as_str()) {
                allow_plain_words(definition);
            }
            if templates && !WITHOUT_TEMPLATES.contains(&name.as_str()) {
                allow_templates(definition);
            }
        }
    }
    schema
}

/// Adds the names of all single-key alternatives as words.
fn allow_plain_words(definition: &mut Value) {
    let Some(alternatives) = definition.get_mut("oneOf").and_then(Value::as_array_mut) else { return };
    let words: Vec<Value> = alternatives
        .iter()
        .filter_map(|alternative| alternative.get("required")?.as_array()?.first().cloned())
        .collect();
    alternatives
        .push(json!({"description": "With everything at its default.", "type": "string", "enum": words}));
}

/// Replaces every schema of a number, boolean or word by one that takes a template as well.
fn allow_templates(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        if let Some(list) = schema.as_array_mut() {
            list.iter_mut().for_each(allow_templates);
        }
        return;
    };
    let template = json!({"description": "A template.", "type": "string", "pattern": r"\{[{%]"});
    if is_single(object) {
        let mut outer = Map::new();
        for key in ["description", "title", "default"] {
            outer.extend(object.remove_entry(key));
        }
        let inner = Value::Object(std::mem::take(object));
        outer.insert("anyOf".to_owned(), json!([inner, template]));
        *object = outer;
        return;
    }
    if let Some(words) = object.get_mut("oneOf").and_then(Value::as_array_mut)
        && words.iter().all(|word| word.as_object().is_some_and(is_single))
    {
        // A template would match every word, and of `oneOf` exactly one may match.
        words.push(template);
        return;
    }
    for (key, value) in object.iter_mut() {
        match key.as_str() {
            "properties" => {
                value.as_object_mut().into_iter().flatten().for_each(|(_, child)| allow_templates(child));
            }
            "items" | "additionalProperties" | "anyOf" | "oneOf" => allow_templates(value),
            _ => {}
        }
    }
}

fn is_single(object: &Map<String, Value>) -> bool {
    let is = |name: &Value| matches!(name.as_str(), Some("integer" | "number" | "boolean"));
    let number = object
        .get("type")
        .is_some_and(|kind| is(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(is)));
    let word = object.contains_key("enum") || object.contains_key("const") || object.contains_key("pattern");
    number || word
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `just schema` writes the committed copies anew.
    #[test]
    fn the_committed_schemas_are_the_generated_ones() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema");
        for (name, schema) in [("experiment", experiment_schema()), ("environment", environment_schema())] {
            let path = folder.join(format!("{name}.schema.json"));
            let text = format!("{}\n", serde_json::to_string_pretty(&schema).expect("a schema is JSON"));
            if std::env::var_os("UPDATE_DOCS").is_some() {
                std::fs::create_dir_all(&folder).expect("the folder can be made");
                std::fs::write(&path, &text).expect("the schema can be written");
            }
            let committed = std::fs::read_to_string(&path).expect("docs/schema holds the schema");
            assert!(committed == text, "{} is old: run `just schema`", path.display());
        }
    }

    #[test]
    fn templates_and_plain_words_are_allowed() {
        let schema = experiment_schema();
        let clients = &schema["definitions"]["LoadFile"]["properties"]["clients"];
        assert!(clients["anyOf"].as_array().is_some_and(|forms| forms.len() == 2), "{clients}");
        let methods = schema["definitions"]["LoadMethodFile"].to_string();
        assert!(methods.contains("\"enum\":[\"insert\",\"copy\""), "{methods}");
        let required = schema["required"].as_array().expect("a list");
        assert!(
            ["experiment", "question", "tables", "steps"].iter().all(|key| required.contains(&json!(key)))
        );
    }
}
