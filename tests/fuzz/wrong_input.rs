//! Wrong input: whatever stands in the files, the pipeline ends, says what is wrong where it stands, and never half
//! succeeds. Documents of all cases and worlds are damaged at random, the same way in every run; `MESH_FUZZ_RUNS` does
//! more, `MESH_FUZZ_SEED` begins elsewhere.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod judge;

use judge::judge;
use mesh::source::File;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How many damaged worlds a run of the tests reads.
const RUNS: u64 = 4_000;

/// SplitMix64: the same numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap()
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// What people and machines put into YAML by mistake, and what readers stumble over.
const PIECES: [&str; 63] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ": ",
    "- ",
    "? ",
    ", ",
    "#",
    " #",
    "&a ",
    "*a",
    "!!str ",
    "!x ",
    "<<: *a",
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    "\t",
    "\n",
    "\r\n",
    "\r",
    " ",
    "\"",
    "'",
    "|",
    ">-",
    "\\",
    "\u{0}",
    "\u{FEFF}",
    "\u{85}",
    "\u{2028}",
    "\u{1F600}",
    "é",
    "\u{D7FF}",
    "no",
    "on",
    "~",
    "null",
    "true",
    "0x1F",
    "1_000",
    "12:30",
    "2024-01-02",
    "1e400",
    "-1",
    "0",
    "65536",
    "18446744073709551616",
    ".inf",
    "''",
    "[]",
    "{}",
    "all",
    "local",
    "same",
    "[all]",
    "[{}]",
    "*",
    "${A}",
    "{{ .Values.a }}",
    "\u{7F}",
];

/// The worlds that are damaged: every fleet of the tests.
fn worlds() -> Vec<Vec<File>> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("tests");
    let mut folders: Vec<PathBuf> = ["golden", "cases"]
        .iter()
        .flat_map(|kind| std::fs::read_dir(tests.join(kind)).unwrap())
        .map(|entry| entry.unwrap().path().join("fleet"))
        .filter(|fleet| fleet.is_dir())
        .collect();
    folders.sort();
    assert!(folders.len() > 100);
    folders.iter().map(|folder| files(folder)).collect()
}

