//! `argocd-mesh-cmp`: Argo CD's render step. Repository, environment and parameters are taken for hostile; an error is
//! always better than an empty or partial success, which would prune a live mesh.

mod generate;
mod parameters;
mod request;

use std::io::Write;
use std::process::ExitCode;

const USAGE: &str = "\
Argo CD config management plugin: renders one cluster's mesh resources from the intents in the current folder.

Usage: argocd-mesh-cmp COMMAND

Commands:
  generate    print the manifests of the cluster named by parameter `cluster` (or ARGOCD_ENV_CLUSTER)
  parameters  print the parameter announcement for Argo CD's user interface, as JSON
  version     print the version

Parameters (ARGOCD_APP_PARAMETERS, set in an Application's spec.source.plugin.parameters):
  cluster     the name of a Cluster document; required
  intents     folders and files to read, relative to the application's path; default: all of it
  waves       \"false\" leaves out the sync-wave annotations
";

/// What Argo CD shows of an error is cut at some point; the first findings matter.
const MOST_FINDINGS: usize = 10;

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Err(text) = bound_memory() {
        return fail(&text);
    }
    let result = match words.as_slice() {
        ["generate"] => generate::generate(),
        ["parameters"] => Ok(parameters::announcement()),
        ["version" | "--version" | "-V"] => Ok(format!("argocd-mesh-cmp v{}\n", env!("CARGO_PKG_VERSION"))),
        ["help" | "--help" | "-h"] => Ok(USAGE.to_owned()),
        // Argo CD would take help for manifests.
        [] => Err(format!("error: no command is given\n\n{USAGE}")),
        ["generate" | "parameters" | "version", surplus, ..] => {
            Err(format!("error: unexpected argument \"{}\"; the command takes none\n", surplus.escape_debug()))
        }
        [unknown, ..] => Err(format!(
            "error: unknown command \"{}\"; the commands are generate, parameters and version\n",
            unknown.escape_debug()
        )),
    };
    match result {
        // Written at once and completely, or not at all.
        Ok(text) => match std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format!("error: the output could not be written: {error}\n")),
        },
        Err(text) => fail(&text),
    }
}

/// The sidecar says how much memory this program may take (MESH_MEMORY_MIB), so that a hostile repository ends its own
/// rendering and not the sidecar. No Application can set it: what Applications set begins with `ARGOCD_ENV_`.
fn bound_memory() -> Result<(), String> {
    let Some(text) = request::variable("MESH_MEMORY_MIB")? else { return Ok(()) };
    let bytes = text.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << 20)).filter(|bytes| *bytes > 0);
    let bytes = bytes.ok_or_else(|| "error: MESH_MEMORY_MIB is not a number of MiB\n".to_owned())?;
    #[cfg(unix)]
    rlimit::Resource::AS
        .get()
        .and_then(|(_, most)| rlimit::Resource::AS.set(bytes.min(most), bytes.min(most)))
        .map_err(|error| format!("error: memory cannot be bounded: {error}\n"))?;
    Ok(())
}

fn fail(text: &str) -> ExitCode {
    // Nobody is left to tell if this fails as well.
    let _ = std::io::stderr().write_all(text.as_bytes());
    ExitCode::FAILURE
}
