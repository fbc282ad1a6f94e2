//! Changes to the tree before anything is bound: `--profile` and `--set`.
//!
//! A changed value keeps the place where it was written (in the profile, or on the command line), so a
//! wrong value is shown there. New keys may be made; a misspelt one is then an unknown key like any other.

use std::sync::Arc;

use crate::spec::diagnostic::{Diagnostic, Diagnostics};
use crate::spec::suggest::{did_you_mean, one_of};
use crate::spec::tree::{Key, Node, Place, Source, Value};
use crate::spec::yaml::parse;

/// Applies a profile of the file.
pub fn apply_profile(root: &mut Node, name: &str, found: &mut Diagnostics) {
    let Some(profiles) = root.get("profiles").map(Node::entries).map(<[_]>::to_vec) else {
        let place = command_line("--profile", name);
        found.push(Diagnostic::new(place, "this experiment has no profiles").hint("leave `--profile` away"));
        return;
    };
    let Some((_, profile)) = profiles.iter().find(|(key, _)| key.text == name) else {
        let names = || profiles.iter().map(|(key, _)| key.text.as_str());
        let problem =
            Diagnostic::new(command_line("--profile", name), format!("there is no profile `{name}`"));
        found.push(problem.expected(one_of(names())).maybe_hint(did_you_mean(name, names())));
        return;
    };
    for (path, value) in profile.entries() {
        set(root, &path.text, &path.place, value.clone(), found);
    }
}

/// Applies one `--set path=value`; the value is read as YAML.
pub fn apply_set(root: &mut Node, option: &str, found: &mut Diagnostics) {
    let place = command_line("--set", option);
    let Some((path, value)) = option.split_once('=') else {
        found.push(
            Diagnostic::new(place, "a change needs a value")
                .expected("`--set path=value`, such as `--set tables.orders.rows=1000`"),
        );
        return;
    };
    // Spaces in front keep the columns of the value those of the command line.
    let padded = format!("{}{value}", " ".repeat(path.len() + 1));
    let parsed = parse(&Arc::new(Source { name: "--set".to_owned(), text: padded }));
    match parsed {
        Ok(mut node) => {
            relocate(&mut node, &place.source);
            let key = Place { source: Arc::clone(&place.source), start: 0, end: path.len() };
            set(root, path, &key, node, found);
        }
        Err(problem) => found.push(Diagnostic { place, ..*problem }),
    }
}

/// The place of a command-line option.
#[must_use]
pub fn command_line(option: &str, value: &str) -> Place {
    let source = Source { name: option.to_owned(), text: value.to_owned() };
    Place { source: Arc::new(source), start: 0, end: value.len() }
}

fn relocate(node: &mut Node, source: &Arc<Source>) {
    let end = source.text.len();
    node.place =
        Place { source: Arc::clone(source), start: node.place.start.min(end), end: node.place.end.min(end) };
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| relocate(item, source)),
        Value::Map(entries) => entries.iter_mut().for_each(|(key, child)| {
            key.place = Place {
                source: Arc::clone(source),
                start: key.place.start.min(end),
                end: key.place.end.min(end),
            };
            relocate(child, source);
        }),
        _ => {}
    }
}

fn set(root: &mut Node, path: &str, place: &Place, value: Node, found: &mut Diagnostics) {
    if path.is_empty() || path.split('.').any(str::is_empty) {
        let problem = Diagnostic::new(place.clone(), format!("`{path}` is not a path into the file"));
        found.push(problem.expected("keys joined by dots, such as `design.blocks`"));
        return;
    }
    if matches!(path.split('.').next(), Some("profiles")) {
        found.push(Diagnostic::new(place.clone(), "profiles cannot be changed this way"));
        return;
    }
    let mut node = root;
    let mut done = 0;
    loop {
        let parent = path[..done].trim_end_matches('.').to_owned();
        let rest = &path[done..];
        let (key, is_last) = next_key(node, &parent, rest);
        let Some(child) = child_at(node, &parent, &key, place, found) else { return };
        if is_last {
            *child = value;
            return;
        }
        done += key.len() + 1;
        node = child;
    }
}

