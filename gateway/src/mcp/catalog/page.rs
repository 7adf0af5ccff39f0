//! Lists by the page. Most hosts ask for one page only, so that one is long.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::{Tool, View};

/// How many tools one page has.
const TOOLS_MAX: usize = 1000;
/// Beyond how many bytes no further tool is put on a page.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many bytes of a cursor are there to tell one of ours from another text.
const SEAL_LEN: usize = 6;

/// Where a list goes on: after the tool of this name, which may be gone by then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor(String);

impl Cursor {
    /// As the client is given it: a text without a meaning to it.
    pub(crate) fn to_text(&self) -> String {
        URL_SAFE_NO_PAD.encode([&seal(&self.0), self.0.as_bytes()].concat())
    }

    /// Back from the text. None: it is none of ours.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (sealed, name) = bytes.split_at_checked(SEAL_LEN)?;
        let name = String::from_utf8(name.to_vec()).ok()?;
        (seal(&name)[..] == *sealed).then_some(Self(name))
    }
}

fn seal(name: &str) -> [u8; SEAL_LEN] {
    let digest = Sha256::digest(["agent-reach tools cursor ", name].concat());
    let mut seal = [0; SEAL_LEN];
    seal.copy_from_slice(&digest[..SEAL_LEN]);
    seal
}

/// One page.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    tools: &'a [Tool],
    /// Where it goes on, if it does.
    pub(crate) next: Option<Cursor>,
}

impl<'a> Page<'a> {
    /// The page that a cursor leads to; the first without one.
    pub(crate) fn of(view: &'a View, cursor: Option<&Cursor>) -> Self {
        let rest = cursor.map_or(view.tools(), |cursor| view.after(&cursor.0));
        let mut bytes = 0;
        let fits = |tool: &&Tool| {
            let is_first = bytes == 0;
            bytes += tool.len();
            is_first || bytes <= BYTES_MAX
        };
        let count = rest.iter().take(TOOLS_MAX).take_while(fits).count();
        let next = (count < rest.len()).then(|| Cursor(rest[count - 1].name.clone()));
        Self { tools: &rest[..count], next }
    }

    /// The tools, each followed by a comma.
    pub(crate) fn write(&self, is_stateless: bool, out: &mut String) {
        out.reserve(self.tools.iter().map(Tool::len).sum());
        for tool in self.tools {
            tool.write(is_stateless, out);
            out.push(',');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_went_and_any_other_text_is_none() {
        let cursor = Cursor("web_search".to_owned());
        assert_eq!(Cursor::of(&cursor.to_text()), Some(cursor.clone()));
        for text in ["", "x", "web_search", "AAAAAAAAAAAAAAAA", &cursor.to_text()[1..], "%%%"] {
            assert_eq!(Cursor::of(text), None, "{text}");
        }
    }
}
