//! Writes YAML that every reader takes back unchanged, in kubectl's style. A string is plain only if it begins with a
//! letter or `/` and holds nothing that has a meaning anywhere in YAML 1.1 or 1.2; every other string is quoted.
//!
//! The project's libraries for YAML either misquote for Go's reader or cost several times what everything else does
//! (docs/performance.md); what is written here is only ever what JSON can hold.

use serde::ser::{
    self, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, Serializer,
};
use std::fmt::{self, Write};

/// The value as one YAML document.
pub(super) fn to_string<T: Serialize>(value: &T) -> Result<String, Unsupported> {
    let mut out = String::with_capacity(1024);
    value.serialize(Value { out: &mut out, indent: 0, position: Position::Start })?;
    Ok(out)
}

/// A value that objects never hold.
#[derive(Debug)]
pub(super) struct Unsupported(String);

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsupported {}

impl ser::Error for Unsupported {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

fn unsupported<T>(what: &str) -> Result<T, Unsupported> {
    Err(Unsupported(format!("manifests hold no {what}")))
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
}

struct Value<'a> {
    out: &'a mut String,
    /// The column of the key or dash in front.
    indent: usize,
    position: Position,
}

impl Value<'_> {
    /// Ends the line with what needs no quoting.
    fn literal(self, value: impl fmt::Display) -> Result<(), Unsupported> {
        if self.position == Position::Key {
            self.out.push(' ');
        }
        writeln!(self.out, "{value}").map_err(|_| Unsupported("out of memory".to_owned()))
    }
}

fn start_line(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

impl<'a> Serializer for Value<'a> {
    type Ok = ();
    type Error = Unsupported;
    type SerializeSeq = List<'a>;
    type SerializeTuple = Impossible<(), Unsupported>;
    type SerializeTupleStruct = Impossible<(), Unsupported>;
    type SerializeTupleVariant = Impossible<(), Unsupported>;
    type SerializeMap = Map<'a>;
    type SerializeStruct = Map<'a>;
    type SerializeStructVariant = Map<'a>;

    fn serialize_bool(self, value: bool) -> Result<(), Unsupported> {
        self.literal(value)
    }
    fn serialize_i8(self, value: i8) -> Result<(), Unsupported> {
        self.literal(value)
    }
    fn serialize_i16(self, value: i16) -> Result<(), Unsupported> {
        self.literal(value)
    }
    fn serialize_i32(self, value: i32) -> Result<(), Unsupported> {
        self.literal(value)
    }
    fn serialize_i64(self, value: i64) -> Result<(), Unsupported> {
        self.literal(value)
    }
    fn serialize_u8(self, value: u8) -> Result<(), Unsupported> {
        self.literal(value)
    }
    fn serialize_u16(self, value: u16) -> Result<(), Unsupported> {
        self.literal(value)
    }
    fn serialize_u32(self, value: u32) -> Result<(), Unsupported> {
        self.literal(value)
    }
    fn serialize_u64(self, value: u64) -> Result<(), Unsupported> {
        self.literal(value)
    }
    fn serialize_f32(self, value: f32) -> Result<(), Unsupported> {
        self.serialize_f64(f64::from(value))
    }
    /// Rust's form with a point (`1.0`, `1e300` as `1.0e300`) is a number in YAML 1.1 and 1.2.
    fn serialize_f64(self, value: f64) -> Result<(), Unsupported> {
        if !value.is_finite() {
            return unsupported("infinite numbers");
        }
        self.literal(format_args!("{value:?}"))
    }
    fn serialize_char(self, value: char) -> Result<(), Unsupported> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }
    fn serialize_str(self, value: &str) -> Result<(), Unsupported> {
        if self.position == Position::Key {
            self.out.push(' ');
        }
        scalar(self.out, value);
        self.out.push('\n');
        Ok(())
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
        map.entry(variant, value)?;
        SerializeMap::end(map)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<List<'a>, Unsupported> {
        match self.position {
            Position::Dash => unsupported("lists of lists"),
            Position::Start | Position::Key => {
                Ok(List { out: self.out, indent: self.indent, position: self.position, empty: true })
            }
        }
    }
    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Unsupported> {
        unsupported("tuples")
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
        let indent = if self.position == Position::Start { 0 } else { self.indent + 2 };
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
    ) -> Result<Map<'a>, Unsupported> {
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

/// A map; as a list item it begins on the line of its dash.
struct Map<'a> {
    out: &'a mut String,
    /// The column of its keys.
    indent: usize,
    position: Position,
    empty: bool,
}

