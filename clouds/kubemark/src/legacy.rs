//! The provider spec of the historic provider, read as one of today.

use std::collections::BTreeMap;

use mapi_api::duration::Span;
use mapi_api::fault::{Fault, FaultArgs, FaultKind};

use crate::reader::Fields;
use crate::spec::{Delay, KubemarkSpec, ProviderIdFormat, TimingSpec};

/// Reads the historic fields. What the historic provider got wrong is read as its documentation promised it.
pub fn read(fields: &mut Fields<'_>) -> KubemarkSpec {
    if let Some(image) = fields.text("image").filter(|image| !image.is_empty()) {
        fields.mention("image", image, "is accepted and ignored: no image is run");
    }
    let capacity = BTreeMap::from([
        ("cpu".into(), fields.count("numCores").unwrap_or(1).to_string()),
        ("memory".into(), fields.count("memoryCapacity").map_or("3840Mi".into(), |bytes| bytes.to_string())),
    ]);
    let delete = fields.span("deletionTimeout").map(|duration| Delay { duration, jitter: 0.0 });
    KubemarkSpec {
        capacity,
        // The historic provider named Nodes after random UUIDs; that of the Machine is as unique and can be found again.
        node_name_template: "{uuid}".into(),
        provider_id_format: ProviderIdFormat::Legacy,
        timing: TimingSpec { delete, ..TimingSpec::default() },
        faults: read_health(fields).into_iter().collect(),
        ..KubemarkSpec::default()
    }
}

fn read_health(fields: &mut Fields<'_>) -> Option<Fault> {
    let after = fields.flag("turnUnhealthyAfter").unwrap_or_default();
    let flaps = fields.flag("turnUnhealthyPeriodically").unwrap_or_default();
    let healthy = fields.span("healthyDuration").unwrap_or_default();
    let unhealthy = fields.span("unhealthyDuration").unwrap_or_default();
    if after {
        let is_swapped = healthy.is_zero() && !unhealthy.is_zero();
        if is_swapped {
            let value = mapi_api::duration::format(unhealthy.0);
            fields.mention("unhealthyDuration", value, "is read as healthyDuration, which is missing");
        }
        let wait = if is_swapped { unhealthy } else { healthy };
        return Some(Fault { after: Some(wait), ..Fault::new(FaultKind::NodeNotReady) });
    }
    if !flaps {
        return None;
    }
    if (healthy.0 + unhealthy.0).is_zero() {
        fields.complain("turnUnhealthyPeriodically", "true", "needs healthyDuration and unhealthyDuration");
        return None;
    }
    let args = FaultArgs {
        ready: Some(at_least(healthy)),
        not_ready: Some(at_least(unhealthy)),
        ..FaultArgs::default()
    };
    Some(Fault { args, ..Fault::new(FaultKind::NodeFlap) })
}

/// A second, where the historic provider had no time at all: a Node cannot change faster than it is written.
fn at_least(span: Span) -> Span {
    span.max(Span::seconds(1))
}
