//! What a process says on standard error, line by line on its way into the log.

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of one line is logged, in bytes; the rest of the line is left out.
const LINE_MAX: usize = 2048;
/// How much of the end is kept for a failure's message, in bytes.
const TAIL_MAX: usize = 2048;

/// Standard error, on its way into the log.
pub(crate) struct Complaints {
    log: Box<dyn Fn(&str) + Send + Sync>,
    lines_max: usize,
    line: Vec<u8>,
    lines: usize,
    tail: Vec<u8>,
}

impl Complaints {
    /// Nothing yet. `log` is given each line, at most `lines_max` of them.
    pub(crate) fn new(lines_max: usize, log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { log: Box::new(log), lines_max, line: Vec::new(), lines: 0, tail: Vec::new() }
    }

    /// The last that was said.
    pub(crate) fn tail(&self) -> String {
        let tail = &self.tail;
        String::from_utf8_lossy(&tail[tail.len().saturating_sub(TAIL_MAX)..]).trim().to_owned()
    }

    /// Listens to the end.
    pub(crate) async fn follow(&mut self, stderr: Option<impl AsyncRead + Unpin>) {
        let Some(mut stderr) = stderr else { return };
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
            self.take(&buffer[..count]);
        }
        self.end_line();
    }

    fn take(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        // Cut now and then, not at every byte.
        if self.tail.len() > 4 * TAIL_MAX {
            self.tail.drain(..self.tail.len() - TAIL_MAX);
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_MAX - self.line.len();
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line);
        let line = line.trim_end();
        if !line.is_empty() && self.lines <= self.lines_max {
            let is_shown = self.lines < self.lines_max;
            (self.log)(if is_shown { line } else { "(the rest of its standard error is left out)" });
            self.lines += 1;
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_kept_by_line_and_bounded() {
        let mut complaints = Complaints::new(1000, |_| {});
        complaints.take(b"first\nsec");
        assert_eq!(complaints.line, b"sec");
        for _ in 0..10_000 {
            complaints.take(b"0123456789");
        }
        assert_eq!(complaints.line.len(), LINE_MAX);
        assert!(complaints.tail.len() <= 4 * TAIL_MAX);
        complaints.take(b"\nlast\n");
        assert_eq!(complaints.lines, 3);
        assert!(complaints.tail().ends_with("789\nlast") && complaints.tail().len() <= TAIL_MAX);
    }
}
