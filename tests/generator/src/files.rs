//! Documents as files: how they are spread over files has no meaning, so each seed spreads them in another way.

use crate::document::Text;
use crate::random::Random;
use crate::world::file;
use mesh::source::File;
use serde_json::Value;

/// The documents, spread over files and folders in an order and form that depend on the seed alone.
#[must_use]
pub fn spread(documents: &[Value], seed: u64) -> Vec<File> {
    let mut random = Random::new(seed);
    let mut documents: Vec<&Value> = documents.iter().collect();
    random.shuffle(&mut documents);
    let mut files = Vec::new();
    while !documents.is_empty() {
        let count = random.between(1, 5).min(documents.len());
        let taken: Vec<&Value> = documents.drain(..count).collect();
        let folder = *random.pick(&["", "inventory/", "teams/bank/", "b/"]);
        let index = files.len();
        files.push(
            if let [document] = taken.as_slice()
                && random.percent(30)
            {
                file(&format!("{folder}{index}.json"), &format!("{document:#}"))
            } else {
                let extension = *random.pick(&["yaml", "yml"]);
                file(&format!("{folder}{index}.{extension}"), &stream(taken))
            },
        );
    }
    files
}

/// The documents as one YAML stream.
#[must_use]
pub fn stream<'a>(documents: impl IntoIterator<Item = &'a Value>) -> String {
    documents.into_iter().map(|document| Text::of(document).yaml).collect::<Vec<_>>().join("---\n")
}
