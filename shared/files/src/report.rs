//! Findings as text. The first line alone says what is wrong and where, because it is all that some people get to see;
//! contents of files are never shown beyond the words a message quotes.

use mesh::diagnostic::{Diagnostic, Severity};
use mesh::source::{File, Place};
use std::fmt::Write;

/// `file:line:column`.
#[must_use]
pub fn place(files: &[File], place: Place) -> String {
    let path = files.get(place.file as usize).map_or("<unknown>", |file| file.path.as_str());
    format!("{path}:{}:{}", place.line, place.column)
}

/// One finding: what and where on the first line, then what else takes part and what to write.
#[must_use]
pub fn finding(files: &[File], diagnostic: &Diagnostic) -> String {
    let at = diagnostic.place.map(|at| format!("{}: ", place(files, at))).unwrap_or_default();
    let mut text =
        format!("{}: {at}{} [{}]\n", diagnostic.code.severity.as_str(), diagnostic.message, diagnostic.code.id);
    for (at, role) in &diagnostic.related {
        let _ = writeln!(text, "  {}: {role}", place(files, *at));
    }
    if let Some(help) = &diagnostic.help {
        let _ = writeln!(text, "  help: {help}");
    }
    text
}

/// Findings at or above a severity, the worst first, at most `most` of them.
#[must_use]
pub fn findings(files: &[File], diagnostics: &[Diagnostic], least: Severity, most: usize) -> String {
    let mut wanted: Vec<&Diagnostic> =
        diagnostics.iter().filter(|diagnostic| diagnostic.code.severity >= least).collect();
    wanted.sort_by_key(|diagnostic| std::cmp::Reverse(diagnostic.code.severity));
    let mut text: String = wanted.iter().take(most).map(|diagnostic| finding(files, diagnostic)).collect();
    if wanted.len() > most {
        let _ = writeln!(text, "… and {} more", wanted.len() - most);
    }
    text
}

/// `2 errors, 1 warning`; what there is none of is left out.
#[must_use]
pub fn summary(diagnostics: &[Diagnostic]) -> String {
    let parts: Vec<String> = [Severity::Error, Severity::Warning, Severity::Note]
        .into_iter()
        .filter_map(|severity| {
            let count = diagnostics.iter().filter(|diagnostic| diagnostic.code.severity == severity).count();
            let plural = if count == 1 { "" } else { "s" };
            (count > 0).then(|| format!("{count} {}{plural}", severity.as_str()))
        })
        .collect();
    if parts.is_empty() { "no findings".to_owned() } else { parts.join(", ") }
}
