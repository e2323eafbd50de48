//! The smallest change of the text after which a field says what it should. Comments, order and style of everything
//! else stay; what was changed is read again, and anything but exactly the wanted difference is refused.

use super::span::Layout;
use super::value::{Value, scalar};
use anyhow::{Context, bail};
use mesh::source::{Entry, File, Limits, Node, Value as Read};
use std::ops::Range;

/// A piece of text in place of another.
struct Piece {
    range: Range<usize>,
    text: String,
}

/// The text of a file after which the field at `path` of a document (counted from 0) says `wanted`; without it, the
/// field is gone.
///
/// # Errors
///
/// If the text is written in a way that cannot be changed without touching something else.
pub fn set(text: &str, document: usize, path: &[&str], wanted: Option<&Value>) -> anyhow::Result<String> {
    let before = read(text)?;
    let root = before.get(document).context("the document is not there any more")?;
    let editor = Editor {
        layout: Layout::of(text),
        newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
        json: text.trim_start().starts_with('{'),
    };
    let mut pieces = Vec::new();
    match wanted {
        Some(wanted) => editor.put(root, path, wanted, &mut pieces),
        None => editor.take(root, path, &mut pieces),
    }
    .with_context(|| format!("`{}` cannot be edited where it stands", path.join(".")))?;
    let changed = apply(text, pieces)?;
    let after = read(&changed).context("the edit would break the file; edit it by hand")?;
    let said = after.get(document).and_then(|root| at(root, path));
    let right = match wanted {
        Some(wanted) => said.is_some_and(|node| wanted.is_said_by(node)),
        None => said.is_none(),
    };
    let rest = before.len() == after.len()
        && before.iter().zip(&after).enumerate().all(|(index, (before, after))| {
            if index == document { same_beside(before, after, path) } else { same(before, after) }
        });
    if !right || !rest {
        bail!("`{}` is written in a way that cannot be edited safely; edit it by hand", path.join("."));
    }
    Ok(changed)
}

/// The documents of a text without fault.
pub(super) fn read(text: &str) -> anyhow::Result<Vec<Node>> {
    let file = File { path: String::new(), relative: String::new(), bytes: text.as_bytes().to_vec(), explicit: false };
    let (nodes, found) = mesh::source::read(0, &file, &Limits::default());
    match found.sorted().into_iter().next() {
        None => Ok(nodes),
        Some(problem) => {
            let place = problem.place.map(|at| format!("line {}, column {}: ", at.line, at.column)).unwrap_or_default();
            bail!("{place}{}", problem.message)
        }
    }
}

fn at<'a>(node: &'a Node, path: &[&str]) -> Option<&'a Node> {
    path.iter().try_fold(node, |node, key| node.get(key))
}

fn same(a: &Node, b: &Node) -> bool {
    match (&a.value, &b.value) {
        (Read::Map(a), Read::Map(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.key == b.key && same(&a.node, &b.node))
        }
        (Read::Seq(a), Read::Seq(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Read::Str(a), Read::Str(b)) | (Read::Float(a), Read::Float(b)) => a == b,
        (Read::Ambiguous(a, _), Read::Ambiguous(b, _)) => a == b,
        (Read::Int(a), Read::Int(b)) => a == b,
        (Read::Bool(a), Read::Bool(b)) => a == b,
        (Read::Null, Read::Null) => true,
        _ => false,
    }
}

/// Whether two documents differ at most in the field at `path`.
fn same_beside(a: &Node, b: &Node, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else { return true };
    let (entries_of_a, entries_of_b) = match (&a.value, &b.value) {
        (Read::Map(a), Read::Map(b)) => (a.as_slice(), b.as_slice()),
        // A map that was empty, or is now.
        (Read::Map(a), _) => (a.as_slice(), [].as_slice()),
        (_, Read::Map(b)) => ([].as_slice(), b.as_slice()),
        _ => return false,
    };
    let others = |entries: &[Entry]| entries.iter().filter(|entry| &*entry.key != *first).count();
    others(entries_of_a) == others(entries_of_b)
        && entries_of_a
            .iter()
            .filter(|entry| &*entry.key != *first)
            .all(|entry| entries_of_b.iter().any(|other| other.key == entry.key && same(&other.node, &entry.node)))
        && match (a.get(first), b.get(first)) {
            (Some(a), Some(b)) => same_beside(a, b, rest),
            _ => true,
        }
}

fn apply(text: &str, mut pieces: Vec<Piece>) -> anyhow::Result<String> {
    pieces.sort_by_key(|piece| (piece.range.start, piece.range.end));
    let mut changed = String::with_capacity(text.len() + 256);
    let mut at = 0;
    for piece in pieces {
        if piece.range.start < at {
            bail!("two edits meet; edit the document by hand");
        }
        changed.push_str(&text[at..piece.range.start]);
        changed.push_str(&piece.text);
        at = piece.range.end;
    }
    changed.push_str(&text[at..]);
    Ok(changed)
}

struct Editor<'a> {
    layout: Layout<'a>,
    newline: &'static str,
    json: bool,
}

