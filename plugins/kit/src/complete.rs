//! Completion, as kubectl asks plugins for it: `kubectl_complete-mesh WORDS… PART` prints one candidate a line, a tab and
//! what it is, and a last line with a number that says how the shell goes on. Names come from the documents alone: a
//! shell must never wait for a cluster.

use crate::input::Input;
use clap::{Arg, Command};
use mesh::World;
use mesh::diagnostic::codes;
use mesh::intent::Kind;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

/// The hidden verb by which a program is asked.
pub const VERB: &str = "__complete";

/// The words of the question, if the command line is one.
#[must_use]
pub fn asked(arguments: &[OsString]) -> Option<Vec<String>> {
    let (verb, words) = arguments.split_first()?;
    (verb == VERB).then(|| words.iter().map(|word| word.to_string_lossy().into_owned()).collect())
}

/// Candidates without files beside them.
const NO_FILES: u8 = 4;
/// The same, and the word goes on: no space behind it.
const GOES_ON: u8 = 6;
/// The shell's own completion of files.
const FILES: u8 = 0;

/// The answer for the words behind the program's name; the last one is the part that is being typed.
#[must_use]
pub fn answer(mut command: Command, words: &[String]) -> String {
    command.build();
    let (part, words) = words.split_last().map_or(("", &[][..]), |(part, words)| (part.as_str(), words));
    let line = Line::read(&command, words);
    let (candidates, directive) = line.candidates(part);
    let fitting = candidates.iter().filter(|(word, _)| word.starts_with(part));
    let mut text: String = fitting
        .map(|(word, about)| if about.is_empty() { format!("{word}\n") } else { format!("{word}\t{about}\n") })
        .collect();
    text.push_str(&format!(":{directive}\n"));
    text
}

/// A word and what it is.
type Candidate = (String, String);

/// What is known from the words before the one that is being typed.
struct Line<'a> {
    /// The program that is asked.
    program: &'a str,
    /// The verb that has been reached.
    command: &'a Command,
    /// The flag that waits for its value.
    waiting: Option<&'a Arg>,
    /// How many positional values there are already.
    positional: usize,
    files: Vec<PathBuf>,
}

impl<'a> Line<'a> {
    fn read(command: &'a Command, words: &[String]) -> Self {
        let mut line = Self { program: command.get_name(), command, waiting: None, positional: 0, files: Vec::new() };
        for word in words {
            if let Some(flag) = line.waiting.take() {
                line.value(flag, word);
            } else if word.starts_with('-') && word.len() > 1 {
                let (name, value) =
                    word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
                let flag = line.flag(name).filter(|flag| flag.get_action().takes_values());
                match (flag, value) {
                    (Some(flag), Some(value)) => line.value(flag, value),
                    (flag, _) => line.waiting = flag,
                }
            } else if let Some(verb) = line.command.find_subcommand(word) {
                line.command = verb;
            } else {
                line.positional += 1;
            }
        }
        line
    }

    fn value(&mut self, flag: &Arg, value: &str) {
        if flag.get_long() == Some("filename") {
            self.files.extend(value.split(',').map(PathBuf::from));
        }
    }

    fn flag(&self, name: &str) -> Option<&'a Arg> {
        self.command.get_arguments().find(|flag| match name.strip_prefix("--") {
            Some(long) => flag.get_long() == Some(long),
            None => {
                flag.get_short().is_some_and(|short| name.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4])))
            }
        })
    }

    fn candidates(&self, part: &str) -> (Vec<Candidate>, u8) {
        if let Some(flag) = self.waiting {
            return self.values(flag, part);
        }
        if part.starts_with('-') {
            if let Some((name, value)) = part.split_once('=')
                && let Some(flag) = self.flag(name)
            {
                let (values, directive) = self.values(flag, value);
                return (
                    values.into_iter().map(|(word, about)| (format!("{name}={word}"), about)).collect(),
                    directive,
                );
            }
            let flags = self.command.get_arguments().filter(|flag| !flag.is_hide_set());
            let flags = flags.filter_map(|flag| Some((format!("--{}", flag.get_long()?), about(flag.get_help()))));
            return (flags.collect(), NO_FILES);
        }
        let verbs = self.command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let verbs: Vec<Candidate> = verbs.map(|verb| (verb.get_name().to_owned(), about(verb.get_about()))).collect();
        if !verbs.is_empty() {
            return (verbs, NO_FILES);
        }
        let mut places = self.command.get_positionals();
        match places.nth(self.positional).or_else(|| self.command.get_positionals().last()) {
            Some(place) => self.values(place, part),
            None => (Vec::new(), NO_FILES),
        }
    }

    /// The values of a flag or place: fixed words, or names from the documents.
    fn values(&self, flag: &Arg, part: &str) -> (Vec<Candidate>, u8) {
        let fixed = flag.get_possible_values();
        if !fixed.is_empty() {
            let fixed = fixed.iter().filter(|value| !value.is_hide_set());
            return (fixed.map(|value| (value.get_name().to_owned(), about(value.get_help()))).collect(), NO_FILES);
        }
        let placeholder = flag.get_value_names().and_then(<[_]>::first).map_or("", |name| name.as_str());
        let names = match (flag.get_long(), placeholder) {
            (_, "PATH" | "FILE" | "DIR") => return (Vec::new(), FILES),
            (_, "CODE") => {
                return (codes::ALL.iter().map(|code| (code.id.to_owned(), code.title.to_owned())).collect(), NO_FILES);
            }
            (Some("cluster" | "down" | "in"), _) | (_, "CLUSTER" | "CLUSTERS") => clusters(&self.world()),
            (Some("namespace"), _) => namespaces(&self.world()),
            (_, "SERVICE") => services(&self.world()),
            (_, "CALLER") => callers(&self.world(), part),
            (_, "POLICY") => policies(&self.world(), self.program),
            _ => return (Vec::new(), NO_FILES),
        };
        // In `--cluster a,b` only the last name is being typed.
        match part.rsplit_once(',').filter(|_| flag.get_value_delimiter() == Some(',')) {
            Some((before, _)) => {
                (names.into_iter().map(|(name, about)| (format!("{before},{name}"), about)).collect(), GOES_ON)
            }
            None => (names, NO_FILES),
        }
    }

    fn world(&self) -> World {
        Input { filename: self.files.clone(), recursive: false }.world()
    }
}

