//! Templates of `-o jsonpath=`, in kubectl's dialect. It is older than the standard (RFC 9535) and different from it: text
//! around expressions in braces, `range` and `end`, one condition per filter, and no error where a key is missing.
//! `tests/live` compares it with kubectl itself.

use anyhow::{Context, bail, ensure};
use serde_json::Value as Json;
use std::cmp::Ordering;

/// A template that has been read.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    /// `{…}`: everything that is found, with spaces between.
    Found(Vec<Step>),
    /// `{range …}…{end}`: once for everything that is found.
    Range(Vec<Step>, Vec<Part>),
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// `.name` or `['name']`
    Field(String),
    /// `.*`
    Wildcard,
    /// `..`: the value and everything in it, but no scalars.
    Recursive,
    /// `[index]`, `[from:to:step]`, `[*]`
    Slice { from: Option<i64>, to: Option<i64>, step: Option<i64>, one: bool },
    /// `[a,b]`
    Union(Vec<Vec<Step>>),
    /// `[?(left op right)]`, or `[?(left)]`: where there is such a value.
    Filter { left: Vec<Step>, operator: String, right: Vec<Step> },
    /// Text in quotes, a number, `true` or `false`.
    Literal(Json),
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    ///
    /// If it is none; in kubectl's words.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        ensure!(!text.is_empty(), "template format specified but no template given");
        let mut reader = Reader { rest: text };
        let parts = reader.parts(false).with_context(|| format!("error parsing jsonpath {text}"))?;
        Ok(Self { text: text.to_owned(), parts })
    }

    /// What the template makes of a value.
    ///
    /// # Errors
    ///
    /// If an index leads nowhere, or values cannot be compared.
    pub fn render(&self, value: &Json) -> anyhow::Result<String> {
        let mut out = String::new();
        render(&self.parts, value, &mut out).with_context(|| format!("error executing jsonpath {:?}", self.text))?;
        Ok(out)
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// Parts up to the end, or up to the `{end}` of the range they stand in.
    fn parts(&mut self, in_range: bool) -> anyhow::Result<Vec<Part>> {
        let mut parts = Vec::new();
        loop {
            let Some((text, rest)) = self.rest.split_once('{') else {
                // As in kubectl, a range without an end goes to the end of the template.
                parts.extend((!self.rest.is_empty()).then(|| Part::Text(self.rest.to_owned())));
                self.rest = "";
                return Ok(parts);
            };
            parts.extend((!text.is_empty()).then(|| Part::Text(text.to_owned())));
            self.rest = rest.trim_start_matches(' ');
            if let Some(rest) = self.word("end") {
                ensure!(in_range, "not in range, nothing to end");
                self.rest = rest;
                self.steps('}')?;
                return Ok(parts);
            }
            if let Some(rest) = self.word("range") {
                self.rest = rest;
                let over = self.steps('}')?;
                parts.push(Part::Range(over, self.parts(true)?));
            } else {
                parts.push(Part::Found(self.steps('}')?));
            }
        }
    }

    /// What follows a keyword.
    fn word(&self, word: &str) -> Option<&'a str> {
        self.rest.strip_prefix(word).filter(|rest| rest.starts_with([' ', '}', '.', '[', '@', '$']))
    }

    /// Steps up to a character that ends them, or to the end of the text where that is none.
    fn steps(&mut self, end: char) -> anyhow::Result<Vec<Step>> {
        let mut steps = Vec::new();
        loop {
            let Some(first) = self.rest.chars().next() else {
                ensure!(end == END, "unclosed action");
                return Ok(steps);
            };
            let after = &self.rest[first.len_utf8()..];
            if first == end {
                self.rest = after;
                return Ok(steps);
            }
            match first {
                ' ' | '@' | '$' => self.rest = after,
                '.' if after.starts_with('.') => {
                    ensure!(steps.last() != Some(&Step::Recursive), "invalid multiple recursive descent");
                    self.rest = &after[1..];
                    steps.push(Step::Recursive);
                    if self.rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
                        steps.push(self.field());
                    }
                }
                '.' => {
                    self.rest = after;
                    steps.push(self.field());
                }
                '[' if after.starts_with("?(") => {
                    self.rest = &after[2..];
                    steps.push(self.filter()?);
                }
                '[' => {
                    let (inside, rest) = after.split_once(']').context("unterminated array")?;
                    self.rest = rest;
                    steps.push(bracket(inside)?);
                }
                '"' | '\'' => steps.push(Step::Literal(self.quoted(first)?.into())),
                c if c.is_ascii_digit() || c == '+' || c == '-' => {
                    let length = self.rest[1..].find(|c: char| c != '.' && !c.is_ascii_digit());
                    let (number, rest) = self.rest.split_at(length.map_or(self.rest.len(), |length| length + 1));
                    self.rest = rest;
                    let number = number.strip_prefix('+').unwrap_or(number);
                    let value =
                        number.parse::<i64>().map(Json::from).or_else(|_| number.parse::<f64>().map(Json::from));
                    steps.push(Step::Literal(value.ok().with_context(|| format!("cannot parse number {number}"))?));
                }
                c if c.is_alphanumeric() || c == '_' => {
                    let word = self.until_terminator();
                    match word.as_str() {
                        "true" | "false" => steps.push(Step::Literal((word == "true").into())),
                        _ => bail!("unrecognized identifier {word}"),
                    }
                }
                other => bail!("unrecognized character in action: {other:?}"),
            }
        }
    }

    fn field(&mut self) -> Step {
        match self.until_terminator().as_str() {
            "*" => Step::Wildcard,
            name => Step::Field(name.to_owned()),
        }
    }

    /// A name; what follows a backslash belongs to it.
    fn until_terminator(&mut self) -> String {
        let mut name = String::new();
        let mut chars = self.rest.char_indices();
        let end = loop {
            match chars.next() {
                None => break self.rest.len(),
                Some((_, '\\')) => name.extend(chars.next().map(|(_, next)| next)),
                Some((at, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')) => break at,
                Some((_, next)) => name.push(next),
            }
        };
        self.rest = &self.rest[end..];
        name
    }

    /// Text in quotes, with the escapes of Go.
    fn quoted(&mut self, quote: char) -> anyhow::Result<String> {
        let mut text = String::new();
        let mut chars = self.rest[1..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                _ if c == quote => {
                    self.rest = &self.rest[1 + at + 1..];
                    return Ok(text);
                }
                '\n' => break,
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, c @ ('\\' | '"' | '\''))) => text.push(c),
                    other => bail!("unknown escape \\{}", other.map_or(' ', |(_, c)| c)),
                },
                c => text.push(c),
            }
        }
        bail!("unterminated quoted string")
    }

    /// What stands behind `[?(`.
    fn filter(&mut self) -> anyhow::Result<Step> {
        let mut quote = None;
        let end = self.rest.char_indices().find(|(_, c)| match (quote, *c) {
            (None, '"' | '\'') => {
                quote = Some(*c);
                false
            }
            (Some(open), c) if c == open => {
                quote = None;
                false
            }
            (None, ')') => true,
            _ => false,
        });
        let (end, _) = end.context("unterminated filter")?;
        let text = &self.rest[..end];
        self.rest = self.rest[end + 1..].strip_prefix(']').context("unclosed array expect ]")?;
        const OPERATORS: [char; 4] = ['!', '<', '>', '='];
        let Some(at) = text.find(OPERATORS).filter(|at| *at > 0) else {
            return Ok(Step::Filter { left: whole(text)?, operator: String::new(), right: Vec::new() });
        };
        let length = text[at..].find(|c| !OPERATORS.contains(&c)).context("nothing to compare with")?;
        let operator = text[at..at + length].to_owned();
        ensure!(
            matches!(operator.as_str(), "==" | "!=" | "<" | "<=" | ">" | ">="),
            "unrecognized filter operator {operator}"
        );
        Ok(Step::Filter { left: whole(&text[..at])?, operator, right: whole(&text[at + length..])? })
    }
}

