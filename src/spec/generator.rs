//! A column's `values` entry, checked against the column's type, into a generator.

use crate::model::{ColumnType, Generator, Scalar, TemplatePart, TextShape};
use crate::spec::diagnostic::Diagnostics;
use crate::spec::fits::{check_number, fits, number_range, type_name};
use crate::spec::plausible::{
    first_of, given, kind_of, max_length, other_generator, plausible, suitable, suits,
};
use crate::spec::row_template::{Piece, longest, split};
use crate::spec::template::{Names, Templates};
use crate::spec::tree::Node;
use crate::spec::wire::values::{
    ChoiceFile, GeneratorFile, SequenceFile, ShapeFile, UuidWord, ValueFile, ZipfFile,
};

/// Unix time in milliseconds of 2024-01-01, where generated times begin.
const FIRST_MS: u64 = 1_704_067_200_000;
/// Longest generated text or bytes.
const MAX_LENGTH: u32 = 100_000_000;
/// All generators, for messages.
const GENERATORS: &str = "one of `constant`, `sequence`, `shuffle`, `uniform`, `zipf`, `normal`, `choice`, `template`, `text`, `bytes`, `uuid`, `array`, `floats_of` or `object`";

/// What a generator is made for.
pub struct Target<'a> {
    /// Rendered tree, for places.
    pub tree: &'a Node,
    /// Engine for the parts of a row template that are not about the row.
    pub templates: &'a Templates,
    /// Names of the treatment and the table.
    pub names: &'a Names,
    /// Rows of the table.
    pub rows: u64,
}

type Made = Option<Generator>;

