//! `set`: creates or edits one traffic policy.

use anyhow::{Context, bail};
use mesh::intent::Kind;
use mesh_kit::author::change::{self, Author};
use mesh_kit::author::documents::{Field, Id};
use mesh_kit::author::value::Value;
use mesh_kit::author::words;
use mesh_kit::input::Input;
use mesh_kit::run::Outcome;

/// Create or edit a traffic policy
#[derive(clap::Args)]
#[command(after_help = "\
Only the fields that are named change; an empty value (--exclude '') takes a field out. The change and its effect on the \
fleet are shown before the file is written, and a fleet that would not be right is refused. Clusters are names or \
KEY=VALUE, separated by commas; KEY=VALUE:KEY=VALUE wants both labels. In --order, + puts several into one tier, `local` is \
the caller's own cluster, and region=same, zone=same and network=same are those of the caller.

Examples:
  # Own cluster first, then on premises in the region, then on premises anywhere; never into
  # the public cloud
  kubectl mesh failover set bank/account-to-user --from account --to user \\
    --order local,hosting=on-prem:region=same,hosting=on-prem \\
    --exclude hosting=public-cloud --file intents/ -f .

  # A fifth of the traffic to wine
  kubectl mesh failover set shop/bar-to-wine --to bar --weight wine=20 \\
    --file intents/shop.yaml -f .

  # The fleet's default
  kubectl mesh failover set fleet --default --order local,region=same,all \\
    --file intents/ --dry-run=client -f .")]
pub(crate) struct Args {
    /// The policy: NAMESPACE/NAME, or NAME with -n; a bare name with --default
    #[arg(value_name = "POLICY")]
    name: String,
    /// The namespace of a policy that is named without one
    #[arg(short, long)]
    namespace: Option<String>,
    /// The fleet's one default policy, which names no callers and no service
    #[arg(long, conflicts_with_all = ["from", "to", "namespace"])]
    default: bool,
    /// Whose calls: SERVICE, NAMESPACE/SERVICE or NAMESPACE/, with @CLUSTERS, or @CLUSTERS alone; all of them are named
    #[arg(long, value_name = "CALLER")]
    from: Vec<String>,
    /// The called service: SERVICE or NAMESPACE/SERVICE
    #[arg(long, value_name = "SERVICE")]
    to: Option<String>,
    /// Who serves: tiers, the first healthy one first
    #[arg(long, value_name = "TIERS")]
    order: Option<String>,
    /// Who never serves from elsewhere
    #[arg(long, value_name = "CLUSTERS")]
    exclude: Option<String>,
    /// A share of the traffic: CLUSTERS=PERCENT; all of them are named
    #[arg(long, value_name = "CLUSTERS=PERCENT")]
    weight: Vec<String>,
    /// How long a request may take, tries included: 10s
    #[arg(long)]
    timeout: Option<String>,
    /// How often a failed request is tried again
    #[arg(long, value_name = "COUNT")]
    retries: Option<String>,
    /// How long each try may take: 2s
    #[arg(long, value_name = "DURATION")]
    per_try_timeout: Option<String>,
    #[command(flatten)]
    author: Author,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    let id = Id::parse(Kind::TrafficPolicy, &args.name, args.namespace.as_deref())?;
    let fields = fields(args)?;
    change::set(input, &args.author, &id, |there| {
        if there.is_none() && id.namespace.is_none() && !args.default {
            bail!("\"{}\" does not say which namespace; write NAMESPACE/NAME, or use --default", args.name);
        }
        Ok(fields)
    })
}

fn fields(args: &Args) -> anyhow::Result<Vec<Field<'static>>> {
    let text = |text: &str| Ok(Value::text(text));
    let mut fields = Vec::new();
    if args.default {
        fields.push((vec!["spec", "default"], Some(Value::Bool(true))));
    }
    fields.extend(words::fields(&["spec", "from"], &args.from, |text| words::caller(text, "service"))?);
    fields.extend(words::field(&["spec", "to"], args.to.as_deref(), |text| Ok(words::service(text)))?);
    fields.extend(words::field(&["spec", "failover", "order"], args.order.as_deref(), words::order)?);
    fields.extend(words::field(&["spec", "failover", "exclude"], args.exclude.as_deref(), words::clusters)?);
    fields.extend(words::fields(&["spec", "weights"], &args.weight, weight)?);
    fields.extend(words::field(&["spec", "retries", "attempts"], args.retries.as_deref(), whole)?);
    fields.extend(words::field(&["spec", "retries", "perTryTimeout"], args.per_try_timeout.as_deref(), text)?);
    fields.extend(words::field(&["spec", "timeout"], args.timeout.as_deref(), text)?);
    if fields.is_empty() {
        bail!("nothing to set; name at least one field, for example --order");
    }
    Ok(fields)
}

/// The last `=` divides: clusters may be named by labels.
fn weight(text: &str) -> anyhow::Result<Value> {
    let (clusters, percent) = text
        .rsplit_once('=')
        .with_context(|| format!("\"{text}\" is no share; write CLUSTERS=PERCENT, for example wine=20"))?;
    Ok(Value::map([("clusters", Some(words::clusters(clusters)?)), ("percent", Some(whole(percent)?))]))
}

fn whole(text: &str) -> anyhow::Result<Value> {
    text.parse().map(Value::Number).with_context(|| format!("\"{text}\" is no whole number"))
}
