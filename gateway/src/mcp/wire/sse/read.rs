//! Bytes in, events out, however the bytes are cut.

use std::time::Duration;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// What it is called for going on after it.
    pub id: Option<String>,
    /// How long its sender wants a reader to wait before it connects again.
    pub retry: Option<Duration>,
    /// The kind of event. None: a message.
    pub name: Option<String>,
    /// What it says; its lines are joined by line feeds. Empty: it says nothing, and names at most a place in the stream.
    pub data: String,
}

/// An event that is larger than may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream has more than {event_max} bytes")]
pub struct TooLarge {
    /// How large it may be.
    pub event_max: usize,
}

/// Reads one stream.
#[derive(Debug)]
pub struct Reader {
    event_max: usize,
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    has_field: bool,
    is_after_cr: bool,
    is_first_line: bool,
}

impl Reader {
    /// A stream from its beginning, whose events are at most so many bytes.
    #[must_use]
    pub fn new(event_max: usize) -> Self {
        Self {
            event_max,
            line: Vec::new(),
            event: Event::default(),
            has_data: false,
            has_field: false,
            is_after_cr: false,
            is_first_line: true,
        }
    }

    /// Takes the next bytes in, and gives the events that they end.
    ///
    /// # Errors
    /// An event is too large. The stream cannot be read on.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<Event>, TooLarge> {
        let mut events = Vec::new();
        while !bytes.is_empty() {
            if std::mem::take(&mut self.is_after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            self.line.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
            if self.line.len() + self.event.data.len() > self.event_max {
                return Err(TooLarge { event_max: self.event_max });
            }
            let Some(end) = end else { break };
            self.is_after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            events.extend(self.end_line());
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let is_first = std::mem::take(&mut self.is_first_line);
        let line = if is_first { line.trim_start_matches('\u{feff}') } else { &line };
        if line.is_empty() {
            self.has_data = false;
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_field).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        self.field(field, value.strip_prefix(' ').unwrap_or(value));
        None
    }

    fn field(&mut self, field: &str, value: &str) {
        match field {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "event" => self.event.name = Some(value.to_owned()),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" => self.event.retry = value.parse().ok().map(Duration::from_millis),
            // A comment, or a field that nobody knows.
            _ => return,
        }
        self.has_field = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<Event> {
        let mut reader = Reader::new(64);
        chunks.iter().flat_map(|chunk| reader.push(chunk).unwrap()).collect()
    }

    #[test]
    fn events_come_out_alike_however_the_bytes_are_cut() {
        let text = b"\xef\xbb\xbf: hello\n\nid: 1\ndata: \nretry: 100\n\nevent: message\r\ndata: {\"a\":1}\r\ndata:second\r\n\r\ndata: cut";
        let whole = read(&[text]);
        assert_eq!(whole.len(), 2, "{whole:?}");
        assert_eq!((whole[0].id.as_deref(), whole[0].data.as_str()), (Some("1"), ""));
        assert_eq!(whole[0].retry, Some(Duration::from_millis(100)));
        assert_eq!((whole[1].name.as_deref(), whole[1].data.as_str()), (Some("message"), "{\"a\":1}\nsecond"));
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(read(&bytes), whole);
    }

    #[test]
    fn an_event_without_end_is_not_gathered_for_ever() {
        let mut reader = Reader::new(64);
        assert!(reader.push(&[b'x'; 65]).is_err());
        let mut reader = Reader::new(64);
        let pushed: Result<Vec<_>, _> = (0..20).map(|_| reader.push(b"data: 0123456789\n")).collect();
        assert!(pushed.is_err());
    }
}
