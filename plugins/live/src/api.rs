//! The few requests that are made to an API server, and its answers in kubectl's words.

use http::Request;
use kube::client::{Body, Client};
use kube::core::Status;
use mesh::manifest::{Kind, MANAGED_BY};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use std::fmt;
use std::time::{Duration, Instant};

/// The field manager of everything that is applied.
pub const MANAGER: &str = MANAGED_BY;

/// How many requests one cluster is sent at a time. More only wait in the server's queue (its default share for one
/// user is about this many).
pub const PARALLEL: usize = 16;

/// A connection to one cluster's API server.
#[derive(Clone)]
pub struct Api {
    client: Client,
    server: String,
    limit: Option<Duration>,
    verbose: Verbose,
}

/// Why a request had no result.
#[derive(Clone, Debug)]
pub enum Error {
    /// The server says no.
    Server(Box<Status>),
    /// The server cannot be reached.
    Connection(String),
    /// Something is wrong before any server is asked.
    Local(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(text) | Self::Local(text) => f.write_str(text),
            Self::Server(status) if status.code == 401 => {
                write!(f, "You must be logged in to the server ({})", word(status))
            }
            // A path that no API has is answered in plain text.
            Self::Server(status) if status.code == 404 && status.details.is_none() => {
                f.write_str("Error from server (NotFound): the server could not find the requested resource")
            }
            Self::Server(status) => write!(f, "Error from server ({}): {}", word(status), status.message.trim()),
        }
    }
}

impl std::error::Error for Error {}

fn word(status: &Status) -> &str {
    match status.reason.as_str() {
        "" if status.code == 401 => "Unauthorized",
        "" => "Unknown",
        reason => reason,
    }
}

impl Error {
    /// Translates an error of the client.
    #[must_use]
    pub fn of(error: kube::Error, server: &str) -> Self {
        match error {
            kube::Error::Api(status) => Self::Server(status),
            error => {
                let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&error);
                let mut last = String::new();
                while let Some(cause) = source {
                    if let Some(io) = cause.downcast_ref::<std::io::Error>()
                        && io.kind() == std::io::ErrorKind::ConnectionRefused
                    {
                        return Self::Connection(format!(
                            "The connection to the server {server} was refused - did you specify the right host or port?"
                        ));
                    }
                    last = cause.to_string();
                    source = cause.source();
                }
                Self::Connection(format!("Unable to connect to the server {server}: {last}"))
            }
        }
    }

    /// Whether the server says that there is no such thing.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Server(status) if status.code == 404)
    }

    /// Whether the server says that this user may not do that.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Server(status) if status.code == 403)
    }

    /// Whether no other request to this cluster will do better: it is unreachable, or does not know the user.
    #[must_use]
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Server(status) if status.code != 401)
    }
}

/// Whether a request only asks what would happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It happens.
    Real,
    /// The server only says what would happen.
    DryRun,
}

impl Mode {
    fn query(self) -> &'static str {
        match self {
            Self::Real => "",
            Self::DryRun => "&dryRun=All",
        }
    }
}

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const APPLY: &str = "application/apply-patch+yaml";
const JSON_PATCH: &str = "application/json-patch+json";
/// Answers of this many objects keep server and client from holding large lists.
const PAGE: usize = 500;

impl Api {
    pub(crate) fn new(client: Client, server: String, limit: Option<Duration>, verbose: Verbose) -> Self {
        Self { client, server, limit, verbose }
    }

    /// The client, for requests that never end.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The address of the server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// All objects of a kind that carry our label.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked, or does not know the kind.
    pub async fn list_ours(&self, kind: Kind) -> Result<Vec<Json>, Error> {
        let path = format!("{}/{}", root(kind.group(), "v1"), kind.plural());
        let mut objects =
            self.list(&path, &format!("labelSelector=app.kubernetes.io%2Fmanaged-by%3D{MANAGED_BY}")).await?;
        for object in &mut objects {
            // Items of a list do not say what they are.
            object["apiVersion"] = kind.api_version().into();
            object["kind"] = kind.as_str().into();
        }
        Ok(objects)
    }

