//! As much of HTTP/1.1 as keep-alive connections need: bodies with a length, and bodies in chunks.

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

/// One message.
#[derive(Debug)]
pub struct Message {
    /// Its first line and its headers.
    pub head: String,
    /// Its body, put together.
    pub body: Vec<u8>,
}

impl Message {
    /// Its first line.
    #[must_use]
    pub fn first_line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    /// The status of an answer.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.first_line().split(' ').nth(1)?.parse().ok()
    }

    /// A header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// A reader with nothing read yet.
    pub fn new(from: R) -> Self {
        Self { from, buffer: Vec::with_capacity(16 * 1024), used: 0 }
    }

    /// The next message. None: the connection was closed between two.
    ///
    /// # Errors
    /// The connection broke, or what came is not HTTP/1.1 as it is kept alive.
    pub async fn next(&mut self) -> io::Result<Option<Message>> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let Some(end) = self.find(b"\r\n\r\n").await? else {
            return if self.buffer.is_empty() { Ok(None) } else { Err(broken()) };
        };
        let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        self.used = end;
        let is_chunked = header(&head, "transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
        let body = if is_chunked {
            self.chunks().await?
        } else {
            let length = header(&head, "content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
            self.take(length).await?
        };
        Ok(Some(Message { head, body }))
    }

    async fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let end = self.find(b"\r\n").await?.ok_or_else(broken)?;
            let line = String::from_utf8_lossy(&self.buffer[self.used..end - 2]).into_owned();
            self.used = end;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| broken())?;
            body.extend(self.take(size).await?);
            self.take(2).await?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    /// Where the next such bytes end.
    async fn find(&mut self, what: &[u8]) -> io::Result<Option<usize>> {
        loop {
            let rest = &self.buffer[self.used..];
            if let Some(at) = rest.windows(what.len()).position(|window| window == what) {
                return Ok(Some(self.used + at + what.len()));
            }
            if !self.more().await? {
                return Ok(None);
            }
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < self.used + length {
            if !self.more().await? {
                return Err(broken());
            }
        }
        let taken = self.buffer[self.used..self.used + length].to_vec();
        self.used += length;
        Ok(taken)
    }

    async fn more(&mut self) -> io::Result<bool> {
        if self.buffer.len() > MESSAGE_MAX {
            return Err(broken());
        }
        Ok(self.from.read_buf(&mut self.buffer).await? > 0)
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the connection does not carry whole messages of HTTP/1.1")
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    fields.into_iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_are_told_apart_on_one_connection() {
        let came = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                    5\r\ndata:\r\na;x=1\r\n 123456789\r\n0\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n";
        let mut reader = Reader::new(came.as_bytes());
        let mut bodies = Vec::new();
        while let Some(message) = reader.next().await.expect("it is whole") {
            bodies.push((message.status(), String::from_utf8(message.body).expect("it is text")));
        }
        let told: Vec<_> = bodies.iter().map(|(status, body)| (status.unwrap_or(0), body.as_str())).collect();
        assert_eq!(told, [(200, "{}"), (200, "data: 123456789"), (202, "")]);
        assert!(Reader::new(&b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort"[..]).next().await.is_err());
    }
}
