//! minijinja on single values: strict, bounded, and with nothing of the machine in reach.
//!
//! No loader, no clock, no environment. A value that is exactly one `{{ expression }}` keeps the
//! expression's type, so `"{{ batch * 2 }}"` is a number.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value as Dynamic};

use crate::model::{Level, Scalar};
use crate::spec::diagnostic::{Diagnostic, Diagnostics};
use crate::spec::suggest::{did_you_mean, one_of};
use crate::spec::tree::{Node, Place, Value, shorten};

/// Steps (and bytes and items, which the engine charges too) that one template may use.
const FUEL: u64 = 1_000_000;
/// Largest rendered text, in bytes.
const MAX_OUTPUT: usize = 1024 * 1024;

/// The names a template may use, with their values.
pub type Names = BTreeMap<String, Dynamic>;

/// The template engine, set up once.
pub struct Templates {
    engine: Environment<'static>,
    /// Names that the engine knows by itself, such as `range`.
    functions: Vec<String>,
}

impl fmt::Debug for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Templates")
    }
}

impl Default for Templates {
    fn default() -> Self {
        let mut engine = Environment::new();
        engine.set_undefined_behavior(UndefinedBehavior::Strict);
        engine.set_fuel(Some(FUEL));
        engine.set_recursion_limit(50);
        engine.set_debug(true);
        engine.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        engine.remove_global("debug");
        engine.add_filter("ident", identifier);
        engine.add_filter("literal", literal);
        let functions = engine.globals().map(|(name, _)| name.to_owned()).collect();
        Self { engine, functions }
    }
}

impl Templates {
    /// Renders one text value. `None` when it could not be rendered; `found` then says why.
    pub fn render(&self, text: &str, place: &Place, names: &Names, found: &mut Diagnostics) -> Option<Value> {
        if !is_template(text) {
            return Some(Value::Text(text.to_owned()));
        }
        let trouble = |error: &Error, offset: usize, found: &mut Diagnostics| {
            found.push(explain(error, text, offset, place, names));
        };
        if let Some((offset, expression)) = single_expression(text) {
            let compiled = match self.engine.compile_expression(expression) {
                Ok(compiled) => compiled,
                Err(error) => {
                    return {
                        trouble(&error, offset, found);
                        None
                    };
                }
            };
            if !self.known(compiled.undeclared_variables(false), text, place, names, found) {
                return None;
            }
            return match compiled.eval(names) {
                Ok(value) => keep_type(&value, &Written { text, offset, expression, place, names }, found),
                Err(error) => {
                    trouble(&error, offset, found);
                    None
                }
            };
        }
        let template = match self.engine.template_from_str(text) {
            Ok(template) => template,
            Err(error) => {
                return {
                    trouble(&error, 0, found);
                    None
                };
            }
        };
        if !self.known(template.undeclared_variables(false), text, place, names, found) {
            return None;
        }
        match template.render(names) {
            Ok(output) if output.len() <= MAX_OUTPUT => Some(Value::Text(output)),
            Ok(_) => {
                found.push(Diagnostic::new(place.first_line(), "the rendered template is larger than 1 MiB"));
                None
            }
            Err(error) => {
                trouble(&error, 0, found);
                None
            }
        }
    }

    /// Renders a text that stays text.
    pub fn render_text(
        &self,
        text: &str,
        place: &Place,
        names: &Names,
        found: &mut Diagnostics,
    ) -> Option<String> {
        let value = self.render(text, place, names, found)?;
        Some(match value {
            Value::Text(text) => text,
            other => Node { value: other, place: place.clone() }.scalar().map(|scalar| scalar.to_string())?,
        })
    }

    /// The names a text uses, wherever in it; none if it is no template or a broken one.
    pub fn names_used(&self, text: &str) -> Vec<String> {
        if !is_template(text) {
            return Vec::new();
        }
        let template = self.engine.template_from_str(text);
        template
            .map(|template| template.undeclared_variables(false).into_iter().collect())
            .unwrap_or_default()
    }

