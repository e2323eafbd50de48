//! Where each value begins and ends. Reading tells where values begin; where they end follows from the text, because it
//! has been read without fault: no anchors, no tags, no duplicate keys.

use mesh::source::{Entry, Node, Place, Value};
use std::ops::Range;

/// A text with the beginnings of its lines.
pub(super) struct Layout<'a> {
    pub(super) text: &'a str,
    lines: Vec<usize>,
}

impl<'a> Layout<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(index, _)| index + 1));
        Self { text, lines: starts.collect() }
    }

    /// The byte at which a place begins.
    pub(super) fn offset(&self, place: Place) -> usize {
        let start = self.lines.get(place.line as usize - 1).copied().unwrap_or(self.text.len());
        let line = &self.text[start..];
        start + line.char_indices().nth(place.column as usize - 1).map_or(line.len(), |(index, _)| index)
    }

    /// The beginning of the line in which a byte stands.
    pub(super) fn line_start(&self, offset: usize) -> usize {
        self.text[..offset].rfind('\n').map_or(0, |index| index + 1)
    }

    /// The end of the line in which a byte stands, in front of its line end.
    pub(super) fn line_end(&self, offset: usize) -> usize {
        let end = self.text[offset..].find('\n').map_or(self.text.len(), |index| offset + index);
        if self.text[..end].ends_with('\r') && end > offset { end - 1 } else { end }
    }

    /// The beginning of the line after the one in which a byte stands.
    pub(super) fn next_line(&self, offset: usize) -> usize {
        self.text[offset..].find('\n').map_or(self.text.len(), |index| offset + index + 1)
    }

    /// Whether only blanks stand in front of a byte on its line.
    pub(super) fn begins_line(&self, offset: usize) -> bool {
        self.text[self.line_start(offset)..offset].trim().is_empty()
    }

    /// The column of a byte, from 0.
    pub(super) fn column(&self, offset: usize) -> usize {
        self.text[self.line_start(offset)..offset].chars().count()
    }

    /// Whether a list or map is written in brackets.
    pub(super) fn is_flow(&self, node: &Node) -> bool {
        let start = self.offset(node.place);
        match &node.value {
            Value::Map(_) => self.text[start..].starts_with('{'),
            Value::Seq(_) => self.text[start..].starts_with('['),
            _ => false,
        }
    }

    /// From a value's first to its last character.
    pub(super) fn span(&self, node: &Node) -> Range<usize> {
        let start = self.offset(node.place);
        start..self.end(node, start)
    }

    /// The value of an entry; empty and behind the colon if nothing is written there.
    pub(super) fn value_span(&self, entry: &Entry) -> Range<usize> {
        let colon = self.colon(entry);
        let rest = self.text[colon..self.line_end(colon)].trim_start();
        if matches!(entry.node.value, Value::Null) && (rest.is_empty() || rest.starts_with(['#', ',', '}'])) {
            return colon..colon;
        }
        self.span(&entry.node)
    }

    /// The byte behind an entry's colon.
    pub(super) fn colon(&self, entry: &Entry) -> usize {
        let start = self.offset(entry.place);
        let end = self.string_end(start, &entry.key);
        self.text[end..].find(':').map_or(end, |index| end + index + 1)
    }

    fn end(&self, node: &Node, start: usize) -> usize {
        match &node.value {
            Value::Map(entries) if self.is_flow(node) => {
                self.closing(entries.last().map_or(start + 1, |entry| self.value_span(entry).end))
            }
            Value::Seq(items) if self.is_flow(node) => {
                self.closing(items.last().map_or(start + 1, |item| self.span(item).end))
            }
            Value::Map(entries) => entries.last().map_or(start, |entry| self.value_span(entry).end),
            Value::Seq(items) => items.last().map_or(start, |item| match item.value {
                // An item without text: where it is said to stand is not where its dash is.
                Value::Null => self.line_end(start),
                _ => self.span(item).end,
            }),
            Value::Str(text) => self.string_end(start, text),
            _ => {
                start
                    + self.text[start..].find([' ', '\t', '\r', '\n', ',', ']', '}']).unwrap_or(self.text.len() - start)
            }
        }
    }

    /// The byte behind the bracket that closes what ends here.
    fn closing(&self, from: usize) -> usize {
        let mut at = from;
        loop {
            at = self.skip_blanks(at);
            match self.text[at..].chars().next() {
                Some(',') => at += 1,
                Some(']' | '}') => return at + 1,
                _ => return at,
            }
        }
    }

    /// Skips blanks, line ends and comments.
    pub(super) fn skip_blanks(&self, from: usize) -> usize {
        let mut at = from;
        loop {
            let rest = &self.text[at..];
            at += rest.len() - rest.trim_start().len();
            if !self.text[at..].starts_with('#') {
                return at;
            }
            at = self.line_end(at);
        }
    }

    fn string_end(&self, start: usize, text: &str) -> usize {
        let rest = &self.text[start..];
        match rest.as_bytes().first() {
            Some(b'"') => {
                let mut escaped = false;
                let end = rest[1..].find(|c| {
                    let closes = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    closes
                });
                start + end.map_or(rest.len(), |index| index + 2)
            }
            Some(b'\'') => {
                let mut at = 1;
                while let Some(index) = rest[at..].find('\'') {
                    at += index + 1;
                    if !rest[at..].starts_with('\'') {
                        break;
                    }
                    at += 1;
                }
                start + at
            }
            Some(b'|' | b'>') => self.block_scalar_end(start),
            // A plain string stands there character by character; only its blanks may be folded lines.
            _ => {
                let mut at = start;
                for c in text.chars().filter(|c| !c.is_whitespace()) {
                    let rest = self.text[at..].trim_start();
                    if !rest.starts_with(c) {
                        break;
                    }
                    at = self.text.len() - rest.len() + c.len_utf8();
                }
                at
            }
        }
    }

    /// The lines that are indented like the first one that is not blank.
    fn block_scalar_end(&self, start: usize) -> usize {
        let mut end = self.line_end(start);
        let mut indentation = None;
        let mut at = self.next_line(start);
        while at < self.text.len() {
            let line = &self.text[at..self.line_end(at)];
            if !line.trim().is_empty() {
                let here = line.len() - line.trim_start_matches(' ').len();
                if here < *indentation.get_or_insert(here.max(1)) {
                    break;
                }
                end = self.line_end(at);
            }
            at = self.next_line(at);
        }
        end
    }
}
