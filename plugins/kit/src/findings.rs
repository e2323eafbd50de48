//! `check`: findings for people, for programs, for code scanning and for pull requests.

use crate::output::Form;
use mesh::diagnostic::{Code, Diagnostic, Severity, codes};
use mesh::source::{File, Place};
use mesh_files::report;
use serde_json::{Value as Json, json};

/// The findings in this form.
///
/// # Errors
///
/// If a template does not fit them.
pub fn render(files: &[File], found: &[Diagnostic], form: &Form) -> anyhow::Result<String> {
    Ok(match form {
        Form::Own("sarif") => format!("{:#}\n", sarif(files, found)),
        Form::Own(_) => found.iter().map(|diagnostic| annotation(files, diagnostic)).collect(),
        form => form.of(&list(files, found))?.unwrap_or_else(|| {
            report::findings(files, found, Severity::Note, usize::MAX) + &report::summary(found) + "\n"
        }),
    })
}

/// The findings for programs.
#[must_use]
pub fn list(files: &[File], found: &[Diagnostic]) -> Vec<Json> {
    found.iter().map(|diagnostic| finding(files, diagnostic)).collect()
}

fn path(files: &[File], place: Place) -> &str {
    files.get(place.file as usize).map_or("", |file| file.path.as_str())
}

fn finding(files: &[File], diagnostic: &Diagnostic) -> Json {
    let place = |place: Place| json!({"file": path(files, place), "line": place.line, "column": place.column});
    let at = diagnostic.place.map_or_else(|| json!({"file": null, "line": null, "column": null}), place);
    let related: Vec<Json> = diagnostic
        .related
        .iter()
        .map(|(at, role)| {
            let mut at = place(*at);
            at["message"] = json!(role);
            at
        })
        .collect();
    json!({
        "code": diagnostic.code.id,
        "severity": diagnostic.code.severity.as_str(),
        "title": diagnostic.code.title,
        "message": diagnostic.message,
        "file": at["file"],
        "line": at["line"],
        "column": at["column"],
        "help": diagnostic.help,
        "related": related,
    })
}

/// SARIF 2.1.0 (OASIS), sections 3.13 to 3.27.
fn sarif(files: &[File], found: &[Diagnostic]) -> Json {
    let level = |severity: Severity| severity.as_str();
    let location = |place: Place| {
        json!({"physicalLocation": {
            "artifactLocation": {"uri": path(files, place)},
            "region": {"startLine": place.line, "startColumn": place.column},
        }})
    };
    let rules: Vec<Json> = codes::ALL
        .iter()
        .filter(|code| found.iter().any(|diagnostic| diagnostic.code.id == code.id))
        .map(|code| json!({"id": code.id, "shortDescription": {"text": code.title}, "fullDescription": {"text": code.page}, "defaultConfiguration": {"level": level(code.severity)}}))
        .collect();
    let results: Vec<Json> = found
        .iter()
        .map(|diagnostic| {
            let message = diagnostic
                .help
                .as_ref()
                .map_or_else(|| diagnostic.message.clone(), |help| format!("{}; {help}", diagnostic.message));
            json!({
                "ruleId": diagnostic.code.id,
                "level": level(diagnostic.code.severity),
                "message": {"text": message},
                "locations": diagnostic.place.map(location).into_iter().collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": {"name": "kubectl-mesh", "version": env!("CARGO_PKG_VERSION"), "rules": rules}}, "results": results}],
    })
}

/// A workflow command; `%`, line ends, and in properties also `:` and `,` are escaped as the runner expects.
fn annotation(files: &[File], diagnostic: &Diagnostic) -> String {
    let data = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    let kind = match diagnostic.code.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let at = diagnostic.place.map_or_else(String::new, |place| {
        format!("file={},line={},col={},", property(path(files, place)), place.line, place.column)
    });
    let help = diagnostic.help.as_ref().map_or_else(String::new, |help| format!("; {help}"));
    format!(
        "::{kind} {at}title={}::{}\n",
        property(&format!("{} {}", diagnostic.code.id, diagnostic.code.title)),
        data(&format!("{}{help}", diagnostic.message))
    )
}

/// The page of a code.
#[must_use]
pub fn page(code: &Code) -> String {
    format!("{} {}: {}\n\n{}\n", code.id, code.severity.as_str(), code.title, wrap(code.page, 100))
}

/// Breaks a paragraph into lines.
fn wrap(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}