/// The first line of a help text.
fn about(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).and_then(|text| text.lines().next().map(ToOwned::to_owned)).unwrap_or_default()
}

fn clusters(world: &World) -> Vec<Candidate> {
    let clusters = world.effective.fleet.clusters.iter();
    clusters.map(|cluster| (cluster.name.to_string(), format!("{}, {}", cluster.region, cluster.network))).collect()
}

fn namespaces(world: &World) -> Vec<Candidate> {
    let names: BTreeSet<String> =
        world.effective.fleet.services.iter().map(|service| service.namespace.to_string()).collect();
    names.into_iter().map(|name| (name, String::new())).collect()
}

fn services(world: &World) -> Vec<Candidate> {
    let services = world.effective.fleet.services.iter();
    services
        .map(|service| {
            let places = match service.runs.len() {
                1 => "in 1 cluster".to_owned(),
                count => format!("in {count} clusters"),
            };
            (format!("{}/{}", service.namespace, service.name), places)
        })
        .collect()
}

/// `NAMESPACE/NAME`, and where that is typed already, `NAMESPACE/NAME@CLUSTER`.
fn callers(world: &World, part: &str) -> Vec<Candidate> {
    let fleet = &world.effective.fleet;
    let Some((name, _)) = part.split_once('@') else { return services(world) };
    let caller = fleet.services.iter().find(|service| format!("{}/{}", service.namespace, service.name) == name);
    let places = caller.into_iter().flat_map(|service| service.runs.iter());
    places.map(|id| (format!("{name}@{}", fleet.cluster(id).name), String::new())).collect()
}

/// The policies that a program is for.
fn policies(world: &World, program: &str) -> Vec<Candidate> {
    let documents = world.effective.fleet.documents.iter();
    documents
        .filter(|document| match document.kind {
            Kind::TrafficPolicy => !program.ends_with("authz"),
            Kind::AccessPolicy => !program.ends_with("failover"),
            Kind::Cluster | Kind::MeshService | Kind::ServiceLocations | Kind::Guardrail => false,
        })
        .map(|document| {
            let kind = document.kind.as_str().to_owned();
            match &document.namespace {
                Some(namespace) => (format!("{namespace}/{}", document.name), kind),
                None => (document.name.to_string(), kind),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::answer;
    use crate::input::Input;
    use clap::{Arg, ArgAction, Args, Command};

    fn ask(words: &[&str]) -> String {
        let fleet = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/example/fleet");
        let cluster = Arg::new("cluster").long("cluster").value_delimiter(',').action(ArgAction::Append);
        let to = Arg::new("to").long("to").value_name("SERVICE");
        let output = Arg::new("output").long("output").value_parser(["json", "yaml"]).help("The form");
        let verb = Command::new("render").about("Print manifests").args([cluster, to, output]);
        let command = Input::augment_args(Command::new("x")).subcommand(verb).subcommand(Command::new("check"));
        let words: Vec<String> = words.iter().map(|word| word.replace("FLEET", fleet)).collect();
        answer(command, &words)
    }

    #[test]
    fn verbs_flags_values_and_names() {
        for (words, wanted) in [
            (&["re"][..], "render\tPrint manifests\n:4\n"),
            (&["render", "--ou"], "--output\tThe form\n:4\n"),
            (&["render", "--output", "j"], "json\n:4\n"),
            (&["render", "--output=y"], "--output=yaml\n:4\n"),
            (&["render", "-f", ""], ":0\n"),
            (&["-f", "FLEET", "render", "--cluster", "ek"], "eks\tus-east-1, aws\n:4\n"),
            (&["render", "-f", "FLEET", "--cluster", "eks,wi"], "eks,wine\tus-west-1, dc-west\n:6\n"),
            (&["render", "-f", "FLEET", "--to", "bank/u"], "bank/user\tin 3 clusters\n:4\n"),
            (&["render", "-f", "/nowhere", "--to", "bank/u"], ":4\n"),
        ] {
            assert_eq!(ask(words), wanted, "{words:?}");
        }
    }
}
