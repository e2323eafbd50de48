//! `completion`: scripts for shells, and for kubectl itself.

use clap::Command;
use clap_complete::Shell;
use mesh_kit::complete;
use mesh_kit::run::{self, Outcome};

/// Print a completion script
#[derive(clap::Args)]
#[command(after_help = "\
kubectl completes plugins through a program `kubectl_complete-mesh` on PATH; names come from the documents of -f alone.

Examples:
  # kubectl mesh <TAB>; needs kubectl's own completion
  kubectl mesh completion kubectl > ~/.local/bin/kubectl_complete-mesh \\
    && chmod +x ~/.local/bin/kubectl_complete-mesh
  # Likewise -failover and -authz
  ln -s kubectl_complete-mesh ~/.local/bin/kubectl_complete-mesh-expose

  # kubectl-mesh <TAB>, verbs and flags
  source <(kubectl-mesh completion bash)")]
pub(crate) struct Args {
    /// The shell, or kubectl
    #[arg(value_enum)]
    target: Target,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Target {
    Kubectl,
    Bash,
    Zsh,
    Fish,
    Powershell,
}

/// One script for all names: the part behind `kubectl_complete-mesh` is the word that `kubectl mesh` hands on.
const KUBECTL: &str = r#"#!/bin/sh
# Written by kubectl mesh completion kubectl.
word=${0##*/kubectl_complete-mesh}
exec kubectl-mesh __complete ${word:+"${word#[-_]}"} "$@"
"#;

pub(crate) fn run(mut command: Command, args: &Args) -> Outcome {
    let shell = match args.target {
        Target::Kubectl => {
            run::print(KUBECTL)?;
            return Ok(0);
        }
        Target::Bash => Shell::Bash,
        Target::Zsh => Shell::Zsh,
        Target::Fish => Shell::Fish,
        Target::Powershell => Shell::PowerShell,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "kubectl-mesh", &mut script);
    run::print(&String::from_utf8_lossy(&script))?;
    Ok(0)
}

/// Answers kubectl's question.
pub(crate) fn answer(command: Command, words: &[String]) -> Outcome {
    run::print(&complete::answer(command, words))?;
    Ok(0)
}
