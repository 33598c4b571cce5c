//! What is wrong with a provider spec that could be read. Pure; admission and the controllers say the same.

use mapi_api::duration::{self, Span};
use mapi_api::fault::{Fault, FaultKind};
use mapi_api::quantity;
use mapi_cloud::{Finding, Findings};

use crate::network::Cidr;
use crate::spec::{KubemarkSpec, Network, SIZES};

/// Half a minute: longer than any list of a real cloud was seen to lag behind its creates. It bounds how long the deletion of
/// a machine waits whose spec cannot be read.
pub const VISIBILITY_LIMIT: Span = Span::seconds(30);

/// The range that the addresses of simulated pods come from.
const POD_RANGE: &str = "10.240.0.0/12";

/// Complaints about a filled spec.
pub fn spec(spec: &KubemarkSpec) -> Findings {
    let mut findings = vec![];
    sizes(spec, &mut findings);
    names(spec, &mut findings);
    network(&spec.network, &mut findings);
    times(spec, &mut findings);
    for (n, fault) in spec.faults.iter().enumerate() {
        findings.extend(self::fault(&format!("faults[{n}]"), fault).0);
    }
    Findings(findings)
}

fn sizes(spec: &KubemarkSpec, findings: &mut Vec<Finding>) {
    for (name, value) in &spec.capacity {
        if quantity::millis(value).is_none_or(|millis| millis == 0) {
            let path = format!("capacity.{name}");
            findings.push(Finding::error(path, value, "must be a quantity above 0, for example 4 or 16Gi"));
        }
    }
    if ["cpu", "memory"].iter().any(|name| !spec.capacity.contains_key(*name)) {
        let known = SIZES.map(|(name, _, _)| name).join(", ");
        let message = format!("must be one of {known}, or capacity.cpu and capacity.memory must be given");
        findings.push(Finding::error("instanceType", &spec.instance_type, message));
    }
    for (name, value) in &spec.allocatable {
        let path = format!("allocatable.{name}");
        let most = spec.capacity.get(name).and_then(|most| quantity::millis(most));
        match (quantity::millis(value), most) {
            (None, _) => findings.push(Finding::error(path, value, "must be a quantity, for example 3500m")),
            (Some(part), Some(whole)) if part > whole => {
                findings.push(Finding::error(path, value, "must not be above the capacity"));
            }
            (Some(_), None) => findings.push(Finding::error(path, value, "is not part of the capacity")),
            (Some(_), Some(_)) => {}
        }
    }
}

fn names(spec: &KubemarkSpec, findings: &mut Vec<Finding>) {
    let template = &spec.node_name_template;
    let plain = template.replace("{machine}", "a").replace("{instance}", "a").replace("{uuid}", "a");
    if !is_subdomain(&plain) {
        let message =
            "must be a DNS name in lower case, in which {machine}, {instance} and {uuid} are replaced";
        findings.push(Finding::error("nodeNameTemplate", template, message));
    } else if plain == *template {
        findings.push(Finding::error(
            "nodeNameTemplate",
            template,
            "must hold {machine}, {instance} or {uuid}",
        ));
    }
    for (path, value) in
        [("region", &spec.region), ("zone", &spec.zone), ("instanceType", &spec.instance_type)]
    {
        if !is_label_value(value) {
            findings.push(Finding::error(path, value, LABEL_VALUE));
        }
    }
    for (key, value) in &spec.node_labels {
        if !is_label_key(key) {
            findings.push(Finding::error(
                "nodeLabels",
                key,
                "must be a label key, for example example.com/rack",
            ));
        }
        if !is_label_value(value) {
            findings.push(Finding::error(format!("nodeLabels.{key}"), value, LABEL_VALUE));
        }
    }
    for (n, taint) in spec.taints.iter().flatten().enumerate() {
        if !is_label_key(&taint.key) || !is_label_value(taint.value.as_deref().unwrap_or_default()) {
            findings.push(Finding::error(
                format!("registerWithTaints[{n}]"),
                &taint.key,
                "must have a key and a value in the form of labels",
            ));
        }
    }
}

