//! Where the project is, and which files and packages it has.
//!
//! Never here: what a file or package may be; that is `tidy`'s.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, bail};
use serde::Deserialize;

/// The folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package is a folder of the workspace").into()
}

/// A text file of the project.
pub struct Source {
    /// Path below the root, with slashes.
    pub path: String,
    /// The whole content.
    pub text: String,
}

/// Every text file of the project, sorted by path. Build folders and hidden folders but `.ci` and `.cargo` are left out.
pub fn sources() -> anyhow::Result<Vec<Source>> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot list `{}`", folder.display()))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                if is_ours(&name, folder == root) {
                    folders.push(entry.path());
                }
            } else if let Some(text) = read_text(&entry.path())? {
                found.push(Source { path: relative(&root, &entry.path()), text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The Rust files among them.
pub fn rust_sources() -> anyhow::Result<Vec<Source>> {
    Ok(sources()?.into_iter().filter(|source| source.path.ends_with(".rs")).collect())
}

fn is_ours(folder: &str, at_the_top: bool) -> bool {
    let built = at_the_top && ["target", "build", "bin"].contains(&folder);
    !built && (!folder.starts_with('.') || [".ci", ".cargo"].contains(&folder))
}

fn read_text(path: &Path) -> anyhow::Result<Option<String>> {
    let bytes = fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    Ok(String::from_utf8(bytes).ok())
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).expect("the walk began at the root").to_string_lossy().replace('\\', "/")
}

/// A package of the workspace, as cargo sees its manifest.
#[derive(Deserialize)]
pub struct Package {
    /// Package name.
    pub name: String,
    /// Path of its manifest.
    pub manifest_path: PathBuf,
    /// Everything in its dependency tables.
    pub dependencies: Vec<Dependency>,
}

impl Package {
    /// Its folder below the root, with slashes.
    pub fn folder(&self) -> String {
        let folder = self.manifest_path.parent().expect("a manifest is in a folder");
        folder.strip_prefix(root()).unwrap_or(folder).to_string_lossy().replace('\\', "/")
    }
}

/// One entry of a dependency table.
#[derive(Deserialize)]
pub struct Dependency {
    /// Name of the package that is depended upon.
    pub name: String,
    /// `dev`, `build`, or nothing for what the product is made of.
    pub kind: Option<String>,
    /// Where it is when it is a package of this workspace.
    pub path: Option<PathBuf>,
}

/// The packages of the workspace.
pub fn packages() -> anyhow::Result<Vec<Package>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .context("cannot run `cargo metadata`")?;
    if !output.status.success() {
        bail!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let Metadata { packages } =
        serde_json::from_slice(&output.stdout).context("cannot read the output of `cargo metadata`")?;
    Ok(packages)
}