fn files(folder: &Path) -> Vec<File> {
    let mut paths = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if let Ok(bytes) = std::fs::read(&path) {
            let relative = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
            files.push(File { path: relative.clone(), relative, bytes, explicit: false });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn file(path: &str, bytes: impl Into<Vec<u8>>) -> File {
    File { path: path.to_owned(), relative: path.to_owned(), bytes: bytes.into(), explicit: true }
}

/// Damages the bytes of one file once.
fn damage(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let lines: Vec<(usize, usize)> = {
        let mut start = 0;
        let line = |line: &[u8]| {
            let range = (start, start + line.len());
            start = range.1;
            range
        };
        bytes.split_inclusive(|byte| *byte == b'\n').map(line).collect()
    };
    let (from, to) = if lines.is_empty() { (0, 0) } else { *random.of(&lines) };
    match random.below(12) {
        0 => bytes.truncate(at),
        1 if !bytes.is_empty() => {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        2 => drop(bytes.drain(at..(at + random.below(20)).min(bytes.len()))),
        3 => drop(bytes.drain(from..to)),
        4 => drop(bytes.splice(to..to, bytes[from..to].to_vec())),
        5 => {
            let spaces = " ".repeat(1 + random.below(3));
            drop(bytes.splice(from..from, spaces.bytes()));
        }
        6 if bytes.get(from) == Some(&b' ') => drop(bytes.remove(from)),
        7 => {
            // A value becomes something else.
            let line = &bytes[from..to];
            let colon = line.windows(2).position(|pair| pair == b": ").map_or(to, |colon| from + colon + 2);
            let end = to.saturating_sub(1).max(colon);
            drop(bytes.splice(colon..end, random.of::<&str>(&PIECES).bytes()));
        }
        8 => {
            let start = random.below(other.len() + 1);
            let end = (start + random.below(200)).min(other.len());
            drop(bytes.splice(at..at, other[start..end].iter().copied()));
        }
        9 => {
            let (second_from, second_to) = if lines.is_empty() { (0, 0) } else { *random.of(&lines) };
            let second = bytes[second_from..second_to].to_vec();
            drop(bytes.splice(from..to, second));
        }
        _ => drop(bytes.splice(at..at, random.of::<&str>(&PIECES).bytes())),
    }
}

#[test]
fn damaged_documents_are_told_and_never_half_rendered() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (runs, first) = (number("MESH_FUZZ_RUNS").unwrap_or(RUNS), number("MESH_FUZZ_SEED").unwrap_or(0));
    let worlds = worlds();
    for seed in first..first + runs {
        let mut random = Random(seed);
        let mut files = random.of(&worlds).clone();
        for _ in 0..=random.below(3) {
            let donors = random.of(&worlds);
            let donor = if donors.is_empty() { Vec::new() } else { random.of(donors).bytes.clone() };
            let index = random.below(files.len());
            if let Some(file) = files.get_mut(index) {
                damage(&mut file.bytes, &donor, &mut random);
            }
        }
        let shown = files.clone();
        if std::panic::catch_unwind(|| judge(files)).is_err() {
            let mut text = String::new();
            for file in shown {
                let _ =
                    writeln!(text, "== {}\n{}", file.path, file.bytes.escape_ascii().to_string().replace("\\n", "\n"));
            }
            panic!("MESH_FUZZ_SEED={seed}:\n{text}");
        }
    }
}

#[test]
fn any_text_at_all_is_read_to_an_end() {
    let mut random = Random(7);
    for _ in 0..RUNS {
        let mut text = String::new();
        for _ in 0..random.below(60) {
            match random.below(4) {
                0 => text.push(char::from_u32(u32::try_from(random.below(0x11_0000)).unwrap()).unwrap_or('x')),
                1 => text.push(char::from(u8::try_from(32 + random.below(95)).unwrap())),
                _ => text.push_str(random.of::<&str>(&PIECES)),
            }
        }
        judge(vec![file("any.yaml", text)]);
        let bytes: Vec<u8> = (0..random.below(80)).map(|_| random.next().to_le_bytes()[0]).collect();
        judge(vec![file("any.json", bytes)]);
    }
}

#[test]
fn every_prefix_of_a_world_is_refused_or_whole() {
    let files = files(&Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("tests/golden/requests/fleet"));
    let services = files.iter().position(|file| file.path == "services.yaml").unwrap();
    let text = &files[services].bytes;
    for end in (0..text.len()).step_by(7) {
        let mut cut = files.clone();
        cut[services].bytes.truncate(end);
        judge(cut);
    }
}

/// What the coverage-guided fuzzer (tests/fuzz/run) found worth keeping, and whatever it once broke.
#[test]
fn the_fuzzers_corpus_is_told_and_never_half_rendered() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("tests/fuzz/corpus");
    let inputs = files(&corpus);
    assert!(inputs.len() > 50);
    for input in inputs {
        let path = input.path.clone();
        let judged = std::panic::catch_unwind(|| judge(vec![file("fleet.yaml", input.bytes)]));
        assert!(judged.is_ok(), "tests/fuzz/corpus/{path}");
    }
}

/// Time is bounded, however the text is made. Generous, because machines that test are busy.
fn ends_soon(name: &str, files: Vec<File>) {
    let begin = Instant::now();
    judge(files);
    let spent = begin.elapsed();
    assert!(spent < Duration::from_secs(60), "{name} took {spent:?}");
}

const HEAD: &str = "apiVersion: meshintent.dev/v1alpha1\nkind: MeshService\nmetadata: {name: a, namespace: b}\nspec:\n";

#[test]
fn monstrous_text_is_refused_soon() {
    let many = |piece: &str, times: usize| piece.repeat(times);
    let mut aliases = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..40 {
        let _ = writeln!(aliases, "a{level}: &a{level} [{}]", vec![format!("*a{}", level - 1); 9].join(", "));
    }
    let keys: String = (0..20_000).fold(String::new(), |mut text, key| {
        let _ = writeln!(text, "  key-{key}: {key}");
        text
    });
    let labels: String = (0..50_000).fold(String::new(), |mut text, key| {
        let _ = write!(text, "l{key}: v, ");
        text
    });
    for (name, text) in [
        ("an alias bomb", aliases),
        ("20,000 keys", format!("{HEAD}{keys}")),
        ("100,000 times one key", format!("{HEAD}{}", many("  clusters: all\n", 100_000))),
        ("50,000 labels", HEAD.replace("namespace: b", &format!("namespace: b, labels: {{{labels}}}"))),
        ("deep lists", many("[", 50_000)),
        ("deep maps", many("{a: ", 50_000)),
        ("deep lists in lines", many("- ", 50_000)),
        ("deep complex keys", many("? ", 50_000)),
        ("many documents", many("---\n", 60_000)),
        ("many comments", many("# x\n", 50_000)),
        ("many empty lines", many("\n", 200_000)),
        ("a long line", format!("{HEAD}  egress: {}", many("x ", 100_000))),
        ("a long folded text", format!("{HEAD}  egress: >\n{}", many("    x\n", 100_000))),
        ("a long plain text", format!("{HEAD}  egress: x\n{}", many("    x\n", 100_000))),
        ("a long quoted text", format!("{HEAD}  egress: \"{}\"", many("\\u0041\\\n", 100_000))),
        ("surrogates", format!("[\"{}\"]", many("\\uD83D\\uDE00", 100_000))),
        ("many anchors", many("- &a x\n", 100_000)),
        ("many tags", many("- !!str x\n", 100_000)),
        ("many commas", format!("[{}]", many("a,", 100_000))),
        ("many directives", many("%TAG ! tag:x,\n", 100_000)),
        ("too many bytes", many("a: b\n", 4_000_000)),
    ] {
        ends_soon(name, vec![file("monster.yaml", text)]);
    }
}

#[test]
fn thousands_of_mistakes_are_told_soon() {
    let mut text = String::from(
        "apiVersion: meshintent.dev/v1alpha1\nkind: Cluster\nmetadata: {name: east}\nspec: {region: here, network: lan}\n",
    );
    for number in 0..3_000 {
        let _ = write!(
            text,
            "---\napiVersion: meshintent.dev/v1alpha1\nkind: MeshService\nmetadata: {{name: service-{number}, namespace: bank}}\nspec:\n  clusters: [eats]\n  ports: [{{name: http, port: 8080}}]\n  dependsOn: [servise-{number}x]\n"
        );
    }
    ends_soon("3,000 mistakes", vec![file("mistakes.yaml", text)]);
}
