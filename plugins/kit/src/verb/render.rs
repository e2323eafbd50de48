//! `render`: the objects of some kinds that one cluster gets. Which ones are shown is all that is decided here; what is
//! in them is the same whichever program prints them.

use crate::input::{self, Input};
use crate::output::{self, Form};
use crate::run::{self, Outcome};
use mesh::diagnostic::Severity;
use mesh::manifest::{Kind, Object};

/// The flags of `render`.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The cluster to render for
    #[arg(long, value_name = "NAME")]
    cluster: String,
    /// The form of the output
    #[arg(short, long, value_parser = output::OBJECTS, default_value = "yaml")]
    output: Form,
}

/// Prints a cluster's objects of these kinds.
///
/// # Errors
///
/// If the documents have errors, or there is no such cluster.
pub fn run(input: &Input, flags: &Flags, kinds: &[Kind]) -> Outcome {
    let world = input.right_world()?;
    let cluster = input::cluster(&world.effective.fleet, &flags.cluster)?;
    let rendered = world.render(cluster).map_err(|found| input::refuse(&world, &found))?;
    input::warn(&world, &rendered.found, Severity::Warning);
    let objects: Vec<Object> = rendered.objects.into_iter().filter(|object| kinds.contains(&object.kind)).collect();
    if objects.is_empty() {
        eprintln!("No resources found: cluster {} needs none of these kinds.", flags.cluster);
        return Ok(0);
    }
    run::print(&output::objects(&objects, &flags.output)?)?;
    Ok(0)
}
