//! What a stage says when something is wrong: values, collected by the run and rendered at its edge.

pub mod codes;

mod place;
pub use place::Place;

/// How bad a finding is. Only errors stop `render`, `apply`, `plan` and the Argo CD plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Note,
    /// Probably not what the author meant; output is right nevertheless.
    Warning,
    /// The documents cannot be rendered.
    Error,
}

impl Severity {
    /// `note`, `warning` or `error`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A kind of finding: `MESH` and three digits that never change their meaning, and the page that `check --explain` prints.
#[derive(Debug)]
pub struct Code {
    /// `MESH012`.
    pub id: &'static str,
    /// How bad it is wherever it occurs.
    pub severity: Severity,
    /// A few lower-case words that name the problem.
    pub title: &'static str,
    /// Why it matters and what to write instead.
    pub page: &'static str,
}

impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}
impl Eq for Code {}

/// One finding: what is wrong, where, and what to write instead.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// What kind of finding this is.
    pub code: &'static Code,
    /// One lower-case phrase about this very case.
    pub message: String,
    /// Where the author has to look first; absent for problems that no document caused.
    pub place: Option<Place>,
    /// Further places that take part, each with the role it plays.
    pub related: Vec<(Place, String)>,
    /// What to write instead.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A finding at a place.
    pub fn new(code: &'static Code, place: impl Into<Option<Place>>, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), place: place.into(), related: Vec::new(), help: None }
    }

    /// Adds what to write instead.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Adds a second place and the role it plays.
    #[must_use]
    pub fn also(mut self, place: Place, role: impl Into<String>) -> Self {
        self.related.push((place, role.into()));
        self
    }

    /// Whether this finding stops a rendering.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.code.severity == Severity::Error
    }
}

/// How many errors, and how many other findings, are kept. Nobody reads more, and a file made to be wrong everywhere must
/// not exhaust memory.
const MOST: usize = 10_000;

/// The findings of a run.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
    others: usize,
}

impl Diagnostics {
    /// Adds a finding; beyond ten thousand of its sort it is only counted.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let count = if diagnostic.is_error() { &mut self.errors } else { &mut self.others };
        *count += 1;
        if *count <= MOST {
            self.list.push(diagnostic);
        }
    }

    /// Adds all findings of another run.
    pub fn extend(&mut self, other: Self) {
        let (errors, others) = (self.errors + other.errors, self.others + other.others);
        for diagnostic in other.list {
            self.push(diagnostic);
        }
        (self.errors, self.others) = (errors, others);
    }

    /// How many findings stop a rendering.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Whether anything here stops a rendering.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The findings in the order of the files, each once; those without a place come last.
    #[must_use]
    pub fn sorted(mut self) -> Vec<Diagnostic> {
        self.list.sort_by(|a, b| {
            (a.place.is_none(), a.place, a.code.id, &a.message).cmp(&(
                b.place.is_none(),
                b.place,
                b.code.id,
                &b.message,
            ))
        });
        self.list.dedup_by(|a, b| a.place == b.place && a.code == b.code && a.message == b.message);
        self.list
    }

    /// The findings as they were found.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }
}

/// The candidate that the author most likely meant by `word`, if one is near enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// ` (did you mean "x"?)`, or nothing.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|candidate| format!("did you mean \"{candidate}\"?"))
}

/// Edits (insert, remove, replace, swap of neighbours) that turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(80).collect(), b.chars().take(80).collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}
