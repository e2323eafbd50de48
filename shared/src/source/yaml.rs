//! One pass over the events of the YAML reader. Anchors, aliases, tags and merge keys are refused where they stand, so
//! nothing is ever expanded; depth and size are bounded before anything is built.

use super::{Entry, Limits, Node, Place, Value};
use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use std::borrow::Cow;
use std::collections::BTreeMap;
use yaml_rust2::parser::{Event, Parser, Tag};
use yaml_rust2::scanner::{Marker, ScanError, TScalarStyle};

/// Reads one file.
pub(super) fn read(file: u32, bytes: &[u8], limits: &Limits, documents: &mut Vec<Node>, found: &mut Diagnostics) {
    let start = Place { file, line: 1, column: 1 };
    if bytes.len() > limits.file_bytes {
        let message = format!("the file has {} bytes; at most {} are read", bytes.len(), limits.file_bytes);
        found.push(Diagnostic::new(&codes::TOO_LARGE, start, message).help("split it into several files"));
        return;
    }
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let before = &bytes[..error.valid_up_to()];
            let place = place_after(file, &String::from_utf8_lossy(before));
            found.push(
                Diagnostic::new(&codes::NOT_UTF8, place, "a byte that is not valid UTF-8")
                    .help("save the file as UTF-8"),
            );
            return;
        }
    };
    if let Some((index, bad)) = text.char_indices().find(|(_, c)| is_unprintable(*c)) {
        let place = place_after(file, &text[..index]);
        let message = format!("the control character U+{:04X} may not stand in YAML", u32::from(bad));
        found.push(
            Diagnostic::new(&codes::SYNTAX, place, message)
                .help("remove it, or write it as an escape in double quotes"),
        );
        return;
    }
    let (text, joined) = join_surrogates(text);
    Reader { file, limits, documents, found, open: Vec::new(), values: 0, count: 0, joined }.run(&text);
}

/// JSON writes characters beyond U+FFFF as two escapes, which YAML does not know: they become one, which is two characters
/// shorter. Also returns where that was done: line and column behind the new escape.
fn join_surrogates(text: &str) -> (Cow<'_, str>, Vec<(u32, u32)>) {
    let mut joined = Vec::new();
    let is_pair = |escape: &str| escape.starts_with("\\uD") || escape.starts_with("\\ud");
    if !text.trim_start().starts_with(['{', '[']) || !text.match_indices("\\u").any(|(at, _)| is_pair(&text[at..])) {
        return (Cow::Borrowed(text), joined);
    }
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return (Cow::Borrowed(text), joined);
    }
    let mut result = String::with_capacity(text.len());
    let (mut rest, mut line, mut column) = (text, 1, 1);
    while let Some(next) = rest.chars().next() {
        let code = |at: usize| {
            let escape = rest.get(at..at + 6).filter(|escape| escape.starts_with("\\u"))?;
            u32::from_str_radix(&escape[2..], 16).ok()
        };
        let pair = match (code(0), code(6)) {
            (Some(high @ 0xD800..=0xDBFF), Some(low @ 0xDC00..=0xDFFF)) => {
                Some(0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF))
            }
            _ => None,
        };
        if let Some(code) = pair {
            result.push_str(&format!("\\U{code:08X}"));
            rest = &rest[12..];
            column += 10;
            joined.push((line, column));
            continue;
        }
        // An escaped backslash does not begin an escape.
        let length = if rest.starts_with("\\\\") { 2 } else { next.len_utf8() };
        result.push_str(&rest[..length]);
        rest = &rest[length..];
        (line, column) =
            if next == '\n' { (line + 1, 1) } else { (line, column + if length == 2 && next == '\\' { 2 } else { 1 }) };
    }
    (Cow::Owned(result), joined)
}

/// The characters that YAML excludes from a stream (1.2.2, production `c-printable`); Go's reader refuses them as well.
fn is_unprintable(c: char) -> bool {
    matches!(c, '\0'..='\x08' | '\x0B' | '\x0C' | '\x0E'..='\x1F' | '\x7F' | '\u{80}'..='\u{84}' | '\u{86}'..='\u{9F}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}')
}