/// The child below a key or number; what is wrong goes to `found`.
fn child_at<'n>(
    node: &'n mut Node,
    parent: &str,
    key: &str,
    place: &Place,
    found: &mut Diagnostics,
) -> Option<&'n mut Node> {
    if matches!(node.value, Value::Map(_) | Value::Null) {
        return child_of_map(node, parent, key, place, found);
    }
    let kind = node.describe();
    let Value::List(items) = &mut node.value else {
        let message = format!("`{parent}` is {kind}, it has no `{key}`");
        let hint = format!("write `{parent}` as a map in the file to change its parts");
        found.push(Diagnostic::new(place.clone(), message).hint(hint));
        return None;
    };
    let length = items.len();
    let index = key.parse::<usize>().ok().filter(|index| *index < length);
    if index.is_none() {
        let message = format!("`{parent}` is a list of {length}: `{key}` is not one of its places");
        let expected = format!("a number from 0 to {}", length.saturating_sub(1));
        found.push(Diagnostic::new(place.clone(), message).expected(expected));
    }
    items.get_mut(index?)
}

/// The next key of a path and whether it is the last. Names of settings contain dots, and so may keys
/// that are there already.
fn next_key(node: &Node, parent: &str, rest: &str) -> (String, bool) {
    let is_settings = parent == "settings" || parent.ends_with(".settings");
    let dotted = node.entries().iter().map(|(key, _)| key.text.as_str()).filter(|key| {
        key.contains('.')
            && rest.strip_prefix(*key).is_some_and(|tail| tail.is_empty() || tail.starts_with('.'))
    });
    let key = if is_settings {
        rest
    } else {
        dotted.max_by_key(|key| key.len()).unwrap_or_else(|| rest.split('.').next().unwrap_or(rest))
    };
    (key.to_owned(), key.len() == rest.len())
}

/// The child below a key, made when it is not there; names of tables must exist.
fn child_of_map<'n>(
    node: &'n mut Node,
    parent: &str,
    key: &str,
    place: &Place,
    found: &mut Diagnostics,
) -> Option<&'n mut Node> {
    if !matches!(node.value, Value::Map(_)) {
        node.value = Value::Map(Vec::new());
    }
    let Value::Map(entries) = &mut node.value else { return None };
    let names: Vec<String> = entries.iter().map(|(key, _)| key.text.clone()).collect();
    let names = || names.iter().map(String::as_str);
    if matches!(parent, "tables" | "design.factors") && !names().any(|name| name == key) {
        let what = if parent == "tables" { "table" } else { "factor" };
        let problem = Diagnostic::new(place.clone(), format!("there is no {what} `{key}`"));
        found.push(problem.expected(one_of(names())).maybe_hint(did_you_mean(key, names())));
        return None;
    }
    let index = entries.iter().position(|(name, _)| name.text == key).unwrap_or_else(|| {
        let made = Node { value: Value::Map(Vec::new()), place: place.clone() };
        entries.push((Key { text: key.to_owned(), place: place.clone() }, made));
        entries.len() - 1
    });
    entries[index].0.place = if entries[index].1.value == Value::Map(Vec::new()) {
        place.clone()
    } else {
        entries[index].0.place.clone()
    };
    Some(&mut entries[index].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(option: &str) -> (Node, Diagnostics) {
        let text = "tables: {t: {rows: 5}}\nserver: {settings: {a.b: 1}}\nsteps: [{sql: x}]\nquestion: q";
        let source = Arc::new(Source { name: "x.yaml".to_owned(), text: text.to_owned() });
        let mut root = parse(&source).unwrap_or_else(|found| panic!("{found}"));
        let mut found = Diagnostics::default();
        apply_set(&mut root, option, &mut found);
        (root, found)
    }

    #[test]
    fn values_are_changed_and_know_the_command_line() {
        let (root, found) = changed("tables.t.rows=20_000");
        assert!(found.is_empty(), "{found}");
        let rows = root.find("tables.t.rows").expect("there");
        assert_eq!(rows.value, Value::Int(20_000));
        assert_eq!(rows.place.source.name, "--set");
        assert_eq!(rows.place.line_column(), (1, 15));
        assert_eq!(
            changed("server.settings.c.d=on").0.find("server.settings.c.d").and_then(Node::text),
            Some("on")
        );
        assert!(changed("design.blocks=2").0.find("design.blocks").is_some());
    }

    #[test]
    fn paths_that_cannot_exist_are_refused() {
        for (option, part) in [
            ("tables.x.rows=1", "there is no table `x`"),
            ("tables.t.rows", "needs a value"),
            ("steps.4.sql=x", "not one of its places"),
            ("question.x=1", "it has no `x`"),
            ("a..b=1", "not a path"),
        ] {
            let (_, found) = changed(option);
            assert!(found.to_string().contains(part), "{option}: {found}");
        }
    }
}
