//! Brings up a control plane by hand: `cargo run -p controlplane`. It ends with Ctrl-C.

use controlplane::{ControlPlane, Options};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options { scheduler: true, audit: true, ..Options::default() };
    let plane = ControlPlane::start(options).await?;
    println!("export KUBECONFIG={}", plane.admin_kubeconfig().display());
    tokio::signal::ctrl_c().await?;
    Ok(())
}
