//! Where the programs of the control plane come from. The script knows; this asks it.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, bail};

/// The folder that holds etcd, kube-apiserver, kube-controller-manager and kube-scheduler.
///
/// It is `KUBEBUILDER_ASSETS` if that is set, else they are built once with Go, which takes minutes and shows
/// its progress on stderr. This blocks meanwhile.
pub fn find_binaries() -> anyhow::Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/controlplane.sh");
    let output = Command::new(&script)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run `{}`", script.display()))?;
    if !output.status.success() {
        bail!("cannot find or build the control plane: `{}` says why on stderr", script.display());
    }
    let folder = String::from_utf8(output.stdout).context("the folder of the programs is not UTF-8")?;
    Ok(PathBuf::from(folder.trim_end_matches('\n')))
}