fn network(network: &Network, findings: &mut Vec<Finding>) {
    let pods = Cidr::parse(POD_RANGE).expect("the range of pods is one");
    let mut families = vec![];
    for (n, text) in network.cidr.iter().enumerate() {
        let path = format!("network.cidr[{n}]");
        match Cidr::parse(text) {
            Err(message) => findings.push(Finding::error(path, text, message)),
            Ok(range) if range.overlaps(pods) => {
                let message = format!("must not overlap {POD_RANGE}, where simulated pods live");
                findings.push(Finding::error(path, text, message));
            }
            Ok(range) if families.contains(&range.is_v6()) => {
                findings.push(Finding::error(path, text, "must be the only range of its family"));
            }
            Ok(range) => families.push(range.is_v6()),
        }
    }
    for (n, family) in network.ip_families.iter().enumerate() {
        let path = format!("network.ipFamilies[{n}]");
        if !matches!(family.as_str(), "IPv4" | "IPv6") {
            findings.push(Finding::error(path, family, "must be IPv4 or IPv6"));
        } else if network.ip_families[..n].contains(family) {
            findings.push(Finding::error(path, family, "must be named once"));
        }
    }
}

fn times(spec: &KubemarkSpec, findings: &mut Vec<Finding>) {
    let visible = spec.timing.create_visible.unwrap_or_default().duration;
    if visible > VISIBILITY_LIMIT {
        findings.push(too_late("timing.createVisible", visible));
    }
    let heartbeat = &spec.heartbeat;
    let text = |span: Span| duration::format(span.0);
    if heartbeat.lease_renew < Span::seconds(1) {
        let path = "heartbeat.leaseRenew";
        findings.push(Finding::error(path, text(heartbeat.lease_renew), "must be at least 1s"));
    } else if heartbeat.lease_renew >= heartbeat.lease_duration {
        let message = "must be longer than heartbeat.leaseRenew";
        findings.push(Finding::error("heartbeat.leaseDuration", text(heartbeat.lease_duration), message));
    }
    if heartbeat.status < Span::seconds(10) {
        let path = "heartbeat.status";
        findings.push(Finding::error(path, text(heartbeat.status), "must be at least 10s"));
    }
}

fn too_late(path: &str, span: Span) -> Finding {
    let most = duration::format(VISIBILITY_LIMIT.0);
    Finding::error(path, duration::format(span.0), format!("must be at most {most}"))
}

/// Complaints about one fault.
pub fn fault(path: &str, fault: &Fault) -> Findings {
    let mut findings = vec![];
    let mut complain = |field: &str, value: String, message: &str| {
        findings.push(Finding::error(format!("{path}.{field}"), value, message));
    };
    let args = &fault.args;
    if fault.count.is_some() && fault.kind != FaultKind::CreateError {
        complain("count", String::new(), "has a meaning for CreateError only");
    }
    match fault.kind {
        FaultKind::NodeFlap => {
            for (field, value) in [("args.ready", args.ready), ("args.notReady", args.not_ready)] {
                if value.unwrap_or_default() < Span::seconds(1) {
                    complain(field, String::new(), "must be at least 1s");
                }
            }
        }
        FaultKind::ApiThrottle if args.rps.unwrap_or_default() == 0 => {
            complain("args.rps", String::new(), "must be at least 1");
        }
        FaultKind::Quota if args.cpu.is_none() && args.instances.is_none() && args.per_zone.is_none() => {
            complain("args", String::new(), "must hold instances, cpu or perZone");
        }
        FaultKind::CreateDuplicateVisible if fault.duration.unwrap_or_default() > VISIBILITY_LIMIT => {
            findings.push(too_late(&format!("{path}.duration"), fault.duration.unwrap_or_default()));
        }
        FaultKind::CreateError
        | FaultKind::CreateErrorButCreated
        | FaultKind::CreateDuplicateVisible
        | FaultKind::StuckProvisioning
        | FaultKind::NeverJoin
        | FaultKind::NodeNotReady
        | FaultKind::NodeUnknown
        | FaultKind::NodeDeleted
        | FaultKind::InstanceTerminated
        | FaultKind::InstanceStopped
        | FaultKind::DeleteStuck
        | FaultKind::ApiThrottle
        | FaultKind::ApiOutage
        | FaultKind::Quota
        | FaultKind::ZoneOutage => {}
    }
    Findings(findings)
}

const LABEL_VALUE: &str =
    "must be a label value: up to 63 letters, digits, `-`, `_` and `.`, letter or digit at both ends";

/// Whether a text can be the name of a Node.
pub fn is_subdomain(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(is_inner) && !part.starts_with('-') && !part.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_part)
}

fn is_label_value(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_end = |c: char| c.is_ascii_alphanumeric();
    text.len() <= 63
        && text.chars().all(is_inner)
        && (text.is_empty() || text.starts_with(is_end) && text.ends_with(is_end))
}

fn is_label_key(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(is_subdomain) && !name.is_empty() && is_label_value(name)
}
