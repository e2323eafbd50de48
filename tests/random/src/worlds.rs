//! A world on disk: the documents, and what the suite's own programs make of them.

use anyhow::{Context, bail};
use fleet_generator::files;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The suite's programs, as people use them.
pub(crate) struct Programs {
    pub(crate) folder: PathBuf,
}

impl Programs {
    /// Writes a world.
    pub(crate) fn write(&self, world: &Path, documents: &[Value], seed: u64) -> anyhow::Result<()> {
        let fleet = world.join("fleet");
        for file in files::spread(documents, seed) {
            let path = fleet.join(&file.relative);
            fs::create_dir_all(path.parent().context("a file stands in a folder")?)?;
            fs::write(path, &file.bytes)?;
        }
        self.render(world)
    }

    /// Renders the documents of a world and says what they mean.
    pub(crate) fn render(&self, world: &Path) -> anyhow::Result<()> {
        let fleet = world.join("fleet");
        let fleet = fleet.to_str().context("paths of worlds are text")?;
        let rendered = world.join("rendered");
        let rendered = rendered.to_str().context("paths of worlds are text")?;
        self.run("kubectl-mesh", &["render", "-f", fleet, "--all", "--output-dir", rendered])?;
        fs::write(world.join("access.json"), self.run("kubectl-mesh-authz", &["who-can", "-f", fleet, "-o", "json"])?)?;
        fs::write(world.join("explain.json"), self.run("kubectl-mesh", &["explain", "-f", fleet, "-o", "json"])?)?;
        Ok(())
    }

    fn run(&self, program: &str, arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
        let path = self.folder.join(program);
        let output =
            Command::new(&path).args(arguments).output().with_context(|| format!("cannot start {}", path.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("{program} {} failed: {}", arguments[0], said.lines().next().unwrap_or_default());
        }
        Ok(output.stdout)
    }
}

/// Copies a folder; what stood there before goes.
pub(crate) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
