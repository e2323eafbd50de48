//! `set`: creates or edits one access policy, one rule at a time.

use crate::rules;
use anyhow::bail;
use mesh::intent::Kind;
use mesh::source::Node;
use mesh_kit::author::change::{self, Author};
use mesh_kit::author::documents::{Field, Id};
use mesh_kit::author::value::Value;
use mesh_kit::author::words;
use mesh_kit::input::Input;
use mesh_kit::run::Outcome;

/// Create or edit an access policy
#[derive(clap::Args)]
#[command(after_help = "\
--allow adds a rule for these callers, or edits the one that there is for exactly them; other rules stay as they are. \
The change and its effect on the fleet are shown before the file is written, and a fleet that would not be right is \
refused. Clusters are names or KEY=VALUE, separated by commas; KEY=VALUE:KEY=VALUE wants both labels.

Examples:
  # account in eks may call user in eks and cluster-1
  kubectl mesh authz set bank/user-callers --to user --allow account@eks --in eks,cluster-1 \\
    --file intents/ -f .

  # Whoever declared the dependency, for reading only
  kubectl mesh authz set bank/order-callers --to order --allow dependents \\
    --ports 8080 --methods GET --paths '/v1/*' --file intents/bank.yaml -f .

  # Nobody
  kubectl mesh authz set bank/ledger-callers --to ledger --nobody --file intents/ \\
    --dry-run=client -f .")]
pub(crate) struct Args {
    /// The policy: NAMESPACE/NAME, or NAME with -n; a bare name with --default
    #[arg(value_name = "POLICY")]
    name: String,
    /// The namespace of a policy that is named without one
    #[arg(short, long)]
    namespace: Option<String>,
    /// For every service that has no policy of its own
    #[arg(long, conflicts_with = "to")]
    default: bool,
    /// The called service: SERVICE or NAMESPACE/SERVICE
    #[arg(long, value_name = "SERVICE")]
    to: Option<String>,
    /// What happens to other calls: enforce (refused) or audit (logged)
    #[arg(long)]
    mode: Option<String>,
    /// Callers of one rule: dependents, SERVICE, NAMESPACE/SERVICE or NAMESPACE/, with @CLUSTERS, or @CLUSTERS alone
    #[arg(long, value_name = "CALLER")]
    allow: Vec<String>,
    /// Callers of the same rule by service account: ACCOUNT or NAMESPACE/ACCOUNT, with @CLUSTERS
    #[arg(long, value_name = "ACCOUNT")]
    allow_account: Vec<String>,
    /// The clusters whose copy may be called; every copy otherwise
    #[arg(long = "in", value_name = "CLUSTERS")]
    within: Option<String>,
    /// The service's ports that may be called; all of them otherwise
    #[arg(long, value_delimiter = ',')]
    ports: Vec<String>,
    /// The methods that may be used; all of them otherwise
    #[arg(long, value_delimiter = ',')]
    methods: Vec<String>,
    /// The paths that may be called, each with at most one * at one end; all of them otherwise
    #[arg(long, value_delimiter = ',')]
    paths: Vec<String>,
    /// Allow nobody: every rule goes
    #[arg(long, conflicts_with_all = ["allow", "allow_account"])]
    nobody: bool,
    #[command(flatten)]
    author: Author,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    let id = Id::parse(Kind::AccessPolicy, &args.name, args.namespace.as_deref())?;
    change::set(input, &args.author, &id, |there| fields(&id, args, there))
}

fn fields(id: &Id, args: &Args, there: Option<&Node>) -> anyhow::Result<Vec<Field<'static>>> {
    if there.is_none() && id.namespace.is_none() && !args.default {
        bail!("\"{}\" does not say which namespace; write NAMESPACE/NAME, or use --default", args.name);
    }
    let mut fields = Vec::new();
    if args.default {
        fields.push((vec!["spec", "default"], Some(Value::Bool(true))));
    }
    fields.extend(words::field(&["spec", "to"], args.to.as_deref(), |text| Ok(words::service(text)))?);
    fields.extend(words::field(&["spec", "mode"], args.mode.as_deref(), |text| Ok(Value::text(text)))?);
    if args.nobody {
        fields.push((vec!["spec", "allow"], Some(Value::Lines(Vec::new()))));
    } else if let Some(rule) = rule(args)? {
        let mut rules = rules::of(there)?;
        match rules.iter_mut().find(|known| rules::is_about(known, &rule.0)) {
            Some(known) => *known = rule.1,
            None => rules.push(rule.1),
        }
        fields.push((vec!["spec", "allow"], Some(Value::Lines(rules))));
    } else if there.is_none() {
        bail!("a new policy says whom it allows: name callers with --allow, or write --nobody");
    }
    if fields.is_empty() {
        bail!("nothing to set; name at least one field, for example --allow");
    }
    Ok(fields)
}

/// The callers and their rule.
fn rule(args: &Args) -> anyhow::Result<Option<(Value, Value)>> {
    let conditions =
        args.within.is_some() || !args.ports.is_empty() || !args.methods.is_empty() || !args.paths.is_empty();
    if args.allow.is_empty() && args.allow_account.is_empty() {
        if conditions {
            bail!("--in, --ports, --methods and --paths belong to a rule; name its callers with --allow");
        }
        return Ok(None);
    }
    let callers = rules::callers(&args.allow, &args.allow_account)?;
    let texts = |list: &[String]| (!list.is_empty()).then(|| Value::texts(list.iter().cloned()));
    let ports = args.ports.iter().map(|port| match port.parse::<u16>() {
        Ok(number) => Ok(Value::Number(number.into())),
        Err(_) => bail!("\"{port}\" is no port number"),
    });
    let ports: Vec<Value> = ports.collect::<anyhow::Result<_>>()?;
    let rule = Value::map([
        ("from", Some(callers.clone())),
        ("in", args.within.as_deref().map(words::clusters).transpose()?),
        ("ports", (!ports.is_empty()).then_some(Value::List(ports))),
        ("methods", texts(&args.methods)),
        ("paths", texts(&args.paths)),
    ]);
    Ok(Some((callers, rule)))
}
