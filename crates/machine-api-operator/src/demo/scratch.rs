//! What the demo leaves on the disk while it runs: a folder with the log and the kubeconfig. All of it goes with it.
//!
//! Never here: what is in the files.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf, absolute};

use anyhow::{Context as _, bail};
use kube::config::Kubeconfig;

/// Folders of killed demos may have the process's number; more than a few of one number are no chance.
const ATTEMPTS: u32 = 100;

/// A folder that nobody else may read. Dropping it removes it.
pub struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// Makes the folder.
    pub fn new() -> anyhow::Result<Self> {
        let parent = std::env::temp_dir();
        for attempt in 0..ATTEMPTS {
            let suffix = if attempt == 0 { String::new() } else { format!("-{attempt}") };
            let folder = parent.join(format!("machine-api-demo-{}{suffix}", std::process::id()));
            // Making it fails if anything is there, a link that somebody put in our way included.
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(Self { folder }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot make folder `{}`", folder.display()));
                }
            }
        }
        bail!("cannot make a folder in `{}`: all names are taken", parent.display())
    }

    /// A new file for the log.
    pub fn log(&self) -> anyhow::Result<File> {
        create(&self.log_path())
    }

    /// The last lines of the log.
    pub fn log_tail(&self, lines: usize) -> String {
        let text = fs::read(self.log_path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join("log")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("cannot remove folder `{}`: {error}", self.folder.display());
        }
    }
}

/// The file for the kubeconfig, for our eyes only. Dropping it removes it.
pub struct KubeconfigFile {
    /// Where it is, whatever the folder one is in.
    pub path: PathBuf,
    file: File,
}

impl KubeconfigFile {
    /// Makes the file, empty: at `wanted`, or in the scratch folder. What is there already is never overwritten.
    pub fn new(wanted: Option<&Path>, scratch: &Scratch) -> anyhow::Result<Self> {
        let path = match wanted {
            Some(path) => absolute(path).with_context(|| format!("no such path: `{}`", path.display()))?,
            None => scratch.folder.join("kubeconfig"),
        };
        let file = create(&path)?;
        Ok(Self { path, file })
    }

    /// Writes it, with the demo's namespace as that of the user.
    pub fn write(&mut self, config: &Kubeconfig, namespace: &str) -> anyhow::Result<()> {
        let mut config = config.clone();
        for context in config.contexts.iter_mut().filter_map(|named| named.context.as_mut()) {
            context.namespace = Some(namespace.into());
        }
        // JSON is YAML.
        let text = serde_json::to_string_pretty(&config).context("cannot write the kubeconfig as text")?;
        writeln!(self.file, "{text}").with_context(|| format!("cannot write `{}`", self.path.display()))
    }
}

impl Drop for KubeconfigFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            eprintln!("cannot remove `{}`: {error}", self.path.display());
        }
    }
}

fn create(path: &Path) -> anyhow::Result<File> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    made.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            anyhow::anyhow!(
                "`{}` exists already and is not overwritten: remove it, or give another name",
                path.display()
            )
        }
        _ => anyhow::Error::new(error).context(format!("cannot make `{}`", path.display())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_and_nothing_is_overwritten() {
        let scratch = Scratch::new().unwrap();
        let other = Scratch::new().unwrap();
        assert_ne!(scratch.folder, other.folder);
        let mut file = KubeconfigFile::new(None, &scratch).unwrap();
        file.write(&Kubeconfig::default(), "ns").unwrap();
        let error = KubeconfigFile::new(Some(&file.path), &scratch).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("exists already"), "{error}");
        let (path, folder) = (file.path.clone(), scratch.folder.clone());
        assert!(path.exists());
        drop(file);
        assert!(!path.exists());
        drop(scratch);
        assert!(!folder.exists() && other.folder.exists());
    }

    #[test]
    fn users_of_the_kubeconfig_are_in_the_namespace_of_the_demo() {
        let scratch = Scratch::new().unwrap();
        let mut file = KubeconfigFile::new(None, &scratch).unwrap();
        let text = r#"{"contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}], "current-context": "c"}"#;
        file.write(&Kubeconfig::from_yaml(text).unwrap(), "ns").unwrap();
        let written = Kubeconfig::read_from(&file.path).unwrap();
        let context = written.contexts[0].context.as_ref().unwrap();
        assert_eq!((context.namespace.as_deref(), context.cluster.as_str()), (Some("ns"), "k"));
    }
}
