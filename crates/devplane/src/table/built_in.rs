//! Columns of the kinds of Kubernetes, as a real API server has them. Never here: kinds of CRDs.

use jiff::Timestamp;
use serde_json::Value;

use super::cells::{entries, event, name, node, param, phase, pod, service, template};
use super::{age, heading, items, name_heading, number, pods, selector, text};

/// The columns of a kind, and what is in them.
pub(super) struct Layout {
    columns: &'static [Heading],
    pub cells: fn(&Value, Timestamp) -> Vec<Value>,
    pub conditions: fn(&Value) -> Option<Value>,
}

/// A column.
#[derive(Clone, Copy)]
enum Heading {
    Name,
    /// The name is not what matters.
    NameIfWide,
    Text(&'static str, &'static str),
    /// Shown with `-o wide` only.
    Wide(&'static str, &'static str),
    Integer(&'static str, &'static str),
    Boolean(&'static str, &'static str),
    Date(&'static str, &'static str),
}

use Heading::{Boolean, Date, Integer, Name, NameIfWide, Text, Wide};

const AGE: Heading = Text("Age", "Time since the object was made.");
const CONTAINERS: Heading = Wide("Containers", "Names of the containers.");
const IMAGES: Heading = Wide("Images", "Images of the containers.");
const SELECTOR: Heading = Wide("Selector", "Labels of the pods.");

impl Layout {
    pub(super) fn headings(&self) -> Value {
        let headings = self.columns.iter().map(|column| match *column {
            Name => name_heading(0),
            NameIfWide => name_heading(1),
            Text(name, description) => heading(name, "string", "", 0, description),
            Wide(name, description) => heading(name, "string", "", 1, description),
            Integer(name, description) => heading(name, "integer", "", 0, description),
            Boolean(name, description) => heading(name, "boolean", "", 0, description),
            Date(name, description) => heading(name, "date", "", 0, description),
        });
        headings.collect()
    }
}

/// The layout of what is kept in a bucket.
pub(super) fn layout(bucket: &str) -> &'static Layout {
    LAYOUTS.iter().find(|(name, _)| *name == bucket).map_or(&PLAIN, |(_, layout)| layout)
}

/// Of kinds that have none of their own.
const PLAIN: Layout = Layout {
    columns: &[Name, Date("Created At", "When the object was made.")],
    cells: |object, _| vec![name(object), object["metadata"]["creationTimestamp"].clone()],
    conditions: |_| None,
};

