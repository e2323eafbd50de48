//! What Argo CD asks for: parameters and environment, of which only the names listed here are read.

use serde::Deserialize;

/// One entry of ARGOCD_APP_PARAMETERS, as Argo CD writes it.
#[derive(Debug, Deserialize)]
struct Parameter {
    name: String,
    string: Option<String>,
    array: Option<Vec<String>>,
    map: Option<serde::de::IgnoredAny>,
}

/// What to render.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) cluster: Option<String>,
    pub(crate) intents: Vec<String>,
    pub(crate) waves: Option<bool>,
}

/// Reads the request. The `PARAM_…` variables are ignored: different parameters can have the same one.
pub(crate) fn read() -> Result<Request, String> {
    let mut request = match variable("ARGOCD_APP_PARAMETERS")? {
        Some(text) => parameters(&text)?,
        None => Request::default(),
    };
    let from_environment = variable("ARGOCD_ENV_CLUSTER")?.filter(|text| !text.is_empty());
    match (&request.cluster, from_environment) {
        (Some(parameter), Some(environment)) if *parameter != environment => {
            return Err(
                "error: parameter \"cluster\" and ARGOCD_ENV_CLUSTER name different clusters; set one of them\n"
                    .to_owned(),
            );
        }
        (None, environment) => request.cluster = environment,
        (Some(_), _) => {}
    }
    Ok(request)
}

/// The named cluster; nothing is ever guessed.
pub(crate) fn cluster(request: &Request) -> Result<&str, String> {
    match request.cluster.as_deref() {
        None | Some("") => Err("error: parameter \"cluster\" is not set; set spec.source.plugin.parameters [{name: cluster, string: NAME}] of the Application to the name of a Cluster document\n".to_owned()),
        Some(name) => Ok(name),
    }
}

/// The text of a variable; one that is no UTF-8 is an error, not an absence.
pub(crate) fn variable(name: &str) -> Result<Option<String>, String> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(format!("error: {name} is not valid UTF-8\n")),
    }
}

fn parameters(text: &str) -> Result<Request, String> {
    // Argo CD writes `null` for a plugin without parameters.
    let list: Option<Vec<Parameter>> = serde_json::from_str(text).map_err(|error| {
        format!(
            "error: ARGOCD_APP_PARAMETERS is not a list of parameters (line {}, column {})\n",
            error.line(),
            error.column()
        )
    })?;
    let mut request = Request::default();
    for parameter in list.unwrap_or_default() {
        match parameter.name.as_str() {
            "cluster" => set(&mut request.cluster, string(&parameter)?, "cluster")?,
            "waves" => {
                let value = match string(&parameter)?.as_str() {
                    "true" => true,
                    "false" => false,
                    _ => return Err("error: parameter \"waves\" is neither \"true\" nor \"false\"\n".to_owned()),
                };
                set(&mut request.waves, value, "waves")?;
            }
            "intents" => {
                let list = parameter
                    .array
                    .or_else(|| parameter.string.map(|one| vec![one]))
                    .filter(|_| parameter.map.is_none());
                request
                    .intents
                    .extend(list.ok_or("error: parameter \"intents\" needs `array`: a list of folders and files\n")?);
            }
            other => {
                let name: String = other.escape_debug().take(64).collect();
                return Err(format!(
                    "error: parameter \"{name}\" is unknown; the parameters are cluster, intents and waves\n"
                ));
            }
        }
    }
    Ok(request)
}

fn string(parameter: &Parameter) -> Result<String, String> {
    match (&parameter.string, &parameter.array, &parameter.map) {
        (Some(text), None, None) => Ok(text.clone()),
        _ => Err(format!("error: parameter \"{}\" needs `string`, not an array or map\n", parameter.name)),
    }
}

fn set<T: PartialEq>(slot: &mut Option<T>, value: T, name: &str) -> Result<(), String> {
    match slot.replace(value) {
        Some(before) if slot.as_ref() != Some(&before) => {
            Err(format!("error: parameter \"{name}\" is set twice, to different values\n"))
        }
        _ => Ok(()),
    }
}
