//! `expose`, `failover` and `authz` are programs of their own, so that each can be installed alone. `kubectl mesh WORD`
//! becomes the program of that name, wherever it stands: beside this one, or on PATH, spelled as kubectl or as Krew does.

use anyhow::Context;
use mesh_kit::complete;
use mesh_kit::run::Outcome;
use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The words that other programs answer to.
const WORDS: [&str; 3] = ["expose", "failover", "authz"];

/// What they are for.
pub(crate) const HELP: &str = "\
Programs of their own, for one kind of document each:
  expose    Services: where they run, what they depend on, how other clusters reach them
  failover  Who serves whom when something fails
  authz     Who may call whom";

/// The words of the command line after a program's name. They are handed over as they are.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<OsString>,
}

/// The word and what follows it, if the command line is for a neighbour.
pub(crate) fn called(arguments: &[OsString]) -> Option<(&'static str, &[OsString])> {
    let (first, rest) = arguments.split_first()?;
    let word = WORDS.into_iter().find(|word| first == word)?;
    Some((word, rest))
}

/// The neighbour and what to ask it, if the words to be completed are its own.
pub(crate) fn asked(words: &[String]) -> Option<(&'static str, Vec<OsString>)> {
    let (first, rest) = words.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let word = WORDS.into_iter().find(|word| first == word)?;
    Some((word, [complete::VERB].into_iter().chain(rest.iter().map(String::as_str)).map(OsString::from).collect()))
}

/// For a word that stands behind flags: they are flags of the neighbour's too.
pub(crate) fn run_after_flags(word: &str, files: &[PathBuf], args: &Args) -> Outcome {
    let files = files.iter().flat_map(|file| [OsString::from("-f"), file.into()]);
    let arguments: Vec<OsString> = args.rest.iter().cloned().chain(files).collect();
    run(word, &arguments)
}

/// Becomes the neighbour.
pub(crate) fn run(word: &str, arguments: &[OsString]) -> Outcome {
    let names = [format!("kubectl-mesh-{word}"), format!("kubectl-mesh_{word}")];
    let program = find(&names).with_context(|| {
        format!("{} is neither beside kubectl-mesh nor on PATH; install it with the suite or by Krew", names[0])
    })?;
    become_program(&program, &names[0], arguments)
}

#[cfg(unix)]
fn become_program(program: &Path, name: &str, arguments: &[OsString]) -> Outcome {
    use std::os::unix::process::CommandExt;
    // The name under which it is called decides how its help spells the command.
    let error = Command::new(program).arg0(name).args(arguments).exec();
    Err(anyhow::Error::new(error).context(format!("cannot run {}", program.display())).into())
}

#[cfg(not(unix))]
fn become_program(program: &Path, _name: &str, arguments: &[OsString]) -> Outcome {
    let status =
        Command::new(program).args(arguments).status().with_context(|| format!("cannot run {}", program.display()))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Beside the real file of this program, beside the link by which it was called, then on PATH.
fn find(names: &[String]) -> Option<PathBuf> {
    let own = env::current_exe().ok().and_then(|path| fs::canonicalize(path).ok());
    let link = env::args_os().next().map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let parent = |path: &Option<PathBuf>| path.as_deref().and_then(Path::parent).map(Path::to_owned);
    let folders = [parent(&own), parent(&link)].into_iter().flatten().chain(env::split_paths(&path));
    let mut seen = BTreeSet::new();
    folders
        .filter(|folder| !folder.as_os_str().is_empty() && seen.insert(folder.clone()))
        .flat_map(|folder| names.iter().map(move |name| folder.join(format!("{name}{}", env::consts::EXE_SUFFIX))))
        // A link to this very program would only call it again.
        .find(|file| is_program(file) && fs::canonicalize(file).ok() != own)
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}
