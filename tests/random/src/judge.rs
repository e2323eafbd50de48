//! The judge as a program.

use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How the judge is called.
pub(crate) struct Judge {
    pub(crate) program: PathBuf,
    pub(crate) parallel: usize,
}

/// What the judge says about one world.
pub(crate) struct Verdict {
    pub(crate) world: String,
    differences: Vec<Value>,
    error: Option<String>,
}

/// More of one check would only repeat it.
const LINES: usize = 4;

impl Verdict {
    /// Whether Istio does not do what the intents say, or could not be asked.
    pub(crate) fn failed(&self) -> bool {
        self.error.is_some() || !self.differences.is_empty()
    }

    /// In what respect: the checks that failed.
    pub(crate) fn checks(&self) -> BTreeSet<String> {
        let checks = self.differences.iter().filter_map(|difference| difference["check"].as_str());
        checks.map(str::to_owned).chain(self.error.iter().map(|_| "no judgement".to_owned())).collect()
    }

    /// What was found, a line each.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.error.iter().map(|error| format!("{}: no judgement: {error}", self.world)).collect();
        for check in self.checks() {
            let of_check: Vec<&Value> = self.differences.iter().filter(|one| one["check"] == *check).collect();
            for one in of_check.iter().take(LINES) {
                let text = |key: &str| one[key].as_str().unwrap_or("-").to_owned();
                lines.push(format!(
                    "{}: {check} ({}): {} at {} to {}: expected {}, Istio: {}",
                    self.world,
                    of_check.len(),
                    text("caller"),
                    text("cluster"),
                    text("host"),
                    text("expected"),
                    text("istio")
                ));
            }
        }
        lines
    }
}

impl Judge {
    /// Judges all worlds of a folder.
    pub(crate) fn judge(&self, folder: &Path) -> anyhow::Result<Vec<Verdict>> {
        let output = Command::new(&self.program)
            .args(["-json", "-parallel", &self.parallel.to_string()])
            .arg(folder)
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut verdicts = Vec::new();
        for line in text.lines() {
            let value: Value = serde_json::from_str(line).with_context(|| format!("the judge said: {line}"))?;
            verdicts.push(Verdict {
                world: value["World"].as_str().or(value["world"].as_str()).unwrap_or_default().to_owned(),
                differences: value["verdicts"].as_array().cloned().unwrap_or_default(),
                error: value["error"].as_str().map(str::to_owned),
            });
        }
        let worlds = std::fs::read_dir(folder)?.count();
        if verdicts.len() != worlds {
            bail!("the judge answered for {} of {worlds} worlds ({})", verdicts.len(), output.status);
        }
        Ok(verdicts)
    }
}
