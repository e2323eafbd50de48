//! Tables as kubectl prints them: upper-case headers, three spaces between columns, no lines.

use comfy_table::{Cell, ContentArrangement, Table, presets};

/// A table of text.
#[derive(Clone, Debug)]
pub struct Rows {
    headers: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Rows {
    /// A table without rows yet.
    #[must_use]
    pub fn new<S: AsRef<str>>(headers: &[S]) -> Self {
        Self { headers: headers.iter().map(|header| header.as_ref().to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row; an empty cell becomes `<none>`, as in kubectl.
    pub fn push(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().map(|cell| if cell.is_empty() { "<none>".to_owned() } else { cell }).collect());
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as text; widths follow the content, never the terminal, so that output can be cut and compared.
    #[must_use]
    pub fn render(&self, headers: bool) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        if headers {
            table.set_header(self.headers.iter().map(Cell::new));
        }
        for row in &self.rows {
            table.add_row(row.iter().map(Cell::new));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 3));
        }
        let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        if lines.is_empty() { String::new() } else { lines.join("\n") + "\n" }
    }
}
