//! As much of HTTP/1.1 as keep-alive requests with a length need.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The largest message that is read.
const MESSAGE_MAX: usize = 1 << 20;

/// Reads messages from a connection that stays open.
pub struct Reader<R> {
    from: R,
    buffer: Vec<u8>,
    used: usize,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// A reader with nothing read yet.
    pub fn new(from: R) -> Self {
        Self { from, buffer: Vec::with_capacity(16 * 1024), used: 0 }
    }

    /// The next message: its first line and its body. None: the connection was closed between two.
    ///
    /// # Errors
    /// The connection broke, or what came is not a message with a length.
    pub async fn next(&mut self) -> io::Result<Option<(String, Vec<u8>)>> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let head_end = loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if !self.more().await? {
                return if self.buffer.is_empty() { Ok(None) } else { Err(broken()) };
            }
        };
        let head = String::from_utf8_lossy(&self.buffer[..head_end]).into_owned();
        let length = content_length(&head).unwrap_or(0);
        while self.buffer.len() < head_end + length {
            if !self.more().await? {
                return Err(broken());
            }
        }
        self.used = head_end + length;
        let first = head.lines().next().unwrap_or_default().to_owned();
        Ok(Some((first, self.buffer[head_end..self.used].to_vec())))
    }

    async fn more(&mut self) -> io::Result<bool> {
        if self.buffer.len() > MESSAGE_MAX {
            return Err(broken());
        }
        Ok(self.from.read_buf(&mut self.buffer).await? > 0)
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the connection does not carry HTTP/1.1 messages with a length")
}

fn content_length(head: &str) -> Option<usize> {
    let line = head.lines().find(|line| line.len() > 15 && line[..15].eq_ignore_ascii_case("content-length:"))?;
    line[15..].trim().parse().ok()
}