    /// Whether all names are known, also those in branches that this treatment does not take.
    fn known(
        &self,
        used: impl IntoIterator<Item = String>,
        text: &str,
        place: &Place,
        names: &Names,
        found: &mut Diagnostics,
    ) -> bool {
        let unknown =
            used.into_iter().filter(|name| !names.contains_key(name) && !self.functions.contains(name));
        let mut fine = true;
        for name in unknown {
            found.push(unknown_name(&name, text, find_word(text, &name), place, names));
            fine = false;
        }
        fine
    }
}

/// The value of a single expression as a value of the tree.
fn keep_type(value: &Dynamic, written: &Written<'_>, found: &mut Diagnostics) -> Option<Value> {
    if value.is_undefined() {
        // An attribute that is not there; names were checked before.
        let place = written.place.narrow(written.text, written.offset, written.expression);
        found.push(undefined(written.expression, place, written.names));
        return None;
    }
    let kept = from_dynamic(value);
    if kept.is_none() {
        let message = format!("`{}` gives a list or a map", shorten(written.text));
        found.push(Diagnostic::new(written.place.first_line(), message).expected("a single value"));
    }
    kept
}

/// A text that is one expression.
struct Written<'a> {
    text: &'a str,
    offset: usize,
    expression: &'a str,
    place: &'a Place,
    names: &'a Names,
}

/// Whether a text contains anything for the template engine.
#[must_use]
pub fn is_template(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|open| text.contains(open))
}

/// Offset and text of the expression, when the whole text is one `{{ expression }}`.
fn single_expression(text: &str) -> Option<(usize, &str)> {
    let trimmed = text.trim();
    let inner = trimmed.strip_prefix("{{")?.strip_suffix("}}")?;
    if inner.contains("}}") || inner.contains("{{") || inner.contains("{%") {
        return None;
    }
    let expression = inner.trim_start_matches('-').trim_end_matches('-').trim();
    let offset = text.find(expression)?;
    (!expression.is_empty()).then_some((offset, expression))
}

fn from_dynamic(value: &Dynamic) -> Option<Value> {
    if value.downcast_object_ref::<NamedLevel>().is_some() {
        return Some(Value::Text(value.to_string()));
    }
    if value.is_none() {
        return Some(Value::Null);
    }
    if let Some(text) = value.as_str() {
        return Some(Value::Text(text.to_owned()));
    }
    if value.kind() == minijinja::value::ValueKind::Bool {
        return Some(Value::Bool(value.is_true()));
    }
    if value.is_integer() {
        return i128::try_from(value.clone()).ok().map(Value::Int);
    }
    f64::try_from(value.clone())
        .ok()
        .filter(|number| value.is_number() && number.is_finite())
        .map(Value::Float)
}

/// A scalar for templates.
#[must_use]
pub fn to_dynamic(scalar: &Scalar) -> Dynamic {
    match scalar {
        Scalar::Null => Dynamic::from(()),
        Scalar::Bool(value) => Dynamic::from(*value),
        Scalar::Int(value) => Dynamic::from(*value),
        Scalar::Float(value) => Dynamic::from(*value),
        Scalar::Text(value) => Dynamic::from(value.as_str()),
    }
}

/// A level for templates: its value, or an object that shows its name and has its values as attributes.
#[must_use]
pub fn level_value(level: &Level) -> Dynamic {
    match &level.value {
        Some(value) if level.values.is_empty() => to_dynamic(value),
        _ => Dynamic::from_object(NamedLevel(level.clone())),
    }
}

#[derive(Debug)]
struct NamedLevel(Level);

impl Object for NamedLevel {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Dynamic) -> Option<Dynamic> {
        let key = key.as_str()?;
        match self.0.values.get(key) {
            Some(value) => Some(to_dynamic(value)),
            None if key == "name" => Some(Dynamic::from(self.0.name.as_str())),
            None => None,
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.values.keys().map(|key| Dynamic::from(key.as_str())).collect())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name)
    }
}