/// The place that follows `text`.
fn place_after(file: u32, text: &str) -> Place {
    let line = text.matches('\n').count() + 1;
    let column = text.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Place { file, line: to_u32(line), column: to_u32(column) }
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A map or list that has begun and not ended.
enum Open {
    Seq(Place, Vec<Node>),
    Map {
        place: Place,
        entries: Vec<Entry>,
        keys: BTreeMap<Box<str>, Place>,
        key: Option<(Box<str>, Place)>,
        /// The value of the current key is not kept.
        skip: bool,
        /// One of the keys could not be read.
        refused: bool,
    },
}

struct Reader<'a> {
    file: u32,
    limits: &'a Limits,
    documents: &'a mut Vec<Node>,
    found: &'a mut Diagnostics,
    open: Vec<Open>,
    values: usize,
    count: usize,
    /// Where the text is two characters shorter than the file.
    joined: Vec<(u32, u32)>,
}

impl Reader<'_> {
    fn run(mut self, text: &str) {
        let mut parser = Parser::new_from_str(text);
        loop {
            let (event, mark) = match parser.next_token() {
                Ok(token) => token,
                Err(error) => return self.not_yaml(text, &error),
            };
            let place = self.place(mark);
            match event {
                Event::StreamEnd => return,
                Event::Nothing | Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart => {
                    self.count += 1;
                    if self.count > self.limits.documents {
                        return self.too_large(place, "documents", self.limits.documents);
                    }
                }
                Event::Alias(_) => {
                    self.found.push(
                        Diagnostic::new(&codes::ANCHOR, place, "an alias (`*name`)")
                            .help("write the value out where it is used"),
                    );
                    self.add(place, Value::Refused);
                }
                Event::Scalar(text, style, anchor, tag) => {
                    self.refuse_anchor(place, anchor);
                    if let Some(tag) = tag {
                        self.refuse_tag(place, &tag);
                    }
                    let value = scalar(text, style);
                    self.add(place, value);
                }
                Event::SequenceStart(anchor, tag) => {
                    self.refuse_anchor(place, anchor);
                    if let Some(tag) = tag {
                        self.refuse_tag(place, &tag);
                    }
                    self.open.push(Open::Seq(place, Vec::new()));
                }
                Event::MappingStart(anchor, tag) => {
                    self.refuse_anchor(place, anchor);
                    if let Some(tag) = tag {
                        self.refuse_tag(place, &tag);
                    }
                    self.open.push(Open::Map {
                        place,
                        entries: Vec::new(),
                        keys: BTreeMap::new(),
                        key: None,
                        skip: false,
                        refused: false,
                    });
                }
                Event::SequenceEnd => {
                    if let Some(Open::Seq(place, items)) = self.open.pop() {
                        self.add(place, Value::Seq(items));
                    }
                }
                Event::MappingEnd => {
                    if let Some(Open::Map { place, entries, refused, .. }) = self.open.pop() {
                        // The reader marks a block map at its first `:`; people look for its first key.
                        let place = entries.first().map_or(place, |entry| entry.place.min(place));
                        // What stands behind a key that nobody can read could be anything.
                        self.add(place, if refused { Value::Refused } else { Value::Map(entries) });
                    }
                }
            }
            if self.open.len() > self.limits.depth {
                let message = format!("maps and lists more than {} deep", self.limits.depth);
                self.found.push(Diagnostic::new(&codes::TOO_DEEP, place, message));
                return;
            }
            if self.values > self.limits.values {
                return self.too_large(place, "values", self.limits.values);
            }
        }
    }

    /// The reader tells where it stopped; what was begun and not ended often says more.
    fn not_yaml(&mut self, text: &str, error: &ScanError) {
        let place = self.place(*error.marker());
        let info = error.info();
        let help = if info.contains("tab") {
            "indent with spaces"
        } else if info.contains("mapping values") || info.contains("':'") {
            "write a space after the `:` of a key, and put text that holds `: ` in double quotes"
        } else if info.contains("quoted scalar") {
            "end the text with the quote it began with, and write `\\\\` for a backslash in double quotes"
        } else if info.contains("flow") {
            "end every `[` with `]` and every `{` with `}`, with commas between the items"
        } else {
            "let the keys of one map begin in the same column, and put text with special characters in double quotes"
        };
        let mut diagnostic = Diagnostic::new(&codes::SYNTAX, place, format!("not valid YAML: {info}")).help(help);
        let begun = self.open.iter().rev().map(|open| match open {
            Open::Seq(place, _) | Open::Map { place, .. } => *place,
        });
        let is_bracket = |place: &Place| {
            let line = text.lines().nth(place.line as usize - 1);
            matches!(line.and_then(|line| line.chars().nth(place.column as usize - 1)), Some('[' | '{'))
        };
        if let Some(begun) = begun.take_while(is_bracket).last() {
            diagnostic = diagnostic.also(begun, "begun here");
        }
        self.found.push(diagnostic);
    }

    fn too_large(&mut self, place: Place, what: &str, limit: usize) {
        let message = format!("more than {limit} {what} in one file");
        self.found.push(Diagnostic::new(&codes::TOO_LARGE, place, message).help("split it into several files"));
    }

    /// Line from 1; the reader counts columns from 0.
    fn place(&self, mark: Marker) -> Place {
        let (line, column) = (to_u32(mark.line().max(1)), to_u32(mark.col() + 1));
        let shorter = self.joined.iter().filter(|(joined, behind)| *joined == line && *behind <= column).count();
        Place { file: self.file, line, column: column + 2 * to_u32(shorter) }
    }

    fn refuse_anchor(&mut self, place: Place, anchor: usize) {
        if anchor > 0 {
            self.found.push(
                Diagnostic::new(&codes::ANCHOR, place, "an anchor (`&name`)")
                    .help("write the value out where it is used"),
            );
        }
    }

    fn refuse_tag(&mut self, place: Place, tag: &Tag) {
        let handle = if tag.handle == "tag:yaml.org,2002:" { "!!" } else { &tag.handle };
        let message = format!("the tag `{}`", short(&format!("{handle}{}", tag.suffix)));
        self.found.push(
            Diagnostic::new(&codes::TAG, place, message).help("remove the tag; quote the value if it is a string"),
        );
    }

    /// Puts a finished value where it belongs: into the open list, the open map (as key or value), or the documents.
    fn add(&mut self, place: Place, value: Value) {
        self.values += 1;
        match self.open.last_mut() {
            None => self.documents.push(Node { place, value }),
            Some(Open::Seq(_, items)) => items.push(Node { place, value }),
            Some(Open::Map { entries, keys, key, skip, refused, .. }) => match key.take() {
                Some((key, key_place)) => {
                    if !std::mem::take(skip) {
                        // Nothing stands nowhere: its mark is that of whatever comes next, lines further down.
                        let place = if matches!(value, Value::Null) { key_place } else { place };
                        entries.push(Entry { key, place: key_place, node: Node { place, value } });
                    }
                }
                None => match key_text(value) {
                    Ok(text) if &*text == "<<" => {
                        self.found.push(
                            Diagnostic::new(&codes::ANCHOR, place, "a merge key (`<<`)")
                                .help("write the entries out where they are used"),
                        );
                        *skip = true;
                        *refused = true;
                        *key = Some((text, place));
                    }
                    Ok(text) => {
                        if let Some(first) = keys.insert(text.clone(), place) {
                            let message = format!("the key \"{}\" stands twice in this map", short(&text));
                            self.found.push(
                                Diagnostic::new(&codes::DUPLICATE_KEY, place, message)
                                    .also(first, "first here")
                                    .help("keep one of them"),
                            );
                            *skip = true;
                        }
                        *key = Some((text, place));
                    }
                    Err(problem) => {
                        if let Some((what, help)) = problem {
                            let message = format!("a key that is {what}");
                            self.found.push(Diagnostic::new(&codes::KEY_NOT_STRING, place, message).help(help));
                        }
                        *skip = true;
                        *refused = true;
                        *key = Some(("".into(), place));
                    }
                },
            },
        }
    }
}

