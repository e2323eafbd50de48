//! How rendered objects are printed.

use mesh::manifest::{Object, to_json, to_yaml_stream};

/// A form in which objects are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ObjectFormat {
    /// A stream of YAML documents.
    Yaml,
    /// JSON: one object, or a List of several.
    Json,
    /// One name per line.
    Name,
}

/// The objects in this form.
#[must_use]
pub fn objects(objects: &[Object], format: ObjectFormat) -> String {
    match format {
        ObjectFormat::Yaml => to_yaml_stream(objects),
        ObjectFormat::Json => to_json(objects),
        ObjectFormat::Name => objects.iter().map(|object| object.qualified_name() + "\n").collect(),
    }
}