const LAYOUTS: &[(&str, Layout)] = &[
    (
        "namespaces",
        Layout {
            columns: &[Name, Text("Status", "Phase of the namespace."), AGE],
            cells: |object, now| vec![name(object), phase(object), age::of(object, now)],
            ..PLAIN
        },
    ),
    (
        "nodes",
        Layout {
            columns: &[
                Name,
                Text("Status", "Whether the node is ready."),
                Text("Roles", "Roles by its labels."),
                AGE,
                Text("Version", "Version of the kubelet."),
                Wide("Internal-IP", "Its address inside of the cluster."),
                Wide("External-IP", "Its address outside of the cluster."),
                Wide("OS-Image", "Operating system."),
                Wide("Kernel-Version", "Version of the kernel."),
                Wide("Container-Runtime", "What runs the containers."),
            ],
            cells: node,
            ..PLAIN
        },
    ),
    (
        "pods",
        Layout {
            columns: &[
                Name,
                Text("Ready", "Containers that are ready, of all."),
                Text("Status", "How the pod fares."),
                Text("Restarts", "How often containers were started again, and when last."),
                AGE,
                Wide("IP", "Address of the pod."),
                Wide("Node", "Node that it runs on."),
                Wide("Nominated Node", "Node that it is to run on."),
                Wide("Readiness Gates", "Gates that are open, of all."),
            ],
            cells: pod,
            conditions: pods::conditions,
        },
    ),
    (
        "configmaps",
        Layout {
            columns: &[Name, Text("Data", "Number of entries."), AGE],
            cells: |object, now| {
                let count = entries(&object["data"]) + entries(&object["binaryData"]);
                vec![name(object), count.into(), age::of(object, now)]
            },
            ..PLAIN
        },
    ),
    (
        "secrets",
        Layout {
            columns: &[Name, Text("Type", "What it is for."), Text("Data", "Number of entries."), AGE],
            cells: |object, now| {
                vec![
                    name(object),
                    text(object, &["type"]).into(),
                    entries(&object["data"]).into(),
                    age::of(object, now),
                ]
            },
            ..PLAIN
        },
    ),
    (
        "services",
        Layout {
            columns: &[
                Name,
                Text("Type", "How the service is reached."),
                Text("Cluster-IP", "Its address inside of the cluster."),
                Text("External-IP", "Where it is reached from outside."),
                Text("Port(s)", "Its ports."),
                AGE,
                Wide("Selector", "Labels of the pods."),
            ],
            cells: service,
            ..PLAIN
        },
    ),
    (
        "serviceaccounts",
        Layout {
            columns: &[Name, AGE],
            cells: |object, now| vec![name(object), age::of(object, now)],
            ..PLAIN
        },
    ),
    (
        "events",
        Layout {
            columns: &[
                Text("Last Seen", "When it happened last."),
                Text("Type", "Whether it is a warning."),
                Text("Reason", "What happened, in a word."),
                Text("Object", "What it happened to."),
                Wide("Subobject", "Part of the object."),
                Wide("Source", "Who says so."),
                Text("Message", "What happened."),
                Wide("First Seen", "When it happened first."),
                Wide("Count", "How often it happened."),
                NameIfWide,
            ],
            cells: event,
            ..PLAIN
        },
    ),
    (
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        Layout {
            columns: &[
                Name,
                Integer("Validations", "What has to be true."),
                Text("ParamKind", "What its parameters are."),
                AGE,
            ],
            cells: |object, now| {
                let validations = object["spec"]["validations"].as_array().map_or(0, Vec::len);
                vec![name(object), validations.into(), "<unset>".into(), age::of(object, now)]
            },
            ..PLAIN
        },
    ),
    (
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        Layout {
            columns: &[Name, Text("PolicyName", "The policy."), Text("ParamRef", "Its parameters."), AGE],
            cells: |object, now| {
                let policy = text(object, &["spec", "policyName"]);
                vec![
                    name(object),
                    policy.into(),
                    param(&object["spec"]["paramRef"]).into(),
                    age::of(object, now),
                ]
            },
            ..PLAIN
        },
    ),
    (
        "leases.coordination.k8s.io",
        Layout {
            columns: &[Name, Text("Holder", "Who holds it."), AGE],
            cells: |object, now| {
                vec![name(object), text(object, &["spec", "holderIdentity"]).into(), age::of(object, now)]
            },
            ..PLAIN
        },
    ),
    (
        "poddisruptionbudgets.policy",
        Layout {
            columns: &[
                Name,
                Text("Min Available", "Pods that must stay."),
                Text("Max Unavailable", "Pods that may be missing."),
                Integer("Allowed Disruptions", "Pods that may be evicted now."),
                AGE,
            ],
            cells: |object, now| {
                let limit = |field: &str| match &object["spec"][field] {
                    Value::Null => "N/A".into(),
                    Value::String(text) => text.clone(),
                    number => number.to_string(),
                };
                vec![
                    name(object),
                    limit("minAvailable").into(),
                    limit("maxUnavailable").into(),
                    number(object, &["status", "disruptionsAllowed"]).into(),
                    age::of(object, now),
                ]
            },
            ..PLAIN
        },
    ),
    (
        "deployments.apps",
        Layout {
            columns: &[
                Name,
                Text("Ready", "Pods that are ready, of those wanted."),
                Text("Up-to-date", "Pods of the newest template."),
                Text("Available", "Pods that have been ready for long enough."),
                AGE,
                CONTAINERS,
                IMAGES,
                SELECTOR,
            ],
            cells: |object, now| {
                let count = |field: &str| number(object, &["status", field]);
                let ready = format!("{}/{}", count("readyReplicas"), number(object, &["spec", "replicas"]));
                let (updated, available) = (count("updatedReplicas"), count("availableReplicas"));
                let counts = [ready.into(), updated.into(), available.into(), age::of(object, now)];
                [vec![name(object)], counts.into(), template(object)].concat()
            },
            ..PLAIN
        },
    ),
    (
        "daemonsets.apps",
        Layout {
            columns: &[
                Name,
                Integer("Desired", "Nodes that should run a pod."),
                Integer("Current", "Nodes that run one."),
                Integer("Ready", "Nodes whose pod is ready."),
                Integer("Up-to-date", "Nodes with a pod of the newest template."),
                Integer("Available", "Nodes whose pod has been ready for long enough."),
                Text("Node Selector", "Labels of the nodes."),
                AGE,
                CONTAINERS,
                IMAGES,
                SELECTOR,
            ],
            cells: |object, now| {
                let counts = [
                    "desiredNumberScheduled",
                    "currentNumberScheduled",
                    "numberReady",
                    "updatedNumberScheduled",
                    "numberAvailable",
                ];
                let counts = counts.map(|field| number(object, &["status", field]).into());
                let nodes = selector::labels(&object["spec"]["template"]["spec"]["nodeSelector"]);
                [
                    vec![name(object)],
                    counts.into(),
                    vec![nodes.into(), age::of(object, now)],
                    template(object),
                ]
                .concat()
            },
            ..PLAIN
        },
    ),
    (
        "replicasets.apps",
        Layout {
            columns: &[
                Name,
                Integer("Desired", "Pods that are wanted."),
                Integer("Current", "Pods that there are."),
                Integer("Ready", "Pods that are ready."),
                AGE,
                CONTAINERS,
                IMAGES,
                SELECTOR,
            ],
            cells: |object, now| {
                let counts = [["spec", "replicas"], ["status", "replicas"], ["status", "readyReplicas"]];
                let counts = counts.map(|path| number(object, &path).into());
                [vec![name(object)], counts.into(), vec![age::of(object, now)], template(object)].concat()
            },
            ..PLAIN
        },
    ),
    ("rolebindings.rbac.authorization.k8s.io", BINDING),
    ("clusterrolebindings.rbac.authorization.k8s.io", BINDING),
    ("mutatingwebhookconfigurations.admissionregistration.k8s.io", WEBHOOKS),
    ("validatingwebhookconfigurations.admissionregistration.k8s.io", WEBHOOKS),
    (
        "priorityclasses.scheduling.k8s.io",
        Layout {
            columns: &[
                Name,
                Integer("Value", "The priority."),
                Boolean("Global-Default", "Whether pods that name no class are of this one."),
                AGE,
                Text("PreemptionPolicy", "Whether others make room for such pods."),
            ],
            cells: |object, now| {
                let is_default = object["globalDefault"].as_bool().unwrap_or_default();
                vec![
                    name(object),
                    number(object, &["value"]).into(),
                    is_default.into(),
                    age::of(object, now),
                    text(object, &["preemptionPolicy"]).into(),
                ]
            },
            ..PLAIN
        },
    ),
];