/// Cuts text of a document before it is shown: messages never print contents at length.
pub(crate) fn short(text: &str) -> String {
    let mut cut: String = text.chars().take(64).map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect();
    if text.chars().count() > 64 {
        cut.push('…');
    }
    cut
}

/// A key must be a string for every reader; otherwise what it is and what to write, unless that was told already.
fn key_text(value: Value) -> Result<Box<str>, Option<(&'static str, &'static str)>> {
    const QUOTE: &str = "put the key in double quotes";
    match value {
        Value::Str(text) => Ok(text),
        Value::Null => Err(Some(("empty", "write the key in front of the `:`"))),
        Value::Bool(_) => Err(Some(("a boolean", QUOTE))),
        Value::Int(_) | Value::Float(_) => Err(Some(("a number", QUOTE))),
        Value::Ambiguous(_, what) => Err(Some((what, QUOTE))),
        Value::Seq(_) | Value::Map(_) => {
            Err(Some(("a list or map", "write a plain key; a template such as `{{ … }}` has to be rendered first")))
        }
        Value::Refused => Err(None),
    }
}

/// What a scalar is. Plain ones are compared with both schemas: YAML 1.2 core, and YAML 1.1 as Go's reader has it.
fn scalar(text: String, style: TScalarStyle) -> Value {
    let text = text.into_boxed_str();
    if style != TScalarStyle::Plain {
        return Value::Str(text);
    }
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        "y" | "Y" | "yes" | "Yes" | "YES" | "n" | "N" | "no" | "No" | "NO" | "on" | "On" | "ON" | "off" | "Off"
        | "OFF" => {
            return Value::Ambiguous(text, "a boolean for some readers");
        }
        _ => {}
    }
    let first = text.bytes().next().unwrap_or(b' ');
    if !(first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.')) {
        return Value::Str(text);
    }
    number(text)
}

