//! Writes YAML that every reader takes back unchanged, in kubectl's style. A string is plain only if it begins with a
//! letter or `/` and holds nothing that has a meaning anywhere in YAML 1.1 or 1.2; every other string is quoted.
//!
//! Libraries for YAML either misquote for Go's reader or take eight times as many instructions (docs/performance.md); what
//! is written here is only ever what JSON can hold.

use serde::ser::{
    self, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeTuple, Serializer,
};
use std::fmt::{self, Write};

/// Adds the value as one YAML document.
pub(super) fn write<T: Serialize>(out: &mut String, value: &T) -> Result<(), Unsupported> {
    value.serialize(Value { out, indent: 0, position: Position::Start })
}

/// A value that objects never hold.
#[derive(Debug)]
pub(super) struct Unsupported(Box<str>);

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsupported {}

impl ser::Error for Unsupported {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string().into())
    }
}

fn unsupported<T>(what: &str) -> Result<T, Unsupported> {
    Err(Unsupported(format!("manifests hold no {what}").into()))
}

/// What has been written in front of a value on its line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Nothing.
    Start,
    /// A key and its colon.
    Key,
    /// The dash of a list item.
    Dash,
    /// Nothing: the value is a key itself, which has to be a string.
    Name,
}

struct Value<'a> {
    out: &'a mut String,
    /// The column of the key or dash in front.
    indent: usize,
    position: Position,
}

impl Value<'_> {
    /// Ends the line with what needs no quoting.
    fn literal(self, value: &str) -> Result<(), Unsupported> {
        match self.position {
            Position::Name => return unsupported(NO_KEY),
            Position::Key => self.out.push(' '),
            Position::Start | Position::Dash => {}
        }
        self.out.push_str(value);
        self.out.push('\n');
        Ok(())
    }

    fn integer(self, value: impl itoa::Integer) -> Result<(), Unsupported> {
        self.literal(itoa::Buffer::new().format(value))
    }
}

const NO_KEY: &str = "keys that are no strings";

fn start_line(out: &mut String, indent: usize) {
    const SPACES: &str = "                                ";
    let mut rest = indent;
    while rest > 0 {
        let part = rest.min(SPACES.len());
        out.push_str(&SPACES[..part]);
        rest -= part;
    }
}

impl<'a> Serializer for Value<'a> {
    type Ok = ();
    type Error = Unsupported;
    type SerializeSeq = List<'a>;
    type SerializeTuple = List<'a>;
    type SerializeTupleStruct = Impossible<(), Unsupported>;
    type SerializeTupleVariant = Impossible<(), Unsupported>;
    type SerializeMap = Map<'a>;
    type SerializeStruct = Map<'a>;
    type SerializeStructVariant = Impossible<(), Unsupported>;