impl Editor<'_> {
    fn put(&self, node: &Node, path: &[&str], wanted: &Value, pieces: &mut Vec<Piece>) -> anyhow::Result<()> {
        let Some((key, rest)) = path.split_first() else { return self.reconcile(node, wanted, pieces) };
        let Read::Map(entries) = &node.value else { bail!("it is not a map") };
        match entries.iter().find(|entry| &*entry.key == *key) {
            None => self.insert(node, entries, &[((*key).to_owned(), nest(rest, wanted))], pieces),
            Some(entry) if matches!(entry.node.value, Read::Null) => {
                self.replace(node, entry, &nest(rest, wanted), pieces);
                Ok(())
            }
            Some(entry) if rest.is_empty() => self.change(node, entry, wanted, pieces),
            Some(entry) => self.put(&entry.node, rest, wanted, pieces),
        }
    }

    /// Takes a field out, and with it the maps that would be empty without it.
    fn take(&self, node: &Node, path: &[&str], pieces: &mut Vec<Piece>) -> anyhow::Result<()> {
        let Some((key, rest)) = path.split_first() else { return Ok(()) };
        let Read::Map(entries) = &node.value else { return Ok(()) };
        let Some(index) = entries.iter().position(|entry| &*entry.key == *key) else { return Ok(()) };
        let child = &entries[index].node;
        let only = matches!((&child.value, rest.first()), (Read::Map(inner), Some(next))
            if inner.len() == 1 && &*inner[0].key == *next && rest.len() == 1);
        if rest.is_empty() || only {
            self.remove_entries(node, entries, &[index], pieces)
        } else {
            self.take(child, rest, pieces)
        }
    }

    /// Changes an entry's value where kinds agree, else writes it anew.
    fn change(&self, map: &Node, entry: &Entry, wanted: &Value, pieces: &mut Vec<Piece>) -> anyhow::Result<()> {
        let alike = match (&entry.node.value, wanted) {
            (Read::Map(old), Value::Map(new)) => !old.is_empty() && !new.is_empty(),
            (Read::Seq(old), Value::List(new) | Value::Lines(new)) => !old.is_empty() && !new.is_empty(),
            _ => false,
        };
        if alike {
            return self.reconcile(&entry.node, wanted, pieces);
        }
        if !wanted.is_said_by(&entry.node) {
            self.replace(map, entry, wanted, pieces);
        }
        Ok(())
    }

    /// Writes an entry's value anew, from its colon on.
    fn replace(&self, map: &Node, entry: &Entry, wanted: &Value, pieces: &mut Vec<Piece>) {
        let colon = self.layout.colon(entry);
        let span = self.layout.value_span(entry);
        let key = self.layout.offset(entry.place);
        let text = if self.layout.is_flow(map)
            || self.json
            || matches!(wanted, Value::Text(_) | Value::Number(_) | Value::Bool(_))
        {
            format!(" {}", wanted.on_one_line(self.json))
        } else {
            let column = self.layout.column(key);
            let field = wanted.field(&entry.key, column, self.newline);
            let name = column + scalar(&entry.key, false).len() + 1;
            field.chars().skip(name).collect()
        };
        pieces.push(Piece { range: colon..span.end, text });
    }

    fn reconcile(&self, node: &Node, wanted: &Value, pieces: &mut Vec<Piece>) -> anyhow::Result<()> {
        match (&node.value, wanted) {
            _ if wanted.is_said_by(node) => Ok(()),
            (Read::Map(entries), Value::Map(fields)) if !entries.is_empty() && !fields.is_empty() => {
                self.reconcile_map(node, entries, fields, pieces)
            }
            (Read::Seq(items), Value::List(values) | Value::Lines(values))
                if !items.is_empty() && !values.is_empty() =>
            {
                self.reconcile_list(node, items, values, pieces)
            }
            _ => {
                pieces.push(Piece { range: self.layout.span(node), text: wanted.on_one_line(self.json) });
                Ok(())
            }
        }
    }

    fn reconcile_map(
        &self,
        node: &Node,
        entries: &[Entry],
        fields: &[(String, Value)],
        pieces: &mut Vec<Piece>,
    ) -> anyhow::Result<()> {
        let field = |key: &str| fields.iter().find(|(field, _)| field == key).map(|(_, value)| value);
        let mut gone = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            match field(&entry.key) {
                Some(value) => self.change(node, entry, value, pieces)?,
                None => gone.push(index),
            }
        }
        let new: Vec<(String, Value)> =
            fields.iter().filter(|(key, _)| entries.iter().all(|entry| *entry.key != **key)).cloned().collect();
        if gone.len() == entries.len() {
            pieces.push(Piece {
                range: self.layout.span(node),
                text: Value::Map(fields.to_vec()).on_one_line(self.json),
            });
            return Ok(());
        }
        self.remove_entries(node, entries, &gone, pieces)?;
        if new.is_empty() { Ok(()) } else { self.insert(node, entries, &new, pieces) }
    }

    /// Adds entries behind the last one of a map.
    fn insert(
        &self,
        node: &Node,
        entries: &[Entry],
        fields: &[(String, Value)],
        pieces: &mut Vec<Piece>,
    ) -> anyhow::Result<()> {
        let Some(last) = entries.last() else {
            let text = Value::Map(fields.to_vec()).on_one_line(self.json);
            pieces.push(Piece { range: self.layout.span(node), text });
            return Ok(());
        };
        let end = self.layout.value_span(last).end;
        let column = self.layout.column(self.layout.offset(last.place));
        if self.layout.is_flow(node) {
            let own_lines = self.layout.begins_line(self.layout.offset(last.place));
            let gap = if own_lines { format!("{}{}", self.newline, " ".repeat(column)) } else { " ".to_owned() };
            let text: String = fields
                .iter()
                .map(|(key, value)| format!(",{gap}{}: {}", scalar(key, self.json), value.on_one_line(self.json)))
                .collect();
            pieces.push(Piece { range: end..end, text });
        } else {
            let end = self.layout.line_end(end);
            let text =
                fields.iter().map(|(key, value)| self.newline.to_owned() + &value.field(key, column, self.newline));
            pieces.push(Piece { range: end..end, text: text.collect() });
        }
        Ok(())
    }

    /// Removes entries, but never all of them.
    fn remove_entries(
        &self,
        node: &Node,
        entries: &[Entry],
        gone: &[usize],
        pieces: &mut Vec<Piece>,
    ) -> anyhow::Result<()> {
        let spans: Vec<Range<usize>> =
            entries.iter().map(|entry| self.layout.offset(entry.place)..self.layout.value_span(entry).end).collect();
        if self.layout.is_flow(node) {
            return self.remove_in_brackets(&spans, gone, pieces);
        }
        for index in gone {
            if !self.layout.begins_line(spans[*index].start) {
                bail!("it shares its line with something else");
            }
            pieces.push(self.remove_lines(&spans[*index]));
        }
        Ok(())
    }

    /// What stands on these lines, with the comments directly above.
    fn remove_lines(&self, span: &Range<usize>) -> Piece {
        Piece { range: self.with_comments(span.start)..self.layout.next_line(span.end), text: String::new() }
    }

    /// The beginning of the line, or of the comments directly above it.
    fn with_comments(&self, offset: usize) -> usize {
        let mut start = self.layout.line_start(offset);
        while start > 0 {
            let above = self.layout.line_start(start - 1);
            if !self.layout.text[above..start].trim_start().starts_with('#') {
                break;
            }
            start = above;
        }
        start
    }

    fn remove_in_brackets(
        &self,
        spans: &[Range<usize>],
        gone: &[usize],
        pieces: &mut Vec<Piece>,
    ) -> anyhow::Result<()> {
        let first_left = (0..spans.len()).find(|index| !gone.contains(index)).unwrap_or(spans.len());
        for index in gone {
            let range = if *index < first_left {
                spans[*index].start..spans.get(index + 1).map_or(spans[*index].end, |next| next.start)
            } else {
                spans[index - 1].end..spans[*index].end
            };
            let between =
                if *index < first_left { spans[*index].end..range.end } else { range.start..spans[*index].start };
            if self.layout.text[between].contains('#') {
                bail!("a comment stands between the brackets");
            }
            pieces.push(Piece { range, text: String::new() });
        }
        Ok(())
    }

    fn reconcile_list(
        &self,
        node: &Node,
        items: &[Node],
        values: &[Value],
        pieces: &mut Vec<Piece>,
    ) -> anyhow::Result<()> {
        let flow = self.layout.is_flow(node);
        let mut gone = Vec::new();
        for step in align(items, values) {
            match step {
                Step::Change(item, value) => self.reconcile(&items[item], &values[value], pieces)?,
                Step::Remove(item) => gone.push(item),
                Step::Insert(behind, value) => pieces.push(self.insert_item(items, flow, behind, &values[value])?),
            }
        }
        let spans: Vec<Range<usize>> = items.iter().map(|item| self.layout.span(item)).collect();
        if flow {
            return self.remove_in_brackets(&spans, &gone, pieces);
        }
        for index in gone {
            self.dash(spans[index].start)?;
            pieces.push(self.remove_lines(&spans[index]));
        }
        Ok(())
    }

    fn insert_item(&self, items: &[Node], flow: bool, behind: Option<usize>, value: &Value) -> anyhow::Result<Piece> {
        let spans: Vec<Range<usize>> = items.iter().map(|item| self.layout.span(item)).collect();
        if flow {
            let text = value.on_one_line(self.json);
            let start = spans[0].start;
            let own_lines = self.layout.begins_line(start);
            let column = self.layout.column(start);
            let gap = if own_lines { format!("{}{}", self.newline, " ".repeat(column)) } else { " ".to_owned() };
            return Ok(match behind {
                None => Piece { range: start..start, text: format!("{text},{gap}") },
                Some(index) => Piece { range: spans[index].end..spans[index].end, text: format!(",{gap}{text}") },
            });
        }
        let column = self.layout.column(self.dash(spans[0].start)?);
        let lines = matches!(&items[0].value, Read::Map(_)) && !self.layout.is_flow(&items[0]);
        let text = value.item(column, lines, self.newline);
        Ok(match behind {
            None => {
                let start = self.with_comments(spans[0].start);
                Piece { range: start..start, text: text + self.newline }
            }
            Some(index) => {
                let end = self.layout.line_end(spans[index].end);
                Piece { range: end..end, text: format!("{}{text}", self.newline) }
            }
        })
    }

    /// The dash of a block list's item, which must stand alone in front of it.
    fn dash(&self, item: usize) -> anyhow::Result<usize> {
        let start = self.layout.line_start(item);
        let before = &self.layout.text[start..item];
        if before.trim() != "-" {
            bail!("an item shares its line with something else");
        }
        Ok(start + before.len() - before.trim_start().len())
    }
}

