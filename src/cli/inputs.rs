//! The files that shape a run, and which of them are copied into its folder.

use std::path::Path;

use super::failure::Failure;
use super::say;
use crate::model::Input;
use crate::spec::{InputContent, InputFile, Spec};
use crate::store::{OUTSIDE, RunFolder, secret, too_large};

/// Why a file is not copied that lies where no copy can be found by the experiment.
const ELSEWHERE: &str = "it lies outside of the experiment's folder and the one above";

/// All files of an experiment with what is recorded of them.
pub(super) struct Inputs(Vec<(Input, InputFile)>);

impl Inputs {
    /// Looks at every file of an experiment that was checked.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(super) fn of(spec: &Spec) -> Result<Self, Failure> {
        let mut files = spec.inputs()?;
        // What cannot be told in any other way is copied first: the limit is for data.
        files.sort_by_key(|file| !matches!(file.content, InputContent::Text(_)));
        let mut kept = 0;
        let mut inputs = Vec::new();
        for file in files {
            let input = record(&file, kept)?;
            if input.left_out.is_none() {
                kept += input.bytes;
            }
            inputs.push((input, file));
        }
        inputs.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        Ok(Self(inputs))
    }

    /// What is recorded.
    pub(super) fn records(&self) -> Vec<Input> {
        self.0.iter().map(|(input, _)| input.clone()).collect()
    }

    /// Copies what is to be copied into a run's folder, and says what is not.
    pub(super) fn keep(&self, folder: &RunFolder) -> Result<(), Failure> {
        for (input, file) in &self.0 {
            match &input.left_out {
                None => {
                    unchanged(input, file)?;
                    folder.keep_input(input, &file.bytes().map_err(|error| unreadable(file, &error))?)?;
                }
                Some(why) => {
                    let rerun =
                        if why == ELSEWHERE { "needs it at the path in the file" } else { "will ask for it" };
                    say(&format!(
                        "note: {} is not copied into the run's folder: {why}; `loadlab rerun` {rerun}",
                        input.name
                    ));
                }
            }
        }
        Ok(())
    }
}

fn record(file: &InputFile, kept: u64) -> Result<Input, Failure> {
    let (bytes, sha256) = file.digest().map_err(|error| unreadable(file, &error))?;
    let Some(name) = file.place.clone() else {
        // The path is this machine's and for nobody else.
        let name = format!("{OUTSIDE}{}", last_parts(file));
        let left_out = Some(ELSEWHERE.to_owned());
        return Ok(Input { name, bytes, sha256, executable: false, left_out });
    };
    let left_out = match too_large(bytes, kept) {
        Some(why) => Some(why),
        None => secret(&file.bytes().map_err(|error| unreadable(file, &error))?),
    };
    Ok(Input { name, bytes, sha256, executable: file.is_executable(), left_out })
}

/// Folder and name of a file: two dumps that are folders have files of the same names.
fn last_parts(file: &InputFile) -> String {
    let InputContent::File(path) = &file.content else { return file.file.clone() };
    let folder = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    folder.map_or_else(|| file.file.clone(), |folder| format!("{folder}/{}", file.file))
}

/// Servers were prepared since the file was looked at.
fn unchanged(input: &Input, file: &InputFile) -> Result<(), Failure> {
    let (_, sha256) = file.digest().map_err(|error| unreadable(file, &error))?;
    if sha256 == input.sha256 {
        return Ok(());
    }
    Err(Failure::wrong(format!(
        "error: {}: it changed while the run was being prepared; start the run again",
        input.name
    )))
}

fn unreadable(file: &InputFile, error: &std::io::Error) -> Failure {
    let name = file.place.as_ref().unwrap_or(&file.file);
    Failure::wrong(format!("error: {name}: cannot be read: {error}; the run's folder would lack it"))
}
