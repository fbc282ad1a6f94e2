//! What can be run but is probably not meant: factors that nothing uses, comparisons that never hold.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::Design;
use crate::spec::diagnostic::{Diagnostic, Diagnostics};
use crate::spec::template::{Templates, find_comparison};
use crate::spec::tree::{Node, Place, Source, Value};

/// Looks through all templates of the file and of its SQL files.
pub fn warnings(tree: &Node, design: &Design, templates: &Templates, files: &[Arc<Source>]) -> Diagnostics {
    let mut texts: Vec<(&str, Place)> = Vec::new();
    for part in ["environment", "server", "tables", "steps"] {
        if let Some(node) = tree.get(part) {
            collect(node, &mut texts);
        }
    }
    for source in files {
        let place = Place { source: Arc::clone(source), start: 0, end: source.text.len() };
        texts.push((&source.text, place));
    }
    let mut found = Diagnostics::default();
    let used: BTreeSet<String> = texts.iter().flat_map(|(text, _)| templates.names_used(text)).collect();
    for factor in &design.factors {
        // A list of environments is used by being there.
        if factor.name != "environment" && !used.contains(&factor.name) {
            let message = format!("nothing uses the factor `{}`: its levels will not differ", factor.name);
            let problem = tree.key_problem("design.factors", &factor.name, message).warning();
            found.push(
                problem.hint(format!("write `{{{{ {} }}}}` where it should make a difference", factor.name)),
            );
        }
        if factor.levels.iter().all(|level| level.values.is_empty()) {
            continue;
        }
        for (text, place) in &texts {
            if let Some(offset) = find_comparison(text, &factor.name) {
                let message = format!("`{0}` has several values, so it equals no single one", factor.name);
                let place = place.narrow(text, offset, &factor.name);
                found.push(Diagnostic::new(place, message).hint(format!("compare `{0}.name`", factor.name)));
            }
        }
    }
    found
}

fn collect<'n>(node: &'n Node, texts: &mut Vec<(&'n str, Place)>) {
    match &node.value {
        Value::Text(text) => texts.push((text, node.place.clone())),
        Value::List(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Map(entries) => entries.iter().for_each(|(_, child)| collect(child, texts)),
        _ => {}
    }
}