/// A value inside maps for the keys that lead to it.
fn nest(path: &[&str], value: &Value) -> Value {
    path.iter().rev().fold(value.clone(), |value, key| Value::Map(vec![((*key).to_owned(), value)]))
}

/// One step from the items that are there to the wanted ones.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// An item becomes another one where it stands.
    Change(usize, usize),
    /// An item goes.
    Remove(usize),
    /// A wanted item comes behind one that is there, or in front of all.
    Insert(Option<usize>, usize),
}

/// Items that are wanted as they are stay; between them, items are changed in order, and what is left goes or comes.
fn align(items: &[Node], values: &[Value]) -> Vec<Step> {
    let rows = items.len();
    let columns = values.len();
    // The longest common subsequence, from the end.
    let mut longest = vec![vec![0_usize; columns + 1]; rows + 1];
    for i in (0..rows).rev() {
        for j in (0..columns).rev() {
            longest[i][j] = if values[j].is_said_by(&items[i]) {
                longest[i + 1][j + 1] + 1
            } else {
                longest[i + 1][j].max(longest[i][j + 1])
            };
        }
    }
    let mut steps = Vec::new();
    let (mut i, mut j) = (0, 0);
    let (mut gap_i, mut gap_j) = (0, 0);
    loop {
        let kept = i < rows && j < columns && values[j].is_said_by(&items[i]);
        if kept || (i == rows && j == columns) {
            let (old, new) = (i - gap_i, j - gap_j);
            let both = old.min(new);
            steps.extend((0..both).map(|offset| Step::Change(gap_i + offset, gap_j + offset)));
            steps.extend((both..old).map(|offset| Step::Remove(gap_i + offset)));
            let behind = (gap_i + both).checked_sub(1);
            steps.extend((both..new).map(|offset| Step::Insert(behind, gap_j + offset)));
            if !kept {
                return steps;
            }
            (i, j) = (i + 1, j + 1);
            (gap_i, gap_j) = (i, j);
        } else if j == columns || (i < rows && longest[i + 1][j] >= longest[i][j + 1]) {
            i += 1;
        } else {
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, clippy::panic, reason = "short tests, which fail by panicking")]

    use super::set;
    use crate::author::value::Value;

    /// Sets fields of the first document one after the other.
    fn edit(text: &str, path: &str, wanted: Option<Value>) -> String {
        let path: Vec<&str> = path.split('.').collect();
        set(text, 0, &path, wanted.as_ref()).unwrap_or_else(|error| panic!("{error:#}"))
    }

    const DOCUMENT: &str = "\
# About user.
kind: MeshService   # a kind
metadata: {name: user, labels: {data: pii}}   # labels
spec:
  # Where it runs.
  clusters: [eks, cluster-1]   # two of them

  expose:
    hostnames:
    # the old name
    - user.old.example  # until May
    # the new name
    - \"user.new.example\"
  dependsOn:
  - ledger  # money
  - {service: rates, namespace: shop}
";

    #[test]
    fn lists_change_item_by_item() {
        let after = edit(DOCUMENT, "spec.clusters", Some(Value::texts(["eks", "wine", "cluster-1"])));
        assert_eq!(after, DOCUMENT.replace("[eks, cluster-1]", "[eks, wine, cluster-1]"));
        let after = edit(DOCUMENT, "spec.clusters", Some(Value::texts(["cluster-1"])));
        assert_eq!(after, DOCUMENT.replace("[eks, cluster-1]", "[cluster-1]"));
        let after = edit(DOCUMENT, "spec.clusters", Some(Value::text("all")));
        assert_eq!(after, DOCUMENT.replace("[eks, cluster-1]", "all"));
        let after = edit(DOCUMENT, "spec.expose.hostnames", Some(Value::texts(["user.new.example"])));
        assert_eq!(after, DOCUMENT.replace("    # the old name\n    - user.old.example  # until May\n", ""));
        let names = ["user.old.example", "user.new.example", "u.example"];
        let after = edit(DOCUMENT, "spec.expose.hostnames", Some(Value::texts(names)));
        assert_eq!(after, DOCUMENT.replace("  dependsOn", "    - u.example\n  dependsOn"));
        let rates = Value::map([("service", Some(Value::text("fx"))), ("namespace", Some(Value::text("shop")))]);
        let after = edit(DOCUMENT, "spec.dependsOn", Some(Value::List(vec![Value::text("ledger"), rates])));
        assert_eq!(after, DOCUMENT.replace("service: rates", "service: fx"));
    }

    #[test]
    fn fields_come_and_go_alone() {
        let after = edit(DOCUMENT, "spec.egress", Some(Value::text("declared")));
        assert_eq!(after, format!("{DOCUMENT}  egress: declared\n"));
        let to = Value::List(vec![Value::map([("namespace", Some(Value::text("bank")))])]);
        let after = edit(DOCUMENT, "spec.expose.to", Some(to));
        assert_eq!(after, DOCUMENT.replace("  dependsOn", "    to: [{namespace: bank}]\n  dependsOn"));
        let after = edit(DOCUMENT, "metadata.labels.tier", Some(Value::text("one")));
        assert_eq!(after, DOCUMENT.replace("data: pii", "data: pii, tier: one"));
        let after = edit(DOCUMENT, "spec.clusters", None);
        assert_eq!(after, DOCUMENT.replace("  # Where it runs.\n  clusters: [eks, cluster-1]   # two of them\n", ""));
        // A map that would be empty goes with its last field.
        let after = edit(DOCUMENT, "spec.expose.hostnames", None);
        assert!(!after.contains("expose"), "{after}");
        let after = edit(DOCUMENT, "metadata.labels.data", None);
        assert_eq!(after, DOCUMENT.replace(", labels: {data: pii}", ""));
    }

    #[test]
    fn nothing_changes_where_it_is_said_already() {
        let after = edit(DOCUMENT, "spec.clusters", Some(Value::texts(["eks", "cluster-1"])));
        assert_eq!(after, DOCUMENT);
    }

    #[test]
    fn other_styles_are_kept() {
        let windows = DOCUMENT.replace('\n', "\r\n");
        let after = edit(&windows, "spec.egress", Some(Value::text("declared")));
        assert_eq!(after, format!("{windows}  egress: declared\r\n"));
        let json = "{\n  \"kind\": \"MeshService\",\n  \"spec\": {\n    \"clusters\": [\"eks\"]\n  }\n}\n";
        let after = edit(json, "spec.egress", Some(Value::text("declared")));
        assert_eq!(after, json.replace("[\"eks\"]", "[\"eks\"],\n    \"egress\": \"declared\""));
        let after = edit(json, "spec.clusters", Some(Value::texts(["eks", "wine"])));
        assert_eq!(after, json.replace("[\"eks\"]", "[\"eks\", \"wine\"]"));
        let quoted = "spec:\n  'a key': 'it''s'  # x\n  note: |\n    a # b\n\n    c\n  last: folded\n    text\n";
        let after = edit(quoted, "spec.note", Some(Value::text("short")));
        assert_eq!(after, quoted.replace("|\n    a # b\n\n    c", "short"));
        let after = edit(quoted, "spec.last", Some(Value::Bool(true)));
        assert_eq!(after, quoted.replace("folded\n    text", "true"));
        let after = edit(quoted, "spec.a key", Some(Value::Number(7)));
        assert_eq!(after, quoted.replace("'it''s'", "7"));
    }

    #[test]
    fn empty_fields_get_their_value() {
        let after =
            edit("spec:\n  expose:  # soon\n  egress: open\n", "spec.expose.hostnames", Some(Value::texts(["a.b"])));
        assert_eq!(after, "spec:\n  expose:\n    hostnames: [a.b]  # soon\n  egress: open\n");
    }

    #[test]
    fn what_cannot_be_edited_alone_is_refused() {
        let comment = "spec:\n  list: [a, # first\n    b]\n";
        assert!(set(comment, 0, &["spec", "list"], Some(&Value::texts(["a"]))).is_err());
    }
}
