//! One message a line: how byte streams carry frames.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// One message, without its line feed.
    Text(Bytes),
    /// More than is taken; it was skipped.
    TooLong,
    /// There are no more.
    End,
}

/// Reads lines of bounded length. Dropping a read loses nothing.
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    is_too_long: bool,
    line_max: usize,
    is_strict: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `line_max` bytes.
    pub(crate) fn new(reader: R, line_max: usize) -> Self {
        let reader = BufReader::with_capacity(64 * 1024, reader);
        Self { reader, line: Vec::new(), is_too_long: false, line_max, is_strict: false }
    }

    /// The same, for a reader that is done with whoever writes too long a line: it is told as soon as that is known, and the
    /// line is not read to its end.
    pub(crate) fn strict(self) -> Self {
        Self { is_strict: true, ..self }
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> io::Result<Line> {
        loop {
            let read = self.reader.fill_buf().await?;
            if read.is_empty() {
                return Ok(if self.line.is_empty() && !self.is_too_long { Line::End } else { self.take() });
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = &read[..end.unwrap_or(read.len())];
            if self.line.len() + part.len() > self.line_max {
                self.is_too_long = true;
                self.line = Vec::new();
                if self.is_strict {
                    return Ok(Line::TooLong);
                }
            } else if !self.is_too_long {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                return Ok(self.take());
            }
        }
    }

    fn take(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) { Line::TooLong } else { Line::Text(line.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_read_to_their_end_and_long_ones_are_skipped_whole() {
        let mut lines = Lines::new(&b"one\r\n\n123456\n1234567\n12345678901234\nlast"[..], 6);
        let text = |text: &'static str| Line::Text(Bytes::from_static(text.as_bytes()));
        let expected = [text("one\r"), text(""), text("123456"), Line::TooLong, Line::TooLong, text("last"), Line::End];
        for line in expected {
            assert_eq!(lines.next().await.unwrap(), line);
        }
        let mut endless = Lines::new(tokio::io::repeat(b'y'), 6).strict();
        assert_eq!(endless.next().await.unwrap(), Line::TooLong);
        let mut cut_off = Lines::new(&b"1234567"[..], 6);
        assert_eq!((cut_off.next().await.unwrap(), cut_off.next().await.unwrap()), (Line::TooLong, Line::End));
    }
}
