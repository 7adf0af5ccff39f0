//! How deep a text nests, found without recursion, so that no frame can exhaust the stack of its reader.

/// Whether arrays and objects nest deeper than `depth_max` before the first mistake in the text.
///
/// It reads strings as JSON does, and so agrees with the parser up to the point where the parser gives up;
/// what it says of the text after that point does not matter.
pub(super) fn is_nested_beyond(text: &[u8], depth_max: usize) -> bool {
    // A text cannot nest deeper than it has opening brackets, strings included: nearly every frame ends here.
    if text.iter().filter(|&&byte| matches!(byte, b'{' | b'[')).count() <= depth_max {
        return false;
    }
    let mut depth = 0_usize;
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
        if depth > depth_max {
            return true;
        }
    }
    false
}

/// Moves past the closing quote of a string whose opening quote was just read.
fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_nested_beyond;

    #[test]
    fn depth_counts_brackets_that_are_open_at_once() {
        for (text, depth) in [("1", 0), ("[]", 1), ("[[],[],[]]", 2), (r#"{"a":[{}]}"#, 3), ("[[[[", 4)] {
            assert!(!is_nested_beyond(text.as_bytes(), depth), "{text} within {depth}");
            assert!(depth == 0 || is_nested_beyond(text.as_bytes(), depth - 1), "{text} beyond {depth} less one");
        }
    }

    #[test]
    fn brackets_inside_strings_do_not_count() {
        for text in [r#"["[[[["]"#, r#"["\"[[[["]"#, r#"["\\\"[[[[",[]]"#, r#"{"{{{{":"[[[["}"#] {
            assert!(!is_nested_beyond(text.as_bytes(), 2), "{text}");
        }
        assert!(is_nested_beyond(br#"["\\",[["a"]]]"#, 2));
    }
}
