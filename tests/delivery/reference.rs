//! `docs/reference/fields.md` and `codes.md` are what the schema and the codes say. UPDATE_GOLDEN=1 writes them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "../cli/mesh/expected.rs"]
mod expected;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../cli/support.rs"]
mod support;

use mesh::diagnostic::codes;
use mesh::intent::Kind;
use serde_json::Value;

#[test]
fn the_reference_of_codes_is_what_the_programs_know() {
    let mut text = "# Codes\n\n\
        Every finding has a code that never changes its meaning. `kubectl mesh check --explain CODE` prints the same text.\n"
        .to_owned();
    for code in codes::ALL {
        text.push_str(&format!(
            "\n## {}: {}\n\n{}. {}\n",
            code.id,
            code.title,
            capital(code.severity.as_str()),
            code.page
        ));
    }
    expect("codes.md", &text);
}

#[test]
fn the_reference_of_fields_is_what_the_schema_says() {
    let mut text = "# Fields\n\n\
        All documents have `apiVersion: meshintent.dev/v1alpha1`, `kind`, `metadata` and `spec`. `[]` stands for the items of \
        a list, `NAME` for any key. `kubectl mesh schema` prints the same as a JSON Schema, for editors.\n"
        .to_owned();
    for kind in Kind::ALL {
        let schema = mesh::intent::schema::schema(Some(kind));
        let mut rows = Vec::new();
        for part in ["metadata", "spec"] {
            fields(&schema, &schema["properties"][part], part, &mut rows);
        }
        text.push_str(&format!(
            "\n## {}\n\n{}\n\n| field | type | |\n|---|---|---|\n{}\n",
            kind.as_str(),
            schema["description"].as_str().unwrap(),
            rows.join("\n")
        ));
    }
    expect("fields.md", &text);
}

/// A row for each field below a node of the schema.
fn fields(schema: &Value, node: &Value, path: &str, rows: &mut Vec<String>) {
    for shape in shapes(schema, node) {
        let required: Vec<&str> =
            shape["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, field) in shape["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            let mut kinds: Vec<String> = shapes(schema, field).iter().map(|shape| kind_of(schema, shape)).collect();
            kinds.dedup();
            let description = field["description"].as_str().map(str::to_owned).or_else(|| described(schema, field));
            let description = description.unwrap_or_default().replace('|', "\\|");
            let must = if required.contains(&name.as_str()) { "required. " } else { "" };
            rows.push(format!("| `{path}` | {} | {must}{description} |", kinds.join(" or ")));
            below(schema, field, &path, rows);
        }
    }
}

/// What stands inside a field: the fields of a map, of a list's items, of a map's values.
fn below(schema: &Value, node: &Value, path: &str, rows: &mut Vec<String>) {
    fields(schema, node, path, rows);
    for shape in shapes(schema, node) {
        if shape["items"].is_object() {
            below(schema, &shape["items"], &format!("{path}[]"), rows);
        }
        if shape["additionalProperties"].is_object() {
            below(schema, &shape["additionalProperties"], &format!("{path}.NAME"), rows);
        }
    }
}

/// The alternatives of a node, with references followed.
fn shapes<'a>(schema: &'a Value, node: &'a Value) -> Vec<&'a Value> {
    if let Some(reference) = node["$ref"].as_str() {
        return shapes(schema, schema.pointer(reference.trim_start_matches('#')).unwrap());
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(alternatives) = node[key].as_array() {
            return alternatives.iter().flat_map(|node| shapes(schema, node)).collect();
        }
    }
    vec![node]
}

fn described(schema: &Value, node: &Value) -> Option<String> {
    let target = schema.pointer(node["$ref"].as_str()?.trim_start_matches('#'))?;
    target["description"].as_str().map(str::to_owned)
}

fn kind_of(schema: &Value, shape: &Value) -> String {
    if let Some(constant) = shape.get("const") {
        return format!("`{}`", constant.as_str().map_or_else(|| constant.to_string(), str::to_owned));
    }
    if let Some(words) = shape["enum"].as_array() {
        return words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ");
    }
    match shape["type"].as_str() {
        Some("array") => {
            let mut kinds: Vec<String> =
                shapes(schema, &shape["items"]).into_iter().map(|shape| kind_of(schema, shape)).collect();
            kinds.dedup();
            format!("list of {}", kinds.join(" or "))
        }
        Some("object") => "map".to_owned(),
        Some(other) => other.to_owned(),
        None => "any".to_owned(),
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default()
}

fn expect(name: &str, text: &str) {
    let mut differences = Vec::new();
    expected::expect(&support::tests().join("../docs/reference").join(name), text, &mut differences);
    expected::assert_none(&differences);
}
