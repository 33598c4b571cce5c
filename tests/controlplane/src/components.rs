//! The command lines of the four programs.

use std::{fs, path::Path, time::Duration};

use anyhow::Context as _;

use crate::{Component, Options};

/// Loops of the controller manager that nothing without kubelets and volumes needs. Each costs memory and CPU
/// on every start; everything that looks at nodes, pods, owners, budgets and namespaces stays.
const UNUSED_LOOPS: &str = "*,-horizontal-pod-autoscaler-controller,-persistentvolume-binder-controller,\
-persistentvolume-attach-detach-controller,-persistentvolume-expander-controller,\
-persistentvolume-protection-controller,-persistentvolumeclaim-protection-controller,\
-ephemeral-volume-controller,-volumeattributesclass-protection-controller,-bootstrap-signer-controller,\
-token-cleaner-controller,-certificatesigningrequest-signing-controller,\
-certificatesigningrequest-approving-controller,-certificatesigningrequest-cleaner-controller,\
-podcertificaterequest-cleaner-controller,-service-cidr-controller,-storage-version-migrator-controller,\
-legacy-serviceaccount-token-cleaner-controller,-ttl-after-finished-controller";

/// Writes only, once each, when the answer is known.
const AUDIT_POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived", "ResponseStarted", "Panic"],
  "rules": [
    {"level": "None", "verbs": ["get", "list", "watch"]},
    {"level": "None", "nonResourceURLs": ["/*"]},
    {"level": "Metadata"}
  ]
}
"#;

/// The ports of one control plane, all on the loopback address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) apiserver: u16,
    pub(crate) controller_manager: u16,
    pub(crate) scheduler: u16,
}

impl Component {
    /// The file name of the program.
    pub fn program(self) -> &'static str {
        match self {
            Component::Etcd => "etcd",
            Component::ApiServer => "kube-apiserver",
            Component::ControllerManager => "kube-controller-manager",
            Component::Scheduler => "kube-scheduler",
        }
    }
}

/// A command line whose paths are relative to the folder of the control plane, in which the programs run.
pub(crate) fn arguments(component: Component, ports: &Ports, options: &Options) -> Vec<String> {
    match component {
        Component::Etcd => etcd(ports),
        Component::ApiServer => apiserver(ports, options),
        Component::ControllerManager => controller_manager(ports, options),
        Component::Scheduler => scheduler(ports),
    }
}

/// Writes the files that the command lines name and that are no certificates.
pub(crate) fn write_files(directory: &Path) -> anyhow::Result<()> {
    fs::write(directory.join("audit-policy.json"), AUDIT_POLICY).context("cannot write the audit policy")
}

fn etcd(ports: &Ports) -> Vec<String> {
    let client = format!("http://127.0.0.1:{}", ports.etcd);
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer);
    vec![
        "--name=only".into(),
        "--data-dir=etcd".into(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=only={peer}"),
        // The data need not survive a power cut.
        "--unsafe-no-fsync".into(),
        // The default of 2 GiB is in reach of a benchmark with thousands of nodes between two compactions.
        "--quota-backend-bytes=8589934592".into(),
        "--log-level=warn".into(),
    ]
}

fn apiserver(ports: &Ports, options: &Options) -> Vec<String> {
    let mut arguments = vec![
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd),
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={}", ports.apiserver),
        "--tls-cert-file=server.crt".into(),
        "--tls-private-key-file=server.key".into(),
        "--client-ca-file=ca.crt".into(),
        "--authorization-mode=Node,RBAC".into(),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        "--service-account-key-file=tokens.pub".into(),
        "--service-account-signing-key-file=tokens.key".into(),
        "--service-cluster-ip-range=10.0.0.0/24".into(),
        // Endpoints may not be in the loopback range, and no pod runs that would ask for them.
        "--endpoint-reconciler-type=none".into(),
        "--allow-privileged=true".into(),
        "--profiling=false".into(),
    ];
    if let Some(toleration) = options.pod_toleration {
        let toleration_s = toleration.as_secs();
        arguments.push(format!("--default-not-ready-toleration-seconds={toleration_s}"));
        arguments.push(format!("--default-unreachable-toleration-seconds={toleration_s}"));
    }
    if options.audit {
        arguments.extend([
            "--audit-policy-file=audit-policy.json".into(),
            "--audit-log-path=audit.log".into(),
            // Never turned over: a reader counts lines from the first to the last.
            "--audit-log-maxsize=100000".into(),
        ]);
    }
    arguments
}

fn controller_manager(ports: &Ports, options: &Options) -> Vec<String> {
    let mut arguments = serving(ports.controller_manager, Component::ControllerManager);
    arguments.extend([
        "--use-service-account-credentials=true".into(),
        "--service-account-private-key-file=tokens.key".into(),
        "--root-ca-file=ca.crt".into(),
        format!("--controllers={UNUSED_LOOPS}"),
        // The garbage collector and the namespace controller delete one object per request.
        "--kube-api-qps=1000".into(),
        "--kube-api-burst=2000".into(),
    ]);
    if let Some(grace) = options.node_monitor_grace {
        let period = (grace / 4).clamp(Duration::from_millis(100), Duration::from_secs(5));
        arguments.extend([
            format!("--node-monitor-grace-period={}ms", grace.as_millis()),
            format!("--node-startup-grace-period={}ms", grace.as_millis()),
            format!("--node-monitor-period={}ms", period.as_millis()),
            "--node-eviction-rate=1000".into(),
            "--secondary-node-eviction-rate=1000".into(),
        ]);
    }
    arguments
}

fn scheduler(ports: &Ports) -> Vec<String> {
    let mut arguments = serving(ports.scheduler, Component::Scheduler);
    arguments.extend(["--kube-api-qps=1000".into(), "--kube-api-burst=2000".into()]);
    arguments
}

/// What the two clients of the API server have in common.
fn serving(port: u16, component: Component) -> Vec<String> {
    vec![
        format!("--kubeconfig={}.kubeconfig", component.program()),
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        "--tls-cert-file=server.crt".into(),
        "--tls-private-key-file=server.key".into(),
        "--leader-elect=false".into(),
        "--profiling=false".into(),
    ]
}