impl Map<'_> {
    fn key(&mut self, key: &str) {
        if std::mem::take(&mut self.empty) {
            match self.position {
                Position::Key => {
                    self.out.push('\n');
                    start_line(self.out, self.indent);
                }
                Position::Start | Position::Dash => {}
            }
        } else {
            start_line(self.out, self.indent);
        }
        scalar(self.out, key);
        self.out.push(':');
    }

    fn entry<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), Unsupported> {
        self.key(key);
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
        let mut text = String::new();
        key.serialize(Key(&mut text))?;
        self.key(&text);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unsupported> {
        value.serialize(Value { out: self.out, indent: self.indent, position: Position::Key })
    }

    fn end(self) -> Result<(), Unsupported> {
        self.finish();
        Ok(())
    }
}

impl SerializeStruct for Map<'_> {
    type Ok = ();
    type Error = Unsupported;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Unsupported> {
        self.entry(key, value)
    }

    fn end(self) -> Result<(), Unsupported> {
        self.finish();
        Ok(())
    }
}

impl SerializeStructVariant for Map<'_> {
    type Ok = ();
    type Error = Unsupported;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Unsupported> {
        self.entry(key, value)
    }

    fn end(self) -> Result<(), Unsupported> {
        self.finish();
        Ok(())
    }
}

/// Keys are strings.
struct Key<'a>(&'a mut String);

macro_rules! no_key {
    ($($method:ident: $type:ty),*) => { $( fn $method(self, _: $type) -> Result<(), Unsupported> { unsupported("keys that are no strings") } )* };
}

impl Serializer for Key<'_> {
    type Ok = ();
    type Error = Unsupported;
    type SerializeSeq = Impossible<(), Unsupported>;
    type SerializeTuple = Impossible<(), Unsupported>;
    type SerializeTupleStruct = Impossible<(), Unsupported>;
    type SerializeTupleVariant = Impossible<(), Unsupported>;
    type SerializeMap = Impossible<(), Unsupported>;
    type SerializeStruct = Impossible<(), Unsupported>;
    type SerializeStructVariant = Impossible<(), Unsupported>;

    fn serialize_str(self, value: &str) -> Result<(), Unsupported> {
        self.0.push_str(value);
        Ok(())
    }
    no_key!(serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_u8: u8,
        serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_f32: f32, serialize_f64: f64, serialize_char: char,
        serialize_bytes: &[u8], serialize_unit_struct: &'static str);
    fn serialize_none(self) -> Result<(), Unsupported> {
        unsupported("keys that are no strings")
    }
    fn serialize_unit(self) -> Result<(), Unsupported> {
        unsupported("keys that are no strings")
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Unsupported> {
        value.serialize(self)
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
        _: &'static str,
        _: &T,
    ) -> Result<(), Unsupported> {
        unsupported("keys that are no strings")
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Unsupported> {
        unsupported("keys that are no strings")
    }
    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Unsupported> {
        unsupported("keys that are no strings")
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Unsupported> {
        unsupported("keys that are no strings")
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Unsupported> {
        unsupported("keys that are no strings")
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Unsupported> {
        unsupported("keys that are no strings")
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, Unsupported> {
        unsupported("keys that are no strings")
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Unsupported> {
        unsupported("keys that are no strings")
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
    let bytes = text.as_bytes();
    let begins = bytes.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'/');
    let harmless = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_' | b'.' | b'/' | b'@' | b'=' | b'+' | b'*' | b',' | b'|')
    };
    let colons = |(index, byte): (usize, &u8)| {
        harmless(*byte) || (*byte == b':' && bytes.get(index + 1).is_some_and(|next| harmless(*next)))
    };
    begins && bytes.iter().enumerate().all(colons) && !is_word(text)
}

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