    fn serialize_bool(self, value: bool) -> Result<(), Unsupported> {
        self.literal(if value { "true" } else { "false" })
    }
    fn serialize_i8(self, value: i8) -> Result<(), Unsupported> {
        self.integer(value)
    }
    fn serialize_i16(self, value: i16) -> Result<(), Unsupported> {
        self.integer(value)
    }
    fn serialize_i32(self, value: i32) -> Result<(), Unsupported> {
        self.integer(value)
    }
    fn serialize_i64(self, value: i64) -> Result<(), Unsupported> {
        self.integer(value)
    }
    fn serialize_u8(self, value: u8) -> Result<(), Unsupported> {
        self.integer(value)
    }
    fn serialize_u16(self, value: u16) -> Result<(), Unsupported> {
        self.integer(value)
    }
    fn serialize_u32(self, value: u32) -> Result<(), Unsupported> {
        self.integer(value)
    }
    fn serialize_u64(self, value: u64) -> Result<(), Unsupported> {
        self.integer(value)
    }
    fn serialize_f32(self, value: f32) -> Result<(), Unsupported> {
        self.serialize_f64(f64::from(value))
    }
    /// Rust's form with a point (`1.0`, `1e300` as `1.0e300`) is a number in YAML 1.1 and 1.2.
    fn serialize_f64(self, value: f64) -> Result<(), Unsupported> {
        if !value.is_finite() {
            return unsupported("infinite numbers");
        }
        self.literal(&format!("{value:?}"))
    }
    fn serialize_char(self, value: char) -> Result<(), Unsupported> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }
    fn serialize_str(self, value: &str) -> Result<(), Unsupported> {
        if self.position == Position::Key {
            self.out.push(' ');
        }
        scalar(self.out, value);
        if self.position != Position::Name {
            self.out.push('\n');
        }
        Ok(())
    }
    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result<(), Unsupported> {
        self.serialize_str(&value.to_string())
    }
    fn serialize_bytes(self, _: &[u8]) -> Result<(), Unsupported> {
        unsupported("bytes")
    }
    fn serialize_none(self) -> Result<(), Unsupported> {
        self.literal("null")
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Unsupported> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<(), Unsupported> {
        self.literal("null")
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Unsupported> {
        self.literal("null")
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Unsupported> {
        self.serialize_str(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Unsupported> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Unsupported> {
        let mut map = self.serialize_map(Some(1))?;
        map.serialize_entry(variant, value)?;
        SerializeMap::end(map)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<List<'a>, Unsupported> {
        match self.position {
            Position::Dash => unsupported("lists of lists"),
            Position::Name => unsupported(NO_KEY),
            Position::Start | Position::Key => {
                Ok(List { out: self.out, indent: self.indent, position: self.position, empty: true })
            }
        }
    }
    /// A list of a fixed length.
    fn serialize_tuple(self, length: usize) -> Result<List<'a>, Unsupported> {
        self.serialize_seq(Some(length))
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Unsupported> {
        unsupported("tuples")
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Unsupported> {
        unsupported("tuples")
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Map<'a>, Unsupported> {
        let indent = match self.position {
            Position::Name => return unsupported(NO_KEY),
            Position::Start => 0,
            Position::Key | Position::Dash => self.indent + 2,
        };
        Ok(Map { out: self.out, indent, position: self.position, empty: true })
    }
    fn serialize_struct(self, _: &'static str, length: usize) -> Result<Map<'a>, Unsupported> {
        self.serialize_map(Some(length))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Unsupported> {
        unsupported("tagged maps")
    }
}

/// A list; its dashes stand below the first letter of its key.
struct List<'a> {
    out: &'a mut String,
    indent: usize,
    position: Position,
    empty: bool,
}

impl SerializeSeq for List<'_> {
    type Ok = ();
    type Error = Unsupported;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unsupported> {
        let first = std::mem::take(&mut self.empty);
        if first && self.position == Position::Key {
            self.out.push('\n');
        }
        // The first item of a list inside a list stands behind the outer dash.
        if !first || self.position != Position::Dash {
            start_line(self.out, self.indent);
        }
        self.out.push_str("- ");
        value.serialize(Value { out: self.out, indent: self.indent, position: Position::Dash })
    }

    fn end(self) -> Result<(), Unsupported> {
        if self.empty {
            self.out.push_str(if self.position == Position::Key { " []\n" } else { "[]\n" });
        }
        Ok(())
    }
}

impl SerializeTuple for List<'_> {
    type Ok = ();
    type Error = Unsupported;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unsupported> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Result<(), Unsupported> {
        SerializeSeq::end(self)
    }
}

/// A map; as a list item it begins on the line of its dash.
struct Map<'a> {
    out: &'a mut String,
    /// The column of its keys.
    indent: usize,
    position: Position,
    empty: bool,
}

impl Map<'_> {
    /// Goes to where a key is written.
    fn start_entry(&mut self) {
        let first = std::mem::take(&mut self.empty);
        if first && self.position == Position::Key {
            self.out.push('\n');
        }
        // The first key of a list item stands behind the dash.
        if !first || self.position == Position::Key {
            start_line(self.out, self.indent);
        }
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unsupported> {
        self.out.push(':');
        value.serialize(Value { out: self.out, indent: self.indent, position: Position::Key })
    }

    fn finish(self) {
        if self.empty {
            self.out.push_str(if self.position == Position::Key { " {}\n" } else { "{}\n" });
        }
    }
}

impl SerializeMap for Map<'_> {
    type Ok = ();
    type Error = Unsupported;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unsupported> {
        self.start_entry();
        key.serialize(Value { out: self.out, indent: self.indent, position: Position::Name })
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unsupported> {
        self.value(value)
    }

    fn end(self) -> Result<(), Unsupported> {
        self.finish();
        Ok(())
    }
}

impl SerializeStruct for Map<'_> {
    type Ok = ();
    type Error = Unsupported;

    /// The names of fields are ours, and none of them needs quotes.
    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Unsupported> {
        debug_assert!(is_plain(key), "{key} needs quotes");
        self.start_entry();
        self.out.push_str(key);
        self.value(value)
    }

    fn end(self) -> Result<(), Unsupported> {
        self.finish();
        Ok(())
    }
}

/// Writes a string so that it is read as just that string.
fn scalar(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push_str(text);
    } else {
        quoted(out, text);
    }
}

/// Whether no reader takes the text for anything but this string, wherever it stands.
fn is_plain(text: &str) -> bool {
    let [first, ..] = text.as_bytes() else { return false };
    let begins = first.is_ascii_alphabetic() || *first == b'/';
    let meanings = text.bytes().fold(0, |sum, byte| sum | MEANING[usize::from(byte)]);
    // A colon means something at the end, and in front of a space.
    let all = meanings == 0 || (meanings == COLON && text.split(':').all(|part| !part.is_empty()));
    begins && all && !is_word(text)
}

const COLON: u8 = 1;
const SOMETHING: u8 = 2;

/// What bytes may mean in YAML behind a first letter; 0: nothing, wherever they stand.
const MEANING: [u8; 256] = {
    let mut table = [SOMETHING; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => 0,
            b'-' | b'_' | b'.' | b'/' | b'@' | b'=' | b'+' | b'*' | b',' | b'|' => 0,
            b':' => COLON,
            _ => SOMETHING,
        };
        byte += 1;
    }
    table
};

/// Words of YAML 1.1 and 1.2 that are no strings; capitals in any place are quoted as well, which costs nothing.
fn is_word(text: &str) -> bool {
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    text.len() <= 5 && WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// In double quotes, with the escapes of JSON, which are YAML's as well. What YAML does not let stand in a stream
/// (production `c-printable`), or takes for the end of a line, is escaped.
fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\0'..='\x1F' | '\x7F'..='\u{9F}' | '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}