/// Plain scalars that begin like a number.
fn number(text: Box<str>) -> Value {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(&text);
    if digits.is_empty() {
        return Value::Str(text);
    }
    let all_digits = digits.bytes().all(|b| b.is_ascii_digit());
    if all_digits && (digits == "0" || !digits.starts_with('0')) && !text.starts_with('+') {
        return match text.parse() {
            Ok(number) => Value::Int(number),
            Err(_) => Value::Float(text),
        };
    }
    let lower = digits.to_ascii_lowercase();
    if matches!(lower.as_str(), ".inf" | ".nan") {
        return Value::Ambiguous(text, "a number for some readers");
    }
    let numeral = digits
        .bytes()
        .all(|b| b.is_ascii_hexdigit() || matches!(b, b'_' | b'.' | b':' | b'+' | b'-' | b'x' | b'X' | b'o' | b'O'));
    if !numeral || !digits.bytes().any(|b| b.is_ascii_digit()) {
        return Value::Str(text);
    }
    let plain_float = digits.bytes().next().is_some_and(|b| b.is_ascii_digit())
        && !text.starts_with('+')
        && !digits.contains(['_', ':', 'x', 'X', 'o', 'O'])
        && text.parse::<f64>().is_ok();
    let padded = digits.starts_with('0') && !digits.starts_with("0.");
    if plain_float && !all_digits && !padded {
        return Value::Float(text);
    }
    if all_digits || text.parse::<f64>().is_ok() {
        return Value::Ambiguous(text, "a number for some readers");
    }
    let body = digits.replace('_', "");
    let based = [("0x", 16), ("0X", 16), ("0o", 8), ("0O", 8), ("0b", 2), ("0B", 2)]
        .iter()
        .any(|(prefix, base)| body.strip_prefix(prefix).is_some_and(|rest| i128::from_str_radix(rest, *base).is_ok()));
    let grouped = digits.contains('_') && body.parse::<f64>().is_ok();
    if based || grouped {
        return Value::Ambiguous(text, "a number for some readers");
    }
    // YAML 1.1 reads 12:30 as 750 (base 60) and 2024-01-02 as a point in time.
    let sexagesimal = body.contains(':')
        && body.split(':').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
        && body.split(':').skip(1).all(|part| part.split('.').next().is_some_and(|p| p.len() <= 2));
    if sexagesimal {
        return Value::Ambiguous(text, "a number in base 60 for some readers");
    }
    let date: Vec<&str> = text.split('-').collect();
    if date.len() == 3
        && date[0].len() == 4
        && date.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    {
        return Value::Ambiguous(text, "a date for some readers");
    }
    Value::Str(text)
}