/// `"name"` quoted as an SQL identifier.
fn identifier(value: &Dynamic) -> Result<String, Error> {
    let name = value.to_string();
    if name.is_empty() || name.contains('\0') {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "an identifier must not be empty or contain NUL",
        ));
    }
    if name.len() > 63 {
        let message =
            format!("the identifier `{name}` has {} bytes; PostgreSQL would cut it at 63", name.len());
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    Ok(format!("\"{}\"", name.replace('"', "\"\"")))
}

/// The value as an SQL literal.
fn literal(value: &Dynamic) -> Result<String, Error> {
    if value.is_none() {
        return Ok("NULL".to_owned());
    }
    let text = value.to_string();
    if text.contains('\0') {
        return Err(Error::new(ErrorKind::InvalidOperation, "an SQL text must not contain NUL"));
    }
    if value.is_number() || value.kind() == minijinja::value::ValueKind::Bool {
        return Ok(text);
    }
    let prefix = if text.contains('\\') { "E" } else { "" };
    Ok(format!("{prefix}'{}'", text.replace('\\', "\\\\").replace('\'', "''")))
}

/// A template error as a diagnostic; `offset` is where the engine's text starts inside `text`.
fn explain(error: &Error, text: &str, offset: usize, place: &Place, names: &Names) -> Diagnostic {
    let range = error.range().map(|range| range.start + offset..range.end + offset);
    let range = range.filter(|range| text.get(range.clone()).is_some_and(|words| !words.is_empty()));
    let words = range.clone().and_then(|range| text.get(range)).unwrap_or_default();
    let line = words.lines().next().unwrap_or_default();
    let narrow = match &range {
        Some(range) => place.narrow(text, range.start, line),
        None => place.first_line(),
    };
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.kind() {
        ErrorKind::UndefinedError => undefined(words, narrow, names),
        ErrorKind::OutOfFuel => Diagnostic::new(place.first_line(), "the template does not end or makes too much text")
            .expected("at most 1,000,000 template steps and bytes")
            .hint("generate rows with `values:`, not with a template loop"),
        ErrorKind::SyntaxError => Diagnostic::new(narrow, format!("this template has a syntax error: {detail}"))
            .hint("`{{ name }}` for a value, `{% if ... %} ... {% endif %}` for a choice; write `{{ '{{' }}` for literal braces"),
        ErrorKind::UnknownFilter => Diagnostic::new(narrow, format!("the template uses an unknown filter: {detail}"))
            .hint("filters for SQL are `ident` and `literal`; see minijinja's documentation for the others"),
        _ => Diagnostic::new(narrow, format!("the template cannot be rendered: {detail}")),
    }
}

fn undefined(words: &str, place: Place, names: &Names) -> Diagnostic {
    let Some((base, key)) = words.split_once('.') else {
        return Diagnostic::new(place, format!("`{}` has no value in a template", shorten(words)));
    };
    let found = Diagnostic::new(place, format!("`{base}` has no `{key}`"));
    let keys: Vec<String> = names
        .get(base.trim())
        .and_then(|value| value.try_iter().ok())
        .map(|keys| keys.map(|key| key.to_string()).collect())
        .unwrap_or_default();
    if keys.is_empty() {
        return found.hint(format!("`{base}` is a plain value here: write `{{{{ {base} }}}}`"));
    }
    found
        .expected(one_of(keys.iter().map(String::as_str)))
        .maybe_hint(did_you_mean(key, keys.iter().map(String::as_str)))
}

fn unknown_name(name: &str, text: &str, offset: Option<usize>, place: &Place, names: &Names) -> Diagnostic {
    let place = offset.map_or_else(|| place.first_line(), |offset| place.narrow(text, offset, name));
    let known = one_of(names.keys().map(String::as_str));
    let hint = match name {
        "table" | "rows" => {
            Some(format!("`{name}` is known inside `ddl`, `indexes` and `values` of a table only"))
        }
        "row" => Some("`row` is known inside `template:` of a table's `values` only".to_owned()),
        _ => did_you_mean(name, names.keys().map(String::as_str)),
    };
    Diagnostic::new(place, format!("unknown name `{name}` in a template"))
        .expected(if names.is_empty() { "no names: there are no factors".to_owned() } else { known })
        .maybe_hint(hint)
}

