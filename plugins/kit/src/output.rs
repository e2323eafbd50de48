//! `-o`: the forms in which commands print, by kubectl's words.

use crate::jsonpath::Template;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use mesh::manifest::{Object, to_json, to_yaml, to_yaml_stream};
use serde::Serialize;
use serde_json::Value as Json;
use std::ffi::OsStr;

/// A form of output.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// For people: a table, or text.
    Table,
    /// A table with more columns.
    Wide,
    /// YAML.
    Yaml,
    /// JSON.
    Json,
    /// One name a line.
    Name,
    /// What a template makes of the JSON.
    JsonPath(Template),
    /// A form of this command alone.
    Own(&'static str),
}

impl Form {
    /// The value in this form, if it is one for programs.
    ///
    /// # Errors
    ///
    /// If a template does not fit the value.
    pub fn of<T: Serialize>(&self, value: &T) -> anyhow::Result<Option<String>> {
        Ok(match self {
            Self::Yaml => Some(to_yaml(value)),
            Self::Json => Some(format!("{}\n", serde_json::to_string_pretty(value)?)),
            Self::JsonPath(template) => Some(template.render(&serde_json::to_value(value)?)?),
            Self::Table | Self::Wide | Self::Name | Self::Own(_) => None,
        })
    }
}

/// The forms that a command knows; the first is for people where there is such a form.
#[derive(Clone, Copy, Debug)]
pub struct Forms(&'static [&'static str]);

/// Forms of a list of things with names.
pub const LIST: Forms = Forms(&["table", "wide", "yaml", "json", "name", JSONPATH]);
/// Forms of rows that have no names.
pub const ROWS: Forms = Forms(&["table", "yaml", "json", JSONPATH]);
/// Forms of an answer.
pub const ANSWER: Forms = Forms(&["text", "yaml", "json", JSONPATH]);
/// Forms of findings: `sarif` for code scanning (SARIF 2.1.0), `github` for annotations of its workflows.
pub const FINDINGS: Forms = Forms(&["table", "yaml", "json", "sarif", "github", JSONPATH]);
/// Forms of a change: `diff` shows each line of each object.
pub const CHANGE: Forms = Forms(&["table", "wide", "diff", "yaml", "json", JSONPATH]);
/// Forms of a drawing.
pub const DRAWING: Forms = Forms(&["mermaid", "dot", "yaml", "json", JSONPATH]);
/// Forms of what only programs read.
pub const DATA: Forms = Forms(&["json", "yaml", JSONPATH]);
/// Forms of objects.
pub const OBJECTS: Forms = Forms(&["yaml", "json", "name", JSONPATH]);

const JSONPATH: &str = "jsonpath=";

impl Forms {
    fn form(self, word: &str) -> Result<Form, String> {
        let known = self.0.iter().find(|form| **form == word || **form == JSONPATH && word.starts_with(JSONPATH));
        match known.copied() {
            Some("table" | "text") => Ok(Form::Table),
            Some("wide") => Ok(Form::Wide),
            Some("yaml") => Ok(Form::Yaml),
            Some("json") => Ok(Form::Json),
            Some("name") => Ok(Form::Name),
            Some(JSONPATH) => Template::parse(word.strip_prefix(JSONPATH).unwrap_or_default())
                .map(Form::JsonPath)
                .map_err(|error| format!("{error:#}")),
            Some(own) => Ok(Form::Own(own)),
            None => Err(format!(
                "unable to match a printer suitable for the output format \"{word}\", allowed formats are: {}",
                self.0.join(",")
            )),
        }
    }
}

impl TypedValueParser for Forms {
    type Value = Form;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Self::Value, clap::Error> {
        self.form(&value.to_string_lossy())
            .map_err(|why| clap::Error::raw(ErrorKind::InvalidValue, format!("{why}\n")).with_cmd(command))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

/// Objects in a form for programs.
///
/// # Errors
///
/// If a template does not fit the objects.
pub fn objects(objects: &[Object], form: &Form) -> anyhow::Result<String> {
    Ok(match form {
        Form::Json => to_json(objects),
        Form::Name => objects.iter().map(|object| object.qualified_name() + "\n").collect(),
        Form::JsonPath(template) => template.render(&serde_json::from_str::<Json>(&to_json(objects))?)?,
        Form::Yaml | Form::Table | Form::Wide | Form::Own(_) => to_yaml_stream(objects),
    })
}

#[cfg(test)]
mod tests {
    use super::{Form, LIST, ROWS};
    use serde_json::json;

    #[test]
    fn words_are_kubectls() {
        assert_eq!(LIST.form("wide"), Ok(Form::Wide));
        let form = ROWS.form("jsonpath={.a}").expect("a template");
        assert_eq!(form.of(&json!({"a": 1})).expect("it fits"), Some("1".to_owned()));
        assert!(ROWS.form("jsonpath={.a").expect_err("half a template").contains("unclosed action"));
        let refused = ROWS.form("name").expect_err("rows have no names");
        assert!(refused.ends_with("allowed formats are: table,yaml,json,jsonpath="), "{refused}");
    }
}
