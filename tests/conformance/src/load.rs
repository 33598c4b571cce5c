//! Reads the files of cases. Never here: what a case means.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value};

use crate::{
    case::{Case, File},
    words::Words,
};

/// A case that is ready to be done.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    /// The file and the claim: `create: a name is given once`.
    pub title: String,
    pub words: Words,
    pub case: Case,
}

/// Who speaks to the server in a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Driver {
    /// The requests of a case, as they stand there.
    Http,
    /// The command line.
    Kubectl,
    /// The official client for Python.
    Python,
}

impl Driver {
    pub(crate) const ALL: [Driver; 3] = [Driver::Http, Driver::Kubectl, Driver::Python];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Driver::Http => "http",
            Driver::Kubectl => "kubectl",
            Driver::Python => "python",
        }
    }
}

impl Loaded {
    pub(crate) fn driver(&self) -> Driver {
        let has_kubectl = self.case.steps.iter().any(|step| step.kubectl.is_some());
        if has_kubectl { Driver::Kubectl } else { Driver::Http }
    }
}

/// The folder of this package.
pub(crate) fn package() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All cases, a row of one being a case of its own, in the order of files and lines.
pub(crate) fn cases() -> anyhow::Result<Vec<Loaded>> {
    let shared: Map<String, Value> = read(&package().join("words.yaml"))?;
    let mut files: Vec<PathBuf> = fs::read_dir(package().join("cases"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let mut loaded = Vec::new();
    for file in &files {
        let subject = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let File { define, cases } = read(file)?;
        let mut words = Words::default();
        words.extend(&shared);
        words.extend(&define);
        for case in cases {
            loaded.extend(rows(&subject, &words, case)?);
        }
    }
    let mut titles = BTreeSet::new();
    for Loaded { title, .. } in &loaded {
        ensure!(titles.insert(title), "two cases are called `{title}`");
    }
    Ok(loaded)
}

fn rows(subject: &str, words: &Words, case: Case) -> anyhow::Result<Vec<Loaded>> {
    let single = [Map::new()];
    let rows = if case.rows.is_empty() { &single[..] } else { &case.rows };
    rows.iter()
        .map(|row| {
            let mut words = words.clone();
            words.extend(&case.define);
            words.extend(row);
            let title = title(&words, &case).with_context(|| format!("case `{subject}: {}`", case.name))?;
            let title = format!("{subject}: {title}");
            Ok(Loaded { title, words, case: case.clone() })
        })
        .collect()
}

/// A title that names the namespace would be another in each run.
fn title(words: &Words, case: &Case) -> anyhow::Result<String> {
    let mut words = words.clone();
    words.set("ns", "(its namespace)");
    words.set("id", "(its name)");
    words.text(&case.name)
}

fn read<T: serde::de::DeserializeOwned>(file: &Path) -> anyhow::Result<T> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read `{}`", file.display()))?;
    serde_saphyr::from_str(&text).map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))
}