    /// All objects below a path such as `/api/v1/services`.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked, or does not know the path.
    pub async fn list(&self, path: &str, query: &str) -> Result<Vec<Json>, Error> {
        let mut items = Vec::new();
        let mut token = String::new();
        loop {
            let mut page: Json =
                self.request("GET", &format!("{path}?limit={PAGE}{token}&{query}"), "", Vec::new()).await?;
            if let Some(Json::Array(more)) = page.get_mut("items").map(Json::take) {
                items.extend(more);
            }
            match page["metadata"]["continue"].as_str() {
                Some(next) if !next.is_empty() => token = format!("&continue={}", escape(next)),
                _ => return Ok(items),
            }
        }
    }

    /// One object, if it is there.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked.
    pub async fn get(&self, path: &str) -> Result<Option<Json>, Error> {
        match self.request("GET", path, "", Vec::new()).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Server-side apply. Fields that the server does not know are refused rather than dropped.
    ///
    /// # Errors
    ///
    /// If the server refuses, or cannot be asked.
    pub async fn apply(&self, path: &str, object: &Json, mode: Mode, force: bool) -> Result<Json, Error> {
        let path = format!("{path}?fieldManager={MANAGER}&fieldValidation=Strict&force={force}{}", mode.query());
        self.request("PATCH", &path, APPLY, object.to_string().into_bytes()).await
    }

    /// Removes fields of an object, if it is still the one that was seen.
    ///
    /// # Errors
    ///
    /// If the object has changed, the server refuses, or cannot be asked.
    pub async fn remove_fields(&self, path: &str, seen: &Json, fields: &[String], mode: Mode) -> Result<Json, Error> {
        let test =
            json!({"op": "test", "path": "/metadata/resourceVersion", "value": seen["metadata"]["resourceVersion"]});
        let removals = fields.iter().map(|field| json!({"op": "remove", "path": field}));
        let patch = Json::Array(std::iter::once(test).chain(removals).collect());
        let path = format!("{path}?fieldManager={MANAGER}{}", mode.query());
        self.request("PATCH", &path, JSON_PATCH, patch.to_string().into_bytes()).await
    }

    /// Deletes exactly the object that was seen: not one of the same name that came later, nor one that was changed.
    ///
    /// # Errors
    ///
    /// If the object has changed, the server refuses, or cannot be asked.
    pub async fn delete(&self, path: &str, seen: &Json, mode: Mode) -> Result<(), Error> {
        let preconditions = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": seen["metadata"]["uid"], "resourceVersion": seen["metadata"]["resourceVersion"]},
            "dryRun": if mode == Mode::DryRun { vec!["All"] } else { Vec::new() },
        });
        match self.request::<Json>("DELETE", path, "application/json", preconditions.to_string().into_bytes()).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Names, labels and annotations of everything below a path; the server sends nothing else.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked, or does not know the path.
    pub async fn list_metadata(&self, path: &str, query: &str) -> Result<Vec<Json>, Error> {
        let list: Json = self.exchange("GET", &format!("{path}?{query}"), METADATA_LIST, "", Vec::new()).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Some values of a Secret, and no others: API servers send a Secret as a whole or not at all, so the server is asked
    /// what its annotations would be if these values were copied there, and answers with the metadata alone. Nothing is
    /// written. The values are in base64, as they are stored.
    ///
    /// # Errors
    ///
    /// If the server refuses, one of the values is not there, or the server cannot be asked.
    pub async fn values_of_secret(&self, path: &str, keys: &[&str]) -> Result<Json, Error> {
        let empty = json!({"op": "add", "path": "/metadata/annotations", "value": {}});
        let copies = keys.iter().map(
            |key| json!({"op": "copy", "from": format!("/data/{key}"), "path": format!("/metadata/annotations/{key}")}),
        );
        let patch = Json::Array(std::iter::once(empty).chain(copies).collect());
        let path = format!("{path}?fieldManager={MANAGER}{}", Mode::DryRun.query());
        let mut answer: Json =
            self.exchange("PATCH", &path, METADATA, JSON_PATCH, patch.to_string().into_bytes()).await?;
        Ok(answer["metadata"]["annotations"].take())
    }

    async fn request<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        content: &'static str,
        body: Vec<u8>,
    ) -> Result<T, Error> {
        self.exchange(method, path, "application/json", content, body).await
    }