/// No character: steps go to the end of the text.
const END: char = '\0';

fn whole(text: &str) -> anyhow::Result<Vec<Step>> {
    Reader { rest: text }.steps(END)
}

/// What stands in brackets.
fn bracket(text: &str) -> anyhow::Result<Step> {
    if text.contains(',') {
        let each = text.split(',').map(|part| bracketed(part.trim_matches(' '))).collect::<anyhow::Result<_>>()?;
        return Ok(Step::Union(each));
    }
    let mut steps = bracketed(text)?;
    // Names in quotes may hold several: `['a.b']` is `.a.b`.
    Ok(if steps.len() == 1 { steps.remove(0) } else { Step::Union(vec![steps]) })
}

fn bracketed(text: &str) -> anyhow::Result<Vec<Step>> {
    if let Some(name) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        return whole(&format!(".{name}"));
    }
    let text = if text == "*" { ":" } else { text };
    let numbers: Vec<&str> = text.split(':').collect();
    ensure!(!text.is_empty() && numbers.len() <= 3, "invalid array index {text}");
    let number = |index: usize| match numbers.get(index) {
        None | Some(&"") => Ok(None),
        Some(number) => number.parse::<i64>().map(Some).ok().with_context(|| format!("invalid array index {text}")),
    };
    Ok(vec![Step::Slice { from: number(0)?, to: number(1)?, step: number(2)?, one: numbers.len() == 1 }])
}

