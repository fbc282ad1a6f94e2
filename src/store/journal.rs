//! The journal: one checksummed line of JSON per event, synced before anything goes on.
//!
//! A line is `{"xxh3":"<16 hex digits>","event":<JSON>}`; the checksum is over the bytes of the event as they stand.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::error::{StoreError, io};
use super::redact::redact_json;
use crate::model::{Outcome, PlannedTrial, TrialRecord};

const HEAD: &str = "{\"xxh3\":\"";
const MIDDLE: &str = "\",\"event\":";

/// Something that happened to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A trial began.
    Started {
        /// Which.
        trial: PlannedTrial,
        /// 0 for the first attempt.
        attempt: u32,
        /// Wall-clock label.
        at: Timestamp,
    },
    /// A trial ended, well or not.
    Finished(Box<TrialRecord>),
    /// A trial that had begun was found without an end.
    Lost {
        /// Number of the trial.
        trial: u64,
        /// The attempt that has no end.
        attempt: u32,
    },
    /// A trial was given up by the user without a record.
    Cancelled {
        /// Number of the trial.
        trial: u64,
        /// Its attempt.
        attempt: u32,
    },
    /// A sentence for whoever reads the journal.
    Note {
        /// Wall-clock label.
        at: Timestamp,
        /// The sentence.
        text: String,
    },
}

/// What a journal holds, and what of it could not be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Journal {
    /// Readable events, in order.
    pub events: Vec<Event>,
    /// Numbers (from 1) of whole lines that are damaged; they are skipped.
    pub damaged_lines: Vec<usize>,
    /// Bytes after the last whole line: an append that was interrupted. They are ignored.
    pub torn_bytes: u64,
}

impl Journal {
    /// Reads a journal's bytes. Never fails: what is damaged is counted and skipped.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut journal = Self { torn_bytes: (bytes.len() - whole) as u64, ..Self::default() };
        for (index, line) in bytes[..whole].split_inclusive(|byte| *byte == b'\n').enumerate() {
            match decode(line.strip_suffix(b"\n").unwrap_or(line)) {
                Some(event) => journal.events.push(event),
                None => journal.damaged_lines.push(index + 1),
            }
        }
        journal
    }

    /// The latest finished attempt of every trial, by trial number.
    #[must_use]
    pub fn records(&self) -> Vec<TrialRecord> {
        self.latest().into_values().cloned().collect()
    }

    /// Number and attempt of trials that began and neither ended nor were begun again; a resume redoes them.
    #[must_use]
    pub fn lost(&self) -> Vec<(u64, u32)> {
        let mut open = BTreeMap::new();
        for event in &self.events {
            match event {
                Event::Started { trial, attempt, .. } => {
                    open.insert(trial.number, *attempt);
                }
                Event::Finished(record) => {
                    open.remove(&record.trial.number);
                }
                Event::Lost { trial, .. } | Event::Cancelled { trial, .. } => {
                    open.remove(trial);
                }
                Event::Note { .. } => {}
            }
        }
        open.into_iter().collect()
    }

    /// Numbers of trials that need no further attempt: finished, and not because the user stopped them.
    #[must_use]
    pub fn done(&self) -> BTreeSet<u64> {
        let latest = self.latest();
        latest
            .values()
            .filter(|r| r.outcome != Outcome::Cancelled)
            .map(|record| record.trial.number)
            .collect()
    }

    /// The attempt number a trial's next start takes: one more than any the journal knows.
    #[must_use]
    pub fn next_attempt(&self, number: u64) -> u32 {
        let used = self.events.iter().filter_map(|event| match event {
            Event::Started { trial, attempt, .. } if trial.number == number => Some(*attempt),
            Event::Finished(record) if record.trial.number == number => Some(record.attempt),
            Event::Lost { trial, attempt } | Event::Cancelled { trial, attempt } if *trial == number => {
                Some(*attempt)
            }
            _ => None,
        });
        used.max().map_or(0, |attempt| attempt.saturating_add(1))
    }

    /// The last sentence that was written into it.
    #[must_use]
    pub fn last_note(&self) -> Option<&str> {
        self.events.iter().rev().find_map(|event| match event {
            Event::Note { text, .. } => Some(text.as_str()),
            _ => None,
        })
    }

    /// Sentences about what could not be read, for the terminal; empty for a whole journal.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        let damaged = self.damaged_lines.iter();
        let mut complaints: Vec<String> = damaged
            .map(|line| format!("journal.jsonl:{line}: damaged line skipped (checksum or JSON)"))
            .collect();
        if self.torn_bytes > 0 {
            complaints.push(format!(
                "journal.jsonl: the last {} bytes are an interrupted write and are ignored",
                self.torn_bytes
            ));
        }
        complaints
    }

    fn latest(&self) -> BTreeMap<u64, &TrialRecord> {
        let mut latest: BTreeMap<u64, &TrialRecord> = BTreeMap::new();
        for event in &self.events {
            if let Event::Finished(record) = event {
                let known = latest.get(&record.trial.number);
                if known.is_none_or(|known| known.attempt <= record.attempt) {
                    latest.insert(record.trial.number, record);
                }
            }
        }
        latest
    }
}

/// One line, passwords removed, with its line feed.
pub(super) fn encode(event: &Event) -> Result<Vec<u8>, serde_json::Error> {
    let mut value = serde_json::to_value(event)?;
    redact_json(&mut value);
    let text = value.to_string();
    // A float that is not finite becomes null and would not come back: better told now than found missing later.
    serde_json::from_str::<Event>(&text)?;
    Ok(format!("{HEAD}{:016x}{MIDDLE}{text}}}\n", xxh3_64(text.as_bytes())).into_bytes())
}

fn decode(line: &[u8]) -> Option<Event> {
    let rest = line.strip_prefix(HEAD.as_bytes())?;
    let (sum, rest) = rest.split_at_checked(16)?;
    let text = rest.strip_prefix(MIDDLE.as_bytes())?.strip_suffix(b"}")?;
    let sum = u64::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
    if sum != xxh3_64(text) {
        return None;
    }
    serde_json::from_slice(text).ok()
}

/// Appends a line and waits until it is on disk. After a failure the file is as long as before, so that a later line never
/// continues a torn one.
pub(super) fn append(file: &mut File, path: &Path, line: &[u8]) -> Result<(), StoreError> {
    let end = file.seek(SeekFrom::End(0)).map_err(io("append to", path))?;
    let written = file.write_all(line).and_then(|()| file.sync_data());
    if written.is_err() {
        // The first error is the one to tell; a torn end is recognised when the journal is read.
        let _ = file.set_len(end);
    }
    written.map_err(|error| match io("append to", path)(error) {
        StoreError::DiskFull { path, .. } => StoreError::DiskFull { path, kept: false },
        other => other,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn a_full_disk_is_told_as_such() {
        let path = Path::new("/dev/full");
        let mut full = OpenOptions::new().write(true).open(path).unwrap();
        let error = append(&mut full, path, b"x\n").unwrap_err();
        assert!(matches!(error, StoreError::DiskFull { kept: false, .. }));
        assert!(error.to_string().contains("run --resume"), "{error}");
    }

    #[test]
    fn passwords_do_not_reach_the_line() {
        let event = Event::Note { at: Timestamp::UNIX_EPOCH, text: "host=h password=canary".to_owned() };
        let line = encode(&event).unwrap();
        assert!(!String::from_utf8(line.clone()).unwrap().contains("canary"));
        assert_eq!(Journal::parse(&line).events.len(), 1);
    }
}
