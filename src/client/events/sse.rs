//! Parser from `text/event-stream` bytes to events.

use std::collections::VecDeque;
use std::time::Duration;

use super::Event;

/// Maximum line length, in bytes; a node's lines stay below a hundredth of it.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Incremental parser of an event stream.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Bytes of an unfinished line.
    half: Vec<u8>,
    id: String,
    event: String,
    data: String,
    ready: VecDeque<Event>,
    last_id: Option<String>,
    retry: Option<Duration>,
}

impl Reader {
    /// Parses the next bytes.
    ///
    /// # Errors
    /// Description of the fault, for people.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), String> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.half.extend_from_slice(part);
            if self.half.len() > LINE_BYTES_MAX {
                return Err(format!("an event has a line longer than {LINE_BYTES_MAX} bytes"));
            }
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.half);
                let line = String::from_utf8_lossy(&line)
                    .trim_end_matches(['\r', '\n'])
                    .to_owned();
                self.line(&line);
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            return self.end();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => value.clone_into(&mut self.id),
            "event" => value.clone_into(&mut self.event),
            "data" if self.data.is_empty() => value.clone_into(&mut self.data),
            "data" => self.data += &format!("\n{value}"),
            "retry" => self.retry = value.parse().ok().map(Duration::from_millis).or(self.retry),
            // Comments only keep the connection open; unknown fields belong to later versions.
            _ => {}
        }
    }

    fn end(&mut self) {
        let (id, event, data) = (
            self.id.clone(),
            std::mem::take(&mut self.event),
            std::mem::take(&mut self.data),
        );
        if !id.is_empty() {
            self.last_id = Some(id.clone());
        }
        if !event.is_empty() || !data.is_empty() {
            self.ready.push_back(Event { id, event, data });
        }
    }

    /// Returns the next complete event.
    pub(super) fn event(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    /// Returns the wait before reconnecting, as set by the node.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns the event id after which to resume.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Discards an incomplete event when the connection breaks; it will be sent again.
    pub(super) fn forget_half(&mut self) {
        self.half.clear();
        self.event.clear();
        self.data.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_whole_however_they_are_cut() {
        let text = b": hi\n\nretry: 150\nid: 7\nevent: status\ndata: {\"a\":\ndata: 1}\n\nid: 8\r\nevent: bye\r\ndata: x\r\n\r\n";
        for size in [1, 2, 3, 7, 1000] {
            let mut reader = Reader::default();
            text.chunks(size)
                .for_each(|piece| reader.push(piece).expect("short lines"));
            let first = reader.event().expect("an event");
            assert_eq!(
                (first.id.as_str(), first.event.as_str()),
                ("7", "status"),
                "{size}"
            );
            assert_eq!(first.data, "{\"a\":\n1}");
            assert_eq!(reader.event().expect("another").event, "bye");
            assert_eq!((reader.event(), reader.last_id()), (None, Some("8")));
            assert_eq!(reader.retry(), Some(Duration::from_millis(150)));
        }
    }

    #[test]
    fn half_an_event_is_forgotten_with_its_connection() {
        let mut reader = Reader::default();
        reader
            .push(b"id: 3\nevent: log\ndata: one\n\nevent: log\ndata: tw")
            .expect("short lines");
        reader.forget_half();
        reader.push(b"event: log\ndata: two\n\n").expect("short lines");
        assert_eq!(reader.event().expect("an event").data, "one");
        assert_eq!(reader.event().expect("an event").data, "two");
        assert_eq!(reader.event(), None);
    }
}