const BINDING: Layout = Layout {
    columns: &[
        Name,
        Text("Role", "Role that is given."),
        AGE,
        Wide("Users", "Users who have it."),
        Wide("Groups", "Groups that have it."),
        Wide("ServiceAccounts", "Service accounts that have it."),
    ],
    cells: |object, now| {
        let role = format!("{}/{}", text(object, &["roleRef", "kind"]), text(object, &["roleRef", "name"]));
        let subjects = |kind: &str| {
            let subjects = items(object, &["subjects"]).iter().filter(|subject| subject["kind"] == kind);
            let names = subjects.map(|subject| match (kind, text(subject, &["name"])) {
                ("ServiceAccount", name) => format!("{}/{name}", text(subject, &["namespace"])),
                (_, name) => name.to_owned(),
            });
            names.collect::<Vec<_>>().join(", ").into()
        };
        let [users, groups, accounts] = ["User", "Group", "ServiceAccount"].map(subjects);
        vec![name(object), role.into(), age::of(object, now), users, groups, accounts]
    },
    ..PLAIN
};

const WEBHOOKS: Layout = Layout {
    columns: &[Name, Integer("Webhooks", "How many webhooks there are."), AGE],
    cells: |object, now| vec![name(object), items(object, &["webhooks"]).len().into(), age::of(object, now)],
    ..PLAIN
};
