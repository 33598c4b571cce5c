//! Files that are generated: written, or compared with what is committed.
//!
//! Never here: their content.

use std::path::Path;
use std::{fs, io};

use anyhow::{Context as _, bail};

use crate::workspace;

/// A generated file.
pub struct File {
    /// Path below the root, with slashes.
    pub path: String,
    /// The whole content.
    pub text: String,
}

/// Writes the files that differ and says which.
pub fn write(files: &[File]) -> anyhow::Result<()> {
    let root = workspace::root();
    for file in stale(&root, files)? {
        let path = root.join(&file.path);
        let folder = path.parent().expect("a generated file is in a folder");
        fs::create_dir_all(folder).with_context(|| format!("cannot make folder `{}`", folder.display()))?;
        fs::write(&path, &file.text).with_context(|| format!("cannot write `{}`", path.display()))?;
        println!("wrote {}", file.path);
    }
    Ok(())
}

/// Fails when a file is not as it would be written.
pub fn check(files: &[File]) -> anyhow::Result<()> {
    let stale: Vec<_> =
        stale(&workspace::root(), files)?.into_iter().map(|file| file.path.as_str()).collect();
    if stale.is_empty() {
        return Ok(());
    }
    bail!("generated files are stale: run `make generate` and commit {}", stale.join(", "))
}

fn stale<'a>(root: &Path, files: &'a [File]) -> anyhow::Result<Vec<&'a File>> {
    let mut stale = Vec::new();
    for file in files {
        match fs::read_to_string(root.join(&file.path)) {
            Ok(text) if text == file.text => {}
            Ok(_) => stale.push(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => stale.push(file),
            Err(error) => return Err(error).with_context(|| format!("cannot read `{}`", file.path)),
        }
    }
    Ok(stale)
}
