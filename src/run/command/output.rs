//! What a program prints: all of a little, beginning and end of much.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes kept from the beginning.
const HEAD: usize = 1 << 20;
/// Bytes kept from the end.
const TAIL: usize = 3 << 20;

/// One output, filled while the program runs; what is there when it is ended stays.
#[derive(Debug, Clone, Default)]
pub(crate) struct Output(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Bytes printed.
    all: u64,
}

impl Kept {
    fn push(&mut self, mut bytes: &[u8]) {
        self.all += bytes.len() as u64;
        let room = (HEAD - self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        bytes = &bytes[room..];
        self.tail.extend_from_slice(bytes);
        // Cut seldom: moving the rest to the front costs as much as copying it.
        if self.tail.len() > 2 * TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
    }
}

impl Output {
    /// Reads until the end; a program that prints without end costs time, not memory.
    pub(super) async fn fill(self, mut from: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..count]);
        }
    }

    /// What is kept, as text; how much is left out stands in its place.
    pub(crate) fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = &kept.tail[kept.tail.len().saturating_sub(TAIL)..];
        let left_out = kept.all - (kept.head.len() + tail.len()) as u64;
        if left_out == 0 {
            // Together, so that a character over the seam stays whole.
            return String::from_utf8_lossy(&[&kept.head, tail].concat()).into_owned();
        }
        format!(
            "{}\n[{left_out} bytes left out]\n{}",
            String::from_utf8_lossy(&kept.head),
            String::from_utf8_lossy(tail)
        )
    }
}

/// The last lines of a text, indented, for a message.
pub(super) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let shown = &lines[lines.len().saturating_sub(count)..];
    let mut text = String::new();
    for line in shown {
        text.push_str("\n  ");
        text.extend(line.chars().take(300));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_gigabyte_is_kept_in_megabytes() {
        let output = Output::default();
        let mut kept = Kept::default();
        let block = vec![b'x'; 1 << 20];
        for _ in 0..1024 {
            kept.push(&block);
            assert!(kept.tail.capacity() < 16 << 20);
        }
        kept.push(b"tps = 7\n");
        *output.0.lock().unwrap() = kept;
        let text = output.text();
        assert!(text.ends_with("tps = 7\n") && text.len() < 5 << 20);
        assert!(text.contains(&format!("[{} bytes left out]", (1 << 30) + 8 - HEAD - TAIL)));
    }

    #[tokio::test]
    async fn little_is_kept_as_it_is() {
        let output = Output::default();
        output.clone().fill("größe\nb".as_bytes()).await;
        assert_eq!(output.text(), "größe\nb");
        assert_eq!(last_lines("a\nb\nc\n\n", 2), "\n  b\n  c");
    }
}
