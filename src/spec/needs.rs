//! `needs` into the model's [`Needs`], and block sizes wherever they are written.

use crate::model::Needs;
use crate::spec::diagnostic::Diagnostics;
use crate::spec::tree::Node;
use crate::spec::units::Size;
use crate::spec::wire::needs::NeedsFile;

/// Block sizes that PostgreSQL can be built with.
const BLOCK_SIZES: &str = "`1kB`, `2kB`, `4kB`, `8kB`, `16kB` or `32kB`";

/// The needs of a treatment; `tree` is the rendered experiment.
pub(super) fn needs(file: &NeedsFile, tree: &Node, found: &mut Diagnostics) -> Needs {
    for (index, tool) in file.tools.iter().enumerate() {
        if tool.trim().is_empty() || tool.contains('/') {
            let problem = tree
                .problem(&format!("needs.tools.{index}"), format!("`{tool}` is not the name of a program"));
            found.push(problem.expected("a name without a folder, such as `pg_dump`"));
        }
    }
    if let Some(version) = file.version.as_ref().filter(|version| version.0.value > 99) {
        let problem =
            tree.problem("needs.version", format!("`{}` is not about a major version", version.0.text));
        found.push(problem.expected("a major version, such as `\">= 17\"`"));
    }
    let sizes = file.block_sizes.iter().enumerate();
    Needs {
        cores: file.cores.clone().map(|bound| bound.0),
        memory: file.memory.clone().map(|bound| bound.0),
        disk: file.disk.clone().map(|bound| bound.0),
        version: file.version.clone().map(|bound| bound.0),
        backend: file.backend.map(Into::into),
        root: file.root,
        tools: file.tools.clone(),
        block_sizes: sizes
            .filter_map(|(index, size)| block_size(*size, tree, &format!("needs.block_sizes.{index}"), found))
            .collect(),
    }
}

/// A block size that PostgreSQL can be built with, in bytes.
pub(super) fn block_size(size: Size, tree: &Node, path: &str, found: &mut Diagnostics) -> Option<u32> {
    let bytes = parse_block_size(size.0);
    if bytes.is_none() {
        let problem =
            tree.problem(path, format!("PostgreSQL cannot be built with blocks of {} bytes", size.0));
        found.push(problem.expected(BLOCK_SIZES));
    }
    bytes
}

/// Source: PostgreSQL documentation, "Installation from Source Code", `--with-blocksize`: a power of two from 1 to 32
/// kilobytes.
fn parse_block_size(bytes: u64) -> Option<u32> {
    let bytes = u32::try_from(bytes).ok()?;
    (bytes.is_power_of_two() && (1024..=32_768).contains(&bytes)).then_some(bytes)
}

/// Reads a block size as the command line gives it.
///
/// # Errors
/// Says what can be written.
pub fn block_size_argument(text: &str) -> Result<u32, String> {
    let bytes = crate::spec::units::parse_size(text).map_err(|(message, _, _)| message)?;
    parse_block_size(bytes).ok_or_else(|| format!("PostgreSQL cannot be built with it; write {BLOCK_SIZES}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_sizes_are_what_configure_takes() {
        for (text, bytes) in [("1kB", 1024), ("4kB", 4096), ("8192", 8192), ("32kB", 32_768)] {
            assert_eq!(block_size_argument(text), Ok(bytes));
        }
        for wrong in ["64kB", "512", "12kB", "0", "4", "4kb", "large"] {
            assert!(block_size_argument(wrong).is_err(), "{wrong}");
        }
    }
}