impl Target<'_> {
    /// The generator at `path` for a type, and the share of nulls.
    pub fn make(
        &self,
        value: &ValueFile,
        kind: &ColumnType,
        path: &str,
        found: &mut Diagnostics,
    ) -> Option<(Generator, f64)> {
        match value {
            ValueFile::Constant(Scalar::Null) => Some((Generator::Constant(Scalar::Null), 1.0)),
            ValueFile::Constant(value) => {
                let constant = self.scalar(value, kind, path, found)?;
                Some((Generator::Constant(constant), 0.0))
            }
            ValueFile::Made(file) => {
                let nulls = file.nulls.map_or(0.0, |share| share.0);
                let generator = self.one_of(file, kind, path, found)?;
                if nulls > 0.0 && matches!(generator, Generator::FloatsOf(_)) {
                    let problem = self
                        .tree
                        .problem(&format!("{path}.nulls"), "these bytes are NULL where the array is");
                    found.push(problem.hint("write `nulls` at the column with the array"));
                    return None;
                }
                Some((generator, nulls))
            }
        }
    }

    fn one_of(&self, file: &GeneratorFile, kind: &ColumnType, path: &str, found: &mut Diagnostics) -> Made {
        let given = given(file);
        match given.as_slice() {
            [] if file.nulls.is_some() => Some(plausible(kind, false)),
            [name] => self.named(name, file, kind, &format!("{path}.{name}"), found),
            // A misspelt generator was reported as an unknown key.
            [] if self.tree.find(path).is_some_and(|node| !node.entries().is_empty()) => None,
            [] => {
                found.push(self.tree.problem(path, "no generator is named here").expected(GENERATORS));
                None
            }
            several => {
                let message = format!("several generators are named here: {}", several.join(", "));
                found.push(
                    self.tree
                        .problem(path, message)
                        .expected("exactly one generator, and optionally `nulls`"),
                );
                None
            }
        }
    }

    fn named(
        &self,
        name: &str,
        file: &GeneratorFile,
        kind: &ColumnType,
        path: &str,
        found: &mut Diagnostics,
    ) -> Made {
        if !suits(name, kind) {
            let message = format!("`{name}` cannot make values of type {}", type_name(kind));
            let problem = self.tree.problem(path, message).expected(suitable(kind));
            found.push(problem.maybe_hint(other_generator(name, kind)));
            return None;
        }
        match name {
            "constant" => {
                let value = &file.constant.as_ref()?.0;
                self.scalar(value, kind, path, found).map(Generator::Constant)
            }
            "sequence" => self.sequence(file.sequence.as_ref()?, kind, path, found),
            "shuffle" => {
                let start =
                    file.shuffle.as_ref()?.start.as_ref().map_or(Scalar::Int(1), |start| start.0.clone());
                let start = self.scalar(&start, kind, &format!("{path}.start"), found)?;
                self.last_fits(&start, 1.0, kind, path, found).then_some(Generator::Shuffle { start })
            }
            "uniform" => {
                let bounds = file.uniform.as_ref()?;
                let min = self.scalar(&bounds.min.0, kind, &format!("{path}.min"), found);
                let max = self.scalar(&bounds.max.0, kind, &format!("{path}.max"), found);
                self.ordered(min?, max?, path, found)
            }
            "zipf" => self.zipf(file.zipf.as_ref()?, kind, path, found),
            "normal" => {
                let normal = file.normal.as_ref()?;
                if normal.deviation < 0.0 {
                    found.push(
                        self.tree.problem(&format!("{path}.deviation"), "a deviation cannot be negative"),
                    );
                    return None;
                }
                Some(Generator::Normal { mean: normal.mean, deviation: normal.deviation })
            }
            "choice" => self.choice(file.choice.as_ref()?, kind, path, found),
            "template" => self.template(file.template.as_ref()?, kind, path, found),
            "text" => self.shape(file.text.as_ref()?, kind, path, found),
            "bytes" => self.shape(file.bytes.as_ref()?, kind, path, found),
            "uuid" => Some(match file.uuid? {
                UuidWord::V4 => Generator::UuidV4,
                UuidWord::V7 => Generator::UuidV7 { start_ms: FIRST_MS },
            }),
            "array" => {
                let array = file.array.as_ref()?;
                let ColumnType::Array(element) = kind else { return None };
                let element = self.inner(&array.of, element, &format!("{path}.of"), found)?;
                Some(Generator::Array {
                    min: array.length.min,
                    max: array.length.max,
                    element: Box::new(element),
                })
            }
            // Whether there is such a column is known when all of them are.
            "floats_of" => Some(Generator::FloatsOf(file.floats_of.clone()?)),
            _ => {
                let object = file.object.as_ref()?;
                let fields = object.iter().map(|(key, value)| {
                    let kind = kind_of(value);
                    let made = self.inner(value, &kind, &format!("{path}.{key}"), found);
                    made.map(|generator| (key.clone(), kind, generator))
                });
                fields.collect::<Vec<_>>().into_iter().collect::<Option<_>>().map(Generator::Object)
            }
        }
    }

    fn zipf(&self, zipf: &ZipfFile, kind: &ColumnType, path: &str, found: &mut Diagnostics) -> Made {
        let (start, exponent) = (zipf.start.unwrap_or(1), zipf.exponent.unwrap_or(1.0));
        let last = i128::from(start) + i128::from(zipf.n.0) - 1;
        let range = number_range(kind);
        if zipf.n.0 == 0 || !(exponent > 0.0 && exponent.is_finite()) {
            found
                .push(self.tree.problem(path, "zipf needs `n` of at least 1 and an exponent greater than 0"));
            return None;
        }
        if range.is_some_and(|(min, max)| i128::from(start) < min || last > max) {
            let message = format!(
                "zipf gives values from {start} to {last}, which do not fit into {}",
                type_name(kind)
            );
            found.push(self.tree.problem(path, message));
            return None;
        }
        Some(Generator::Zipf { start, n: zipf.n.0, exponent })
    }

    /// A generator inside an array or object, where there are no nulls.
    fn inner(&self, value: &ValueFile, kind: &ColumnType, path: &str, found: &mut Diagnostics) -> Made {
        let (generator, nulls) = self.make(value, kind, path, found)?;
        if matches!(generator, Generator::FloatsOf(_)) {
            found.push(self.tree.problem(path, "`floats_of` is possible for whole columns only"));
            return None;
        }
        if nulls > 0.0 && !matches!(generator, Generator::Constant(Scalar::Null)) {
            found.push(
                self.tree.problem(&format!("{path}.nulls"), "nulls are possible for whole columns only"),
            );
            return None;
        }
        Some(generator)
    }

    fn scalar(
        &self,
        value: &Scalar,
        kind: &ColumnType,
        path: &str,
        found: &mut Diagnostics,
    ) -> Option<Scalar> {
        match fits(value, kind) {
            Ok(value) => Some(value),
            Err((message, expected)) => {
                found.push(self.tree.problem(path, message).expected(expected));
                None
            }
        }
    }

    fn sequence(&self, file: &SequenceFile, kind: &ColumnType, path: &str, found: &mut Diagnostics) -> Made {
        let step = file.step.unwrap_or(1.0);
        if step == 0.0 || !step.is_finite() {
            let problem = self.tree.problem(&format!("{path}.step"), "a sequence with step 0 does not move");
            found.push(problem.hint("write the value alone for a constant"));
            return None;
        }
        if number_range(kind).is_some() && step.fract() != 0.0 {
            let message =
                format!("a step of {step} does not give whole numbers for type {}", type_name(kind));
            found.push(self.tree.problem(&format!("{path}.step"), message));
            return None;
        }
        let start = file.start.as_ref().map_or_else(|| first_of(kind), |start| start.0.clone());
        let start = self.scalar(&start, kind, &format!("{path}.start"), found)?;
        self.last_fits(&start, step, kind, path, found).then_some(Generator::Sequence { start, step })
    }

    /// Whether the last of `rows` values still fits into the type.
    fn last_fits(
        &self,
        start: &Scalar,
        step: f64,
        kind: &ColumnType,
        path: &str,
        found: &mut Diagnostics,
    ) -> bool {
        let Err(message) = check_number(start, step, self.rows, kind) else { return true };
        found.push(
            self.tree.problem(path, message).hint("start lower, load fewer rows, or declare a wider type"),
        );
        false
    }

    fn ordered(&self, min: Scalar, max: Scalar, path: &str, found: &mut Diagnostics) -> Made {
        let wrong = match (&min, &max) {
            (Scalar::Int(min), Scalar::Int(max)) => min > max,
            (Scalar::Text(min), Scalar::Text(max)) => match (min.parse::<f64>(), max.parse::<f64>()) {
                (Ok(min), Ok(max)) => min > max,
                // Dates and times were brought to one spelling that sorts as text.
                _ => min > max,
            },
            _ => match (min.to_string().parse::<f64>(), max.to_string().parse::<f64>()) {
                (Ok(min), Ok(max)) => min > max,
                _ => false,
            },
        };
        if wrong {
            let message = format!("min {min} is greater than max {max}");
            found.push(self.tree.problem(&format!("{path}.min"), message));
            return None;
        }
        Some(Generator::Uniform { min, max })
    }

    fn choice(&self, file: &ChoiceFile, kind: &ColumnType, path: &str, found: &mut Diagnostics) -> Made {
        if file.values.is_empty() {
            found.push(
                self.tree.problem(path, "there is nothing to choose from").hint("list at least one value"),
            );
            return None;
        }
        let weighted = !file.weights.is_empty();
        let mut values = Vec::new();
        for (index, value) in file.values.iter().enumerate() {
            let path = if weighted { path.to_owned() } else { format!("{path}.{index}") };
            values.push(self.scalar(value, kind, &path, found));
        }
        if let Some(weight) = file.weights.iter().find(|weight| !(weight.is_finite() && **weight > 0.0)) {
            found.push(self.tree.problem(path, format!("the weight {weight} is not greater than 0")));
            return None;
        }
        let values = values.into_iter().collect::<Option<_>>()?;
        Some(Generator::Choice { values, weights: file.weights.clone() })
    }

    fn template(&self, text: &str, kind: &ColumnType, path: &str, found: &mut Diagnostics) -> Made {
        let place =
            self.tree.find(path).map_or_else(|| self.tree.find_place(path).0, |node| node.place.clone());
        let pieces = match split(text) {
            Ok(pieces) => pieces,
            Err(problem) => {
                let place = place.narrow(text, problem.offset + 2, &problem.expression);
                found.push(
                    crate::spec::diagnostic::Diagnostic::new(place, problem.message)
                        .expected("`row` with `//`, then `%`, then `*`, then `+` or `-`, and whole numbers; at the end perhaps `| pad(8)`"),
                );
                return None;
            }
        };
        let mut parts = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Row(part) => parts.push(part),
                Piece::Engine(_, text) => {
                    let rendered = self.templates.render_text(&text, &place, self.names, found)?;
                    parts.push(TemplatePart::Text(rendered));
                }
            }
        }
        let longest: usize = parts.iter().map(|part| longest(part, self.rows)).sum();
        if let Some(max) = max_length(kind).filter(|max| longest > *max as usize) {
            let message =
                format!("the template gives up to {longest} characters, {} holds {max}", type_name(kind));
            found.push(self.tree.problem(path, message).hint("shorten the template or widen the column"));
            return None;
        }
        Some(Generator::Template(parts))
    }

    fn shape(&self, file: &ShapeFile, kind: &ColumnType, path: &str, found: &mut Diagnostics) -> Made {
        let longest = max_length(kind).unwrap_or(MAX_LENGTH);
        if file.length.max > longest {
            let message = format!("a length of {} does not fit into {}", file.length.max, type_name(kind));
            let path = format!("{path}.length");
            found.push(self.tree.problem(&path, message).expected(format!("at most {longest}")));
            return None;
        }
        Some(Generator::Random(TextShape {
            min_length: file.length.min,
            max_length: file.length.max,
            compressibility: file.compressibility.map_or(0.0, |share| share.0),
        }))
    }
}
