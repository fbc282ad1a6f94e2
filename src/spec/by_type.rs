//! `values_by_type`: generators for columns that are not named, by their type.

use std::mem::discriminant;

use indexmap::IndexMap;

use crate::model::{ColumnType, Generator};
use crate::spec::ddl::parse_type;
use crate::spec::diagnostic::Diagnostics;
use crate::spec::generator::Target;
use crate::spec::wire::values::ValueFile;

/// A generator and its share of NULLs for each type that occurs. Made once per type, however many columns have it: a wide
/// table stays cheap, and a mistake is told once.
#[derive(Debug, Default)]
pub(super) struct ByType(Vec<(ColumnType, Option<(Generator, f64)>)>);

impl ByType {
    /// Makes the generators for the types of some columns.
    pub(super) fn fill(
        &mut self,
        values: &IndexMap<String, ValueFile>,
        kinds: &[&ColumnType],
        target: &Target<'_>,
        path: &str,
        found: &mut Diagnostics,
    ) {
        let mut known = Vec::new();
        for (name, value) in values {
            if let Some(kind) = parse_type(name) {
                known.push((name, kind, value));
            } else {
                let problem = target.tree.key_problem(
                    path,
                    name,
                    format!("rows cannot be generated for the type `{name}`"),
                );
                found.push(
                    problem.expected("a type as in the DDL, such as `integer`, `varchar` or `numeric(10,2)`"),
                );
            }
        }
        for kind in kinds {
            if self.0.iter().any(|(made, _)| made == *kind) {
                continue;
            }
            let exact = known.iter().find(|(_, wanted, _)| wanted == *kind);
            let family =
                || known.iter().find(|(name, wanted, _)| !name.contains('(') && same_family(wanted, kind));
            let Some((name, _, value)) = exact.or_else(family) else { continue };
            let made = target.make(value, kind, &format!("{path}.{name}"), found);
            self.0.push(((*kind).clone(), made));
        }
    }

    /// The generator of a type, if there is one.
    #[must_use]
    pub(super) fn get(&self, kind: &ColumnType) -> Option<&(Generator, f64)> {
        self.0.iter().find(|(made, _)| made == kind)?.1.as_ref()
    }
}

/// Whether two types differ in length or precision only.
fn same_family(left: &ColumnType, right: &ColumnType) -> bool {
    match (left, right) {
        (ColumnType::Array(left), ColumnType::Array(right)) => same_family(left, right),
        _ => discriminant(left) == discriminant(right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_types_without_their_length() {
        let kind = |text: &str| parse_type(text).unwrap_or_else(|| panic!("{text}"));
        for (wanted, has) in
            [("varchar", "varchar(20)"), ("numeric", "numeric(10,2)"), ("varchar[]", "varchar(9)[]")]
        {
            assert!(same_family(&kind(wanted), &kind(has)), "{wanted} {has}");
        }
        assert!(!same_family(&kind("text"), &kind("varchar")));
        assert!(!same_family(&kind("integer[]"), &kind("bigint[]")));
    }
}