fn render(parts: &[Part], value: &Json, out: &mut String) -> anyhow::Result<()> {
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Found(steps) => {
                let found = walk(steps, vec![value.clone()])?;
                out.push_str(&found.iter().map(text).collect::<Vec<_>>().join(" "));
            }
            Part::Range(over, inside) => {
                for value in walk(over, vec![value.clone()])? {
                    render(inside, &value, out)?;
                }
            }
        }
    }
    Ok(())
}

fn text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

fn walk(steps: &[Step], values: Vec<Json>) -> anyhow::Result<Vec<Json>> {
    steps.iter().try_fold(values, |values, step| walk_one(step, &values))
}

fn walk_one(step: &Step, values: &[Json]) -> anyhow::Result<Vec<Json>> {
    let values_in = |value: &Json| match value {
        Json::Array(items) => items.clone(),
        Json::Object(map) => map.values().cloned().collect(),
        _ => Vec::new(),
    };
    Ok(match step {
        Step::Field(name) => values.iter().filter_map(|value| value.get(name)).cloned().collect(),
        Step::Wildcard => values.iter().flat_map(values_in).collect(),
        Step::Recursive => {
            let mut found = Vec::new();
            descend(values, &mut found);
            found
        }
        Step::Literal(literal) => vec![literal.clone(); if literal.is_string() { 1 } else { values.len() }],
        Step::Union(each) => {
            let found = each.iter().map(|steps| walk(steps, values.to_vec())).collect::<anyhow::Result<Vec<_>>>()?;
            found.concat()
        }
        Step::Slice { from, to, step, one } => {
            let mut found = Vec::new();
            for value in values.iter().filter(|value| !value.is_null()) {
                let items = value.as_array().context("the value is not array or slice")?;
                found.extend(
                    slice(items, *from, if *one { from.map(|from| from + 1) } else { *to }, *one)?
                        .iter()
                        .step_by(match step {
                            None => 1,
                            Some(step) => {
                                usize::try_from(*step).ok().filter(|step| *step > 0).context("step must be > 0")?
                            }
                        })
                        .cloned(),
                );
            }
            found
        }
        Step::Filter { left, operator, right } => {
            let mut found = Vec::new();
            for value in values {
                let items = value.as_array().context("the value is not array or slice and cannot be filtered")?;
                for item in items {
                    if holds(item, left, operator, right)? {
                        found.push(item.clone());
                    }
                }
            }
            found
        }
    })
}

fn descend(values: &[Json], found: &mut Vec<Json>) {
    for value in values {
        let inside: Vec<Json> = match value {
            Json::Array(items) => items.clone(),
            Json::Object(map) => map.values().cloned().collect(),
            _ => continue,
        };
        if !inside.is_empty() {
            found.push(value.clone());
            descend(&inside, found);
        }
    }
}

/// Part of a list; negative numbers count from its end.
fn slice(items: &[Json], from: Option<i64>, to: Option<i64>, one: bool) -> anyhow::Result<&[Json]> {
    let length = i64::try_from(items.len())?;
    let from = from.unwrap_or(0);
    let from = if from < 0 { from + length } else { from };
    let to = to.unwrap_or(length);
    // The item behind `-1` is the end of the list.
    let to = if to < 0 || to == 0 && one { to + length } else { to };
    if from == to {
        return Ok(&[]);
    }
    ensure!((0..length).contains(&from), "array index out of bounds: index {from}, length {length}");
    ensure!((0..=length).contains(&to), "array index out of bounds: index {}, length {length}", to - 1);
    ensure!(from <= to, "starting index {from} is greater than ending index {to}");
    Ok(&items[usize::try_from(from)?..usize::try_from(to)?])
}

