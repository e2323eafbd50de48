//! `docs/reference/commands/PROGRAM.md` is what the program's own help says. UPDATE_GOLDEN=1 writes it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "../cli/mesh/expected.rs"]
mod expected;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../cli/support.rs"]
mod support;

const PROGRAM: &str = env!("CARGO_PKG_NAME");

#[test]
fn the_reference_of_commands_is_what_the_help_says() {
    let program = assert_cmd::cargo::cargo_bin(PROGRAM);
    let mut text = format!("# {PROGRAM}\n\nWhat `--help` says; a test keeps this page true.\n");
    page(program.to_str().unwrap(), &mut Vec::new(), &mut text);
    let file = support::tests().join(format!("../docs/reference/commands/{PROGRAM}.md"));
    let mut differences = Vec::new();
    expected::expect(&file, &text, &mut differences);
    expected::assert_none(&differences);
}

/// The help of a command, and of every command below it.
fn page(program: &str, words: &mut Vec<String>, text: &mut String) {
    let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
    arguments.push("--help");
    let output = support::run(program, &support::tests(), &arguments);
    assert_eq!(support::code(&output), 0, "{arguments:?}");
    let help = support::text(&output.stdout);
    if !words.is_empty() {
        text.push_str(&format!("\n## {}\n", words.join(" ")));
    }
    text.push_str(&format!("\n```text\n{}\n```\n", help.trim_end()));
    for verb in commands(&help) {
        words.push(verb);
        page(program, words, text);
        words.pop();
    }
}

/// The names below "Commands:".
fn commands(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        // Names stand at the second column; descriptions that go on in the next line stand further right.
        .filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}
