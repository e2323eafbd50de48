//! What `expose`, `failover` and `authz` have in common: the verbs for documents of one kind and for the objects that
//! come from them. A plugin says which ones, and adds verbs of its own.

use crate::{apply, diff};
use clap::{Arg, ArgMatches, Command, Subcommand};
use mesh::intent;
use mesh::manifest::Kind;
use mesh_kit::input::Input;
use mesh_kit::program;
use mesh_kit::run::Outcome;
use mesh_kit::verb;
use std::process::ExitCode;

/// A plugin for one kind of document.
#[derive(Debug)]
pub struct Plugin {
    /// Its word: `expose` in `kubectl mesh expose`.
    pub word: &'static str,
    /// The kind of its documents.
    pub kind: intent::Kind,
    /// What people call them.
    pub documents: &'static str,
    /// The name of one of the example fleet, for help.
    pub example: &'static str,
    /// The kinds of objects that come from them.
    pub objects: &'static [Kind],
    /// What `get` shows of them.
    pub columns: verb::get::Columns,
    /// Which callers they are about.
    pub takes_part: verb::explain::TakesPart,
}

/// The verbs in common. DOCUMENTS, WORD and EXAMPLE are filled in by [`Plugin::command`].
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List DOCUMENTS
    #[command(after_help = "\
Examples:
  kubectl mesh WORD get -f fleet/
  kubectl mesh WORD get -n bank -o wide -f fleet/
  kubectl mesh WORD get EXAMPLE -o yaml -f fleet/
  kubectl mesh WORD get -o jsonpath='{range .items[*]}{.metadata.name}{\"\\n\"}{end}' -f fleet/")]
    Get(verb::get::Flags),
    /// Say who serves the callers that DOCUMENTS are about, in which order, and why
    #[command(after_help = "\
Examples:
  kubectl mesh WORD explain EXAMPLE -f fleet/
  kubectl mesh WORD explain EXAMPLE --from bank/account@eks -f fleet/ -o json
  kubectl mesh WORD explain --to bank/user -f fleet/")]
    Explain(verb::explain::Flags),
    /// Print the objects of a cluster that come from DOCUMENTS
    #[command(after_help = "\
Examples:
  kubectl mesh WORD render --cluster cluster-1 -f fleet/
  kubectl mesh WORD render --cluster cluster-1 -o name -f fleet/")]
    Render(verb::render::Flags),
    /// Show what apply would change in the clusters, among the objects that come from DOCUMENTS
    #[command(after_help = "\
Exit code: 0 no differences, 1 differences, 2 something could not be compared.

Examples:
  kubectl mesh WORD diff -f fleet/
  kubectl mesh WORD diff --cluster eks -f fleet/")]
    Diff(diff::Flags),
    /// Make the clusters hold the objects that come from DOCUMENTS
    #[command(after_help = "\
Examples:
  kubectl mesh WORD apply --dry-run=server -f fleet/
  kubectl mesh WORD apply --cluster eks -f fleet/")]
    Apply(apply::Flags),
}

impl Plugin {
    /// Reads the command line and runs what it says.
    #[must_use]
    pub fn main(&self, command: Command, body: impl FnOnce(&ArgMatches) -> Outcome) -> ExitCode {
        program::main(self.command(command), self.word, body)
    }

    /// The command with this plugin's words in its help.
    #[must_use]
    pub fn command(&self, mut command: Command) -> Command {
        let fill = |text: &dyn ToString| {
            let text = text.to_string().replace("DOCUMENTS", self.documents);
            text.replace("WORD", self.word).replace("EXAMPLE", self.example)
        };
        let names: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
        for name in names {
            command = command.mut_subcommand(name, |mut verb| {
                // Completion knows by this word what is wanted.
                let word = if self.kind == intent::Kind::MeshService { "SERVICE" } else { "POLICY" };
                let is_name = |arg: &&Arg| arg.get_value_names().is_some_and(|names| names == ["NAME"]);
                let id = verb.get_positionals().find(is_name).map(|arg| arg.get_id().clone());
                if let Some(id) = id {
                    verb = verb.mut_arg(id, |arg| arg.value_name(word));
                }
                if let Some(about) = verb.get_about().map(|about| fill(about)) {
                    verb = verb.about(about);
                }
                if let Some(help) = verb.get_after_help().map(|help| fill(help)) {
                    verb = verb.after_help(help);
                }
                verb
            });
        }
        command
    }

    /// Runs a verb.
    ///
    /// # Errors
    ///
    /// Whatever the verb returns.
    pub fn run(&self, input: &Input, verb: &Verb) -> Outcome {
        match verb {
            Verb::Get(flags) => verb::get::run(input, flags, self.kind, &self.columns),
            Verb::Explain(flags) => verb::explain::run(input, flags, self.kind, self.takes_part),
            Verb::Render(flags) => verb::render::run(input, flags, self.objects),
            Verb::Diff(flags) => diff::diff(input, flags, self.objects),
            Verb::Apply(flags) => apply::apply(input, flags, self.objects),
        }
    }
}
