//! Kubeconfig contexts become connections.

use crate::api::{Api, Error, Verbose};
use http::HeaderValue;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::retry::RetryPolicy;
use kube::client::{Client, ConfigExt};
use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};
use std::path::PathBuf;
use std::time::Duration;
use tower::retry::RetryLayer;
use tower::{BoxError, ServiceBuilder};

/// kubectl's flags about connections, as far as they make sense for many clusters.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Connections")]
pub struct ConnectFlags {
    /// The kubeconfig file [default: $KUBECONFIG, ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The kubeconfig user to use in every cluster
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// The user to impersonate
    #[arg(long = "as", value_name = "USER")]
    impersonate: Option<String>,
    /// A group to impersonate; may be repeated
    #[arg(long = "as-group", value_name = "GROUP", requires = "impersonate")]
    impersonate_group: Vec<String>,
    /// How long one answer may take before the cluster counts as unreachable; 0 waits for ever
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    request_timeout: Duration,
    /// How much to tell on stderr: 6 every request with its answer and time, 8 also what is sent and received
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0, hide_default_value = true)]
    verbosity: u8,
}

/// Reads a duration as kubectl does: `30` is seconds, else `500ms`, `30s`, `2m`, `1h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let wrong = || format!("\"{text}\" is no duration; write 500ms, 30s, 2m or 1h");
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let milliseconds = match unit {
        "ms" => Some(1),
        "" | "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    milliseconds.and_then(|unit| number.checked_mul(unit)).map(Duration::from_millis).ok_or_else(wrong)
}

/// A kubeconfig, ready to open connections.
#[derive(Debug)]
pub struct Connections {
    /// Absent in a pod without a kubeconfig.
    kubeconfig: Option<Kubeconfig>,
    flags: ConnectFlags,
}

/// How long the first contact may take; a dead address gives no answer at all.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a credential plugin may take: it may ask a person to log in.
const CREDENTIALS: Duration = Duration::from_secs(120);

impl ConnectFlags {
    /// Reads the kubeconfig. Inside a pod without one, the pod's own service account is used for the one cluster there.
    ///
    /// # Errors
    ///
    /// If there is a kubeconfig and it cannot be read.
    pub fn connections(&self) -> anyhow::Result<Connections> {
        let read = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        let kubeconfig = match read {
            Ok(kubeconfig) => Some(kubeconfig),
            Err(KubeconfigError::ReadConfig(_, _) | KubeconfigError::FindPath)
                if self.kubeconfig.is_none() && std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() =>
            {
                None
            }
            Err(KubeconfigError::ReadConfig(error, path)) => {
                anyhow::bail!("cannot read the kubeconfig {}: {error}", path.display())
            }
            Err(error) => anyhow::bail!("cannot read the kubeconfig: {error}"),
        };
        Ok(Connections { kubeconfig, flags: self.clone() })
    }
}

impl Connections {
    /// The names of all contexts, in the order of the kubeconfig.
    pub fn contexts(&self) -> impl Iterator<Item = &str> {
        self.kubeconfig.iter().flat_map(|kubeconfig| &kubeconfig.contexts).map(|context| context.name.as_str())
    }

    /// The context that kubectl would use.
    #[must_use]
    pub fn current_context(&self) -> Option<&str> {
        self.kubeconfig.as_ref()?.current_context.as_deref()
    }

    /// The context that leads to a server, by its address.
    #[must_use]
    pub fn context_of_server(&self, server: &str) -> Option<&str> {
        let kubeconfig = self.kubeconfig.as_ref()?;
        let leads = |name: &str| {
            kubeconfig.clusters.iter().any(|cluster| {
                let found = cluster.cluster.as_ref().and_then(|cluster| cluster.server.as_deref());
                cluster.name == name
                    && found.is_some_and(|found| found.trim_end_matches('/') == server.trim_end_matches('/'))
            })
        };
        let context = kubeconfig
            .contexts
            .iter()
            .find(|context| context.context.as_ref().is_some_and(|context| leads(&context.cluster)));
        context.map(|context| context.name.as_str())
    }

    /// Opens a connection; the server is not asked anything yet.
    ///
    /// # Errors
    ///
    /// If the kubeconfig does not know the context, or its credentials cannot be had.
    pub async fn open(&self, context: &str) -> Result<Api, Error> {
        let flags = &self.flags;
        let mut config = match &self.kubeconfig {
            None => Config::incluster().map_err(|error| Error::Local(error.to_string()))?,
            Some(kubeconfig) => {
                let options =
                    KubeConfigOptions { context: Some(context.to_owned()), cluster: None, user: flags.user.clone() };
                Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await.map_err(|error| match error {
                    KubeconfigError::LoadContext(name) => Error::Local(format!(
                        "context \"{name}\" does not exist in the kubeconfig; `spec.context` of the Cluster document names another one"
                    )),
                    error => Error::Local(error.to_string()),
                })?
            }
        };
        config.connect_timeout = Some(CONNECT);
        if let Some(user) = &flags.impersonate {
            config.auth_info.impersonate = Some(user.clone());
            config.auth_info.impersonate_groups =
                (!flags.impersonate_group.is_empty()).then(|| flags.impersonate_group.clone());
        }
        let server = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
        let url = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        // A credential plugin is a process that is waited for, so it must not hold up the other clusters.
        let opening = tokio::task::spawn_blocking(move || client(config));
        let client = match tokio::time::timeout(CREDENTIALS, opening).await {
            Ok(Ok(client)) => client.map_err(|error| Error::of(error, &server))?,
            Ok(Err(panic)) => return Err(Error::Local(panic.to_string())),
            Err(_) => return Err(Error::Local(format!("the credential plugin gave no answer in {CREDENTIALS:?}"))),
        };
        let limit = (!flags.request_timeout.is_zero()).then_some(flags.request_timeout);
        let verbose = Verbose { level: flags.verbosity, context: context.to_owned(), url };
        Ok(Api::new(client, server, limit, verbose))
    }
}

/// kube's own stack leaves Nagle's algorithm on, which delays every request that follows an answer by up to 40 ms
/// (kube-rs/kube#2056). Behind a proxy kube's stack is used as it is: there the connection to the proxy is kube's.
fn client(mut config: Config) -> Result<Client, kube::Error> {
    config.headers.push((http::header::USER_AGENT, HeaderValue::from_static(AGENT)));
    if config.proxy_url.is_some() {
        return Client::try_from(config);
    }
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    // A watch sends nothing, so a server that is gone would not be noticed.
    http.set_keepalive(Some(Duration::from_secs(30)));
    http.set_keepalive_interval(Some(Duration::from_secs(10)));
    http.set_keepalive_retries(Some(3));
    http.set_connect_timeout(config.connect_timeout);
    let https = config.rustls_https_connector_with_connector(http)?;
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(RetryLayer::new(RetryPolicy::server_retry()))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(https));
    Ok(Client::new(service, config.default_namespace))
}

const AGENT: &str = concat!("kubectl-mesh/", env!("CARGO_PKG_VERSION"));
