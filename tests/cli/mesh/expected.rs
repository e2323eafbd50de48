//! Expectations that are files.

use std::path::Path;

/// Compares a file with what it should hold, and collects what differs. With UPDATE_GOLDEN=1 it is written instead.
pub fn expect(path: &Path, actual: &str, differences: &mut Vec<String>) {
    let expected = std::fs::read_to_string(path).ok();
    if expected.as_deref() == Some(actual) {
        return;
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, actual).expect("expectations can be written");
        return;
    }
    let expected = expected.unwrap_or_else(|| "(no such file)".to_owned());
    let line = expected.lines().zip(actual.lines()).take_while(|(a, b)| a == b).count();
    differences.push(format!(
        "{} differs from line {}:\n  expected: {}\n  actual:   {}",
        path.display(),
        line + 1,
        expected.lines().nth(line).unwrap_or("(end)"),
        actual.lines().nth(line).unwrap_or("(end)"),
    ));
}

/// Fails with all differences at once, and says how to accept them.
pub fn assert_none(differences: &[String]) {
    assert!(
        differences.is_empty(),
        "{}\n\n{} differences; UPDATE_GOLDEN=1 writes what came out: read it before accepting it",
        differences.join("\n"),
        differences.len()
    );
}