/// Where a name is compared with something, as a word inside a template: `load == "one"`.
#[must_use]
pub fn find_comparison(text: &str, name: &str) -> Option<usize> {
    let at = find_word(text, name)?;
    let after = text[at + name.len()..].trim_start();
    let before = text[..at].trim_end();
    let compared = ["==", "!=", "in ", "not in "].iter().any(|sign| after.starts_with(sign))
        || ["==", "!="].iter().any(|sign| before.ends_with(sign));
    compared.then_some(at)
}

/// Where a name first stands as a word inside `{{ }}` or `{% %}`.
fn find_word(text: &str, name: &str) -> Option<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).map(|(at, _)| at).find(|at| {
        let before = &text[..*at];
        let after = &text[at + name.len()..];
        let opened = before.rfind("{{").max(before.rfind("{%"));
        let closed = before.rfind("}}").max(before.rfind("%}"));
        opened.is_some()
            && opened > closed
            && !before.ends_with(|c| is_word(c) || c == '.' || c == '"' || c == '\'')
            && !after.starts_with(is_word)
    })
}

#[cfg(test)]
mod tests {
    use indexmap::IndexMap;

    use crate::spec::tree::Source;

    use super::*;

    fn names() -> Names {
        let plain = |value: Scalar| to_dynamic(&value);
        let level = Level {
            name: "three into one".to_owned(),
            value: None,
            values: IndexMap::from([("clients".to_owned(), Scalar::Int(3))]),
        };
        Names::from([
            ("batch".to_owned(), plain(Scalar::Int(500))),
            ("storage".to_owned(), plain(Scalar::Text("logged".to_owned()))),
            ("load".to_owned(), level_value(&level)),
        ])
    }

    fn render(text: &str) -> Result<Value, String> {
        let source = Arc::new(Source { name: "x.yaml".to_owned(), text: text.to_owned() });
        let place = Place { source, start: 0, end: text.len() };
        let mut found = Diagnostics::default();
        Templates::default().render(text, &place, &names(), &mut found).ok_or_else(|| found.to_string())
    }

    #[expect(clippy::unnecessary_wraps, reason = "reads better where results are compared")]
    fn text(value: &str) -> Result<Value, String> {
        Ok(Value::Text(value.to_owned()))
    }

    #[test]
    fn a_single_expression_keeps_its_type() {
        assert_eq!(render("{{ batch * 2 }}"), Ok(Value::Int(1000)));
        assert_eq!(render("{{ batch > 2 }}"), Ok(Value::Bool(true)));
        assert_eq!(render("{{ load.clients }}"), Ok(Value::Int(3)));
        assert_eq!(render("{{ batch }} rows"), text("500 rows"));
        assert_eq!(render("{{ load }}"), text("three into one"));
        assert_eq!(
            render("CREATE {{ \"UNLOGGED\" if storage == \"unlogged\" }} TABLE"),
            text("CREATE  TABLE")
        );
    }

    #[test]
    fn sql_filters_quote() {
        assert_eq!(
            render("{{ 'a\"b' | ident }} {{ \"it's\" | literal }} {{ 5 | literal }}"),
            text("\"a\"\"b\" 'it''s' 5")
        );
        assert!(render("{{ ('x' * 70) | ident }}").is_err_and(|found| found.contains("70 bytes")));
    }

    #[test]
    fn attacks_run_out_of_fuel() {
        for attack in [
            "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
            "{{ 'x' * 1000000000 }}",
            "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
            "{% set ns = namespace(x='xxxxxxxx') %}{% for i in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
        ] {
            assert!(render(attack).is_err(), "{attack}");
        }
    }

    #[test]
    fn unknown_names_are_found_also_in_branches_not_taken() {
        let found = render("{% if batch > 1000 %}{{ storge }}{% endif %}").expect_err("misspelt");
        assert!(
            found.contains("unknown name `storge`") && found.contains("did you mean `storage`?"),
            "{found}"
        );
        assert!(found.contains("x.yaml:1:25"), "{found}");
        let found = render("{{ load.client }}x").expect_err("misspelt");
        assert!(found.contains("did you mean `clients`?"), "{found}");
    }
}
