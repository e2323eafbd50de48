//! `remove`: a policy's document, or one of its rules.

use crate::rules;
use anyhow::bail;
use mesh::intent::Kind;
use mesh_kit::author::change;
use mesh_kit::author::documents::Id;
use mesh_kit::author::value::Value;
use mesh_kit::input::Input;
use mesh_kit::run::Outcome;
use mesh_kit::verb;

/// Take an access policy's document out of its file, or one rule out of the document
#[derive(clap::Args)]
#[command(after_help = "\
Without its last rule a policy allows nobody; without a policy a service is open to the mesh.

Examples:
  # What would change
  kubectl mesh authz remove bank/user-callers --dry-run=client -f fleet/

  # Only the rule for account in eks
  kubectl mesh authz remove bank/user-callers --allow account@eks -f fleet/")]
pub(crate) struct Args {
    #[command(flatten)]
    flags: verb::remove::Flags,
    /// Only the rule for exactly these callers
    #[arg(long, value_name = "CALLER")]
    allow: Vec<String>,
    /// Callers of that rule by service account
    #[arg(long, value_name = "ACCOUNT")]
    allow_account: Vec<String>,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    if args.allow.is_empty() && args.allow_account.is_empty() {
        return verb::remove::run(input, &args.flags, Kind::AccessPolicy);
    }
    let id = Id::parse(Kind::AccessPolicy, &args.flags.name, args.flags.namespace.as_deref())?;
    let callers = rules::callers(&args.allow, &args.allow_account)?;
    let fields = |there: &mesh::source::Node| {
        let mut left = rules::of(Some(there))?;
        let before = left.len();
        left.retain(|rule| !rules::is_about(rule, &callers));
        if left.len() == before {
            bail!("{id} has no rule for exactly {}", callers.on_one_line(false));
        }
        Ok(vec![(vec!["spec", "allow"], Some(Value::Lines(left)))])
    };
    change::edit(input, &args.flags.author(), &id, fields)
}