    async fn exchange<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        accept: &'static str,
        content: &'static str,
        body: Vec<u8>,
    ) -> Result<T, Error> {
        let mut request = Request::builder().method(method).uri(path).header(http::header::ACCEPT, accept);
        if !content.is_empty() {
            request = request.header(http::header::CONTENT_TYPE, content);
        }
        self.verbose.body(path, "Request", &body);
        let request = request.body(Body::from(body)).map_err(|error| Error::Local(error.to_string()))?;
        let started = Instant::now();
        let exchange = async {
            let response = self.client.send(request).await?;
            Ok::<_, kube::Error>((response.status(), response.into_body().collect_bytes().await?))
        };
        let result = match self.limit {
            None => exchange.await,
            Some(limit) => match tokio::time::timeout(limit, exchange).await {
                Ok(result) => result,
                Err(_) => {
                    return Err(Error::Connection(format!(
                        "Unable to connect to the server {}: no answer within {limit:?} (--request-timeout)",
                        self.server
                    )));
                }
            },
        };
        let (status, bytes) = result.map_err(|error| Error::of(error, &self.server))?;
        self.verbose.request(method, path, status, started.elapsed());
        self.verbose.body(path, "Response", &bytes);
        if status.is_client_error() || status.is_server_error() {
            // What stands between us and the server may answer in plain text.
            let said = serde_json::from_slice::<Status>(&bytes).unwrap_or_else(|_| {
                Status::failure(String::from_utf8_lossy(&bytes).trim(), "").with_code(status.as_u16())
            });
            return Err(Error::Server(said.boxed()));
        }
        serde_json::from_slice(&bytes)
            .map_err(|error| Error::Local(format!("the answer of the server {} cannot be read: {error}", self.server)))
    }
}

/// What `-v` tells about requests.
#[derive(Clone, Debug)]
pub struct Verbose {
    /// 6 tells every request, 8 bodies too, 9 more of them.
    pub level: u8,
    /// The kubeconfig context.
    pub context: String,
    /// Scheme and authority of the server.
    pub url: String,
}

impl Verbose {
    fn request(&self, method: &str, path: &str, status: http::StatusCode, took: Duration) {
        if self.level >= 6 {
            eprintln!("{}: {method} {}{path} {status} in {} milliseconds", self.context, self.url, took.as_millis());
        }
    }

    /// Secrets are never shown, and neither are headers: they hold credentials.
    fn body(&self, path: &str, what: &str, body: &[u8]) {
        if self.level < 8 || body.is_empty() {
            return;
        }
        let most = if self.level == 8 { 1_024 } else { 65_536 };
        let text = String::from_utf8_lossy(body);
        let text = match text.char_indices().nth(most) {
            _ if path.contains("/secrets") => format!("[{} bytes about Secrets]", body.len()),
            Some((end, _)) => format!("{} [truncated {} bytes]", &text[..end], text.len() - end),
            None => text.into_owned(),
        };
        eprintln!("{}: {what} Body: {}", self.context, text.trim_end());
    }
}

fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

/// The path of one object.
#[must_use]
pub fn path(kind: Kind, namespace: &str, name: &str) -> String {
    format!("{}/namespaces/{namespace}/{}/{name}", root(kind.group(), "v1"), kind.plural())
}

/// A value of a query: everything but letters and digits is written as %XX.
pub(crate) fn escape(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