fn holds(item: &Json, left: &[Step], operator: &str, right: &[Step]) -> anyhow::Result<bool> {
    let found = walk(left, vec![item.clone()])?;
    if operator.is_empty() {
        return Ok(!found.is_empty());
    }
    let other = walk(right, vec![item.clone()])?;
    let (left, right) = match (found.as_slice(), other.as_slice()) {
        ([], _) | (_, []) => return Ok(false),
        ([left], [right]) => (left, right),
        _ => bail!("can only compare one element at a time"),
    };
    let order = match (left, right) {
        (Json::String(left), Json::String(right)) => left.cmp(right),
        (Json::Bool(left), Json::Bool(right)) if matches!(operator, "==" | "!=") => left.cmp(right),
        (Json::Number(left), Json::Number(right)) if left.is_f64() == right.is_f64() => {
            let pair = left.as_f64().zip(right.as_f64());
            pair.and_then(|(left, right)| left.partial_cmp(&right)).context("incompatible types for comparison")?
        }
        _ => bail!("incompatible types for comparison"),
    };
    Ok(match operator {
        "==" => order == Ordering::Equal,
        "!=" => order != Ordering::Equal,
        "<" => order == Ordering::Less,
        "<=" => order != Ordering::Greater,
        ">" => order == Ordering::Greater,
        _ => order != Ordering::Less,
    })
}

#[cfg(test)]
mod tests {
    use super::Template;
    use serde_json::json;

    #[test]
    fn templates_in_kubectls_dialect() {
        let value = json!({"kind": "List", "items": [
            {"metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "x"}}, "spec": {"ports": [80, 90], "on": true}},
            {"metadata": {"name": "b"}, "spec": {"ports": [100], "weight": 1.5}},
        ]});
        for (template, wanted) in [
            ("{.kind}", "List"),
            ("kind: {$.kind}, {@.kind}", "kind: List, List"),
            ("{.items[*].metadata.name}", "a b"),
            ("{.items[0]['metadata.name', 'spec.ports']}", "a [80,90]"),
            ("{.items[-1:].metadata.name}", "b"),
            ("{.items[-1].metadata.name}", "b"),
            ("{.items[0].spec.ports[0:2:2]}", "80"),
            ("{.items[0].metadata.labels.app\\.kubernetes\\.io/name}", "x"),
            ("{.items[0].metadata.labels['app\\.kubernetes\\.io/name']}", "x"),
            ("{..name}", "a b"),
            ("{.items[?(@.metadata.name==\"b\")].spec.ports[0]}", "100"),
            ("{.items[?(@.spec.weight)].metadata.name}", "b"),
            ("{.items[?(@.spec.on==true)].metadata.name}", "a"),
            (
                "{range .items[*]}{.metadata.name}{\"\\t\"}{range .spec.ports[*]}{@};{end}{'\\n'}{end}done",
                "a\t80;90;\nb\t100;\ndone",
            ),
            ("{.items[*].spec}", "{\"on\":true,\"ports\":[80,90]} {\"ports\":[100],\"weight\":1.5}"),
            ("{.nothing.there}", ""),
            (".kind", ".kind"),
        ] {
            let template = Template::parse(template).expect(template);
            assert_eq!(template.render(&value).expect("it can be rendered"), wanted, "{template:?}");
        }
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for (template, why) in [
            ("{.kind", "unclosed action"),
            ("{.items[0}", "unterminated array"),
            ("{.items[a]}", "invalid array index a"),
            ("{\"x}", "unterminated quoted string"),
            ("{end}", "not in range, nothing to end"),
            ("{name}", "unrecognized identifier name"),
            ("{.items[?(@.a=~\"x\")]}", "unrecognized filter operator"),
        ] {
            let error = format!("{:#}", Template::parse(template).expect_err(template));
            assert!(error.starts_with("error parsing jsonpath ") && error.contains(why), "{template}: {error}");
        }
        let error = Template::parse("{[3]}").and_then(|template| template.render(&json!([1])));
        assert!(format!("{:#}", error.expect_err("there is one item")).contains("index 3, length 1"));
    }
}
