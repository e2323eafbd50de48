//! `set`: creates or edits the document of one service.

use anyhow::bail;
use mesh::intent::Kind;
use mesh_kit::author::change::{self, Author};
use mesh_kit::author::documents::{Field, Id};
use mesh_kit::author::value::Value;
use mesh_kit::author::words;
use mesh_kit::input::Input;
use mesh_kit::run::Outcome;

/// Create or edit the document of a service
#[derive(clap::Args)]
#[command(after_help = "\
Only the fields that are named change; an empty value (--to '') takes a field out. The change and its effect on the fleet \
are shown before the file is written, and a fleet that would not be right is refused. Clusters are names or KEY=VALUE, \
separated by commas; KEY=VALUE:KEY=VALUE wants both labels.

Examples:
  # Let services of bank reach user from other clusters
  kubectl mesh expose set bank/user --hostname user.mesh.bank.example --to bank \\
    --file intents/ -f .

  # A new service, on stdout
  kubectl mesh expose set bank/rates --clusters eks,hosting=on-prem --port http=8080 \\
    --depends-on ledger -f .

  # Only show what would change
  kubectl mesh expose set bank/user --clusters all --file intents/bank.yaml --dry-run=client -f .")]
pub(crate) struct Args {
    /// The service: NAMESPACE/NAME, or NAME with -n
    #[arg(value_name = "SERVICE")]
    name: String,
    /// The namespace of a service that is named without one
    #[arg(short, long)]
    namespace: Option<String>,
    /// A host name by which other clusters reach the service; all of them are named
    #[arg(long, value_delimiter = ',')]
    hostname: Vec<String>,
    /// Who may depend on it: NAMESPACE or NAMESPACE/SERVICE
    #[arg(long, value_delimiter = ',')]
    to: Vec<String>,
    /// Where it runs
    #[arg(long)]
    clusters: Option<String>,
    /// A port: NAME=PORT[:TARGETPORT][/PROTOCOL]; all of them are named
    #[arg(long, value_delimiter = ',')]
    port: Vec<String>,
    /// What it calls: SERVICE or NAMESPACE/SERVICE, with @CLUSTERS to call it only from there; all of them are named
    #[arg(long, value_name = "SERVICE")]
    depends_on: Vec<String>,
    /// The service account of its pods
    #[arg(long)]
    service_account: Option<String>,
    /// The labels of its pods: KEY=VALUE, separated by commas
    #[arg(long)]
    selector: Option<String>,
    /// What its sidecars see and may reach: open, declared or enforced
    #[arg(long)]
    egress: Option<String>,
    /// A label of the document: KEY=VALUE, or KEY- to remove it
    #[arg(long, value_delimiter = ',')]
    label: Vec<String>,
    #[command(flatten)]
    author: Author,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    let id = Id::parse(Kind::MeshService, &args.name, args.namespace.as_deref())?;
    if id.namespace.is_none() {
        return Err(anyhow::anyhow!("\"{}\" does not say which namespace; write NAMESPACE/NAME", args.name).into());
    }
    let fields = fields(args)?;
    change::set(input, &args.author, &id, |_| Ok(fields))
}

fn fields(args: &Args) -> anyhow::Result<Vec<Field<'_>>> {
    let text = |text: &str| Ok(Value::text(text));
    let mut fields = args.label.iter().map(|label| label_field(label)).collect::<anyhow::Result<Vec<_>>>()?;
    fields.extend(words::field(&["spec", "clusters"], args.clusters.as_deref(), words::clusters)?);
    fields.extend(words::fields(&["spec", "ports"], &args.port, words::port)?);
    fields.extend(words::field(&["spec", "workload", "selector"], args.selector.as_deref(), selector)?);
    fields.extend(words::field(&["spec", "workload", "serviceAccount"], args.service_account.as_deref(), text)?);
    fields.extend(words::fields(&["spec", "expose", "hostnames"], &args.hostname, text)?);
    fields.extend(words::fields(&["spec", "expose", "to"], &args.to, exposed_to)?);
    fields.extend(words::fields(&["spec", "dependsOn"], &args.depends_on, dependency)?);
    fields.extend(words::field(&["spec", "egress"], args.egress.as_deref(), text)?);
    if fields.is_empty() {
        bail!("nothing to set; name at least one field, for example --hostname");
    }
    Ok(fields)
}

fn label_field(text: &str) -> anyhow::Result<Field<'_>> {
    match (text.split_once('='), text.strip_suffix('-')) {
        (Some((key, value)), _) if !key.is_empty() => Ok((vec!["metadata", "labels", key], Some(Value::text(value)))),
        (None, Some(key)) if !key.is_empty() => Ok((vec!["metadata", "labels", key], None)),
        _ => bail!("\"{text}\" is no label; write KEY=VALUE, or KEY- to remove it"),
    }
}

fn selector(text: &str) -> anyhow::Result<Value> {
    let pairs = text.split(',').map(words::pair).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Value::Map(pairs.into_iter().map(|(key, value)| (key, Value::text(value))).collect()))
}

fn exposed_to(text: &str) -> anyhow::Result<Value> {
    let (namespace, service) = match text.split_once('/') {
        Some((namespace, service)) => (namespace, Some(service)),
        None => (text, None),
    };
    if namespace.is_empty() || service == Some("") {
        bail!("\"{text}\" names nobody; write NAMESPACE or NAMESPACE/SERVICE");
    }
    Ok(Value::map([("namespace", Some(Value::text(namespace))), ("service", service.map(Value::text))]))
}

/// A bare name, where that says enough.
fn dependency(text: &str) -> anyhow::Result<Value> {
    if text.contains(['/', '@']) { words::caller(text, "service") } else { Ok(Value::text(text)) }
}
