//! What a read met before its clock started, and what a scan by the server did.

use serde::{Deserialize, Serialize};

/// What a read met just before its clock started.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReadState {
    /// Share of the bytes of the table's files in the operating system's page cache.
    pub cached_share: Option<f64>,
    /// Share of the table's pages in shared buffers.
    pub buffered_share: Option<f64>,
    /// Share of the table's pages that the visibility map says are all-visible.
    pub all_visible_share: Option<f64>,
    /// Share of the table's pages that the visibility map says are all-frozen.
    pub all_frozen_share: Option<f64>,
    /// Why the caches are not as asked for, or are not known.
    pub cache_note: Option<String>,
    /// Settings that loadlab gave to the sessions of the read, `name=value`.
    pub session_settings: Vec<String>,
}

/// Pages of a scan, as its plan counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Scanned {
    /// Pages found in shared buffers.
    pub pages_hit: u64,
    /// Pages read into shared buffers.
    pub pages_read: u64,
    /// Clean pages changed, such as by hint bits.
    pub pages_dirtied: u64,
    /// Pages that the scan itself had to write to make room.
    pub pages_written: u64,
    /// Bytes of WAL that the scan wrote.
    pub wal_bytes: u64,
}

impl Scanned {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            pages_hit: self.pages_hit + other.pages_hit,
            pages_read: self.pages_read + other.pages_read,
            pages_dirtied: self.pages_dirtied + other.pages_dirtied,
            pages_written: self.pages_written + other.pages_written,
            wal_bytes: self.wal_bytes + other.wal_bytes,
        }
    }
}
