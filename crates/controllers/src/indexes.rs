//! Indexes of the shared caches. Each answers one question in time proportional to its answer.

use mapi_api::{Machine, Node, Object, names};
use mapi_runtime::store::IndexFn;

/// Machines by the UID of their controlling MachineSet.
pub const OWNER: &str = "owner";
/// Machines and Nodes by `spec.providerID`. Empty ones are left out.
pub const PROVIDER_ID: &str = "providerID";
/// Machines and Nodes by each of their InternalIPs.
pub const ADDRESS: &str = "address";
/// Machines by the name of the Node that they became.
pub const NODE: &str = "node";
/// Machines without a controller owner, by namespace.
pub const ORPHANS: &str = "orphans";
/// Control-plane Nodes, under the one value `true`.
pub const CONTROL_PLANE: &str = "controlPlane";

/// Indexes of the Machine cache.
pub const MACHINE: &[(&str, IndexFn<Machine>)] = &[
    (OWNER, |m| m.set_owner().map(|o| o.uid.clone()).into_iter().collect()),
    (PROVIDER_ID, |m| m.provider_id().map(String::from).into_iter().collect()),
    (ADDRESS, |m| m.internal_ips().map(String::from).collect()),
    (NODE, |m| m.node_name().map(String::from).into_iter().collect()),
    (ORPHANS, |m| match m.controller_owner() {
        None => vec![m.metadata.namespace.clone().unwrap_or_default()],
        Some(_) => vec![],
    }),
];

/// Indexes of the Node cache.
pub const NODES: &[(&str, IndexFn<Node>)] = &[
    (PROVIDER_ID, |n| n.provider_id().map(String::from).into_iter().collect()),
    (ADDRESS, |n| n.internal_ips().map(String::from).collect()),
    (CONTROL_PLANE, |n| if is_control_plane(n) { vec!["true".into()] } else { vec![] }),
];

/// Whether a Node belongs to the control plane: by the presence of either role label.
pub fn is_control_plane(node: &Node) -> bool {
    node.label(names::label::NODE_CONTROL_PLANE).is_some() || node.label(names::label::NODE_MASTER).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn index<T: serde::de::DeserializeOwned>(
        of: &[(&str, IndexFn<T>)],
        name: &str,
        object: serde_json::Value,
    ) -> Vec<String> {
        let object = serde_json::from_value(object).expect("object");
        let (_, function) = of.iter().find(|(n, _)| *n == name).expect("index exists");
        function(&object)
    }

    // N18
    #[test]
    fn what_has_no_provider_id_or_address_is_not_indexed_and_every_internal_ip_is() {
        for value in [json!({}), json!({"spec": {"providerID": ""}}), json!({"spec": {}})] {
            assert!(index(MACHINE, PROVIDER_ID, value.clone()).is_empty(), "{value}");
            assert!(index(NODES, PROVIDER_ID, value.clone()).is_empty(), "{value}");
            assert!(index(MACHINE, ADDRESS, value.clone()).is_empty(), "{value}");
            assert!(index(NODES, ADDRESS, value).is_empty());
        }
        let addresses = json!({"status": {"addresses": [
            {"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "a"},
            {"type": "InternalIP", "address": "fd00::1"}]}});
        assert_eq!(index(MACHINE, ADDRESS, addresses.clone()), ["10.0.0.1", "fd00::1"]);
        assert_eq!(index(NODES, ADDRESS, addresses), ["10.0.0.1", "fd00::1"]);
    }

    #[test]
    fn a_machine_with_any_controller_is_no_orphan() {
        let owned = |controller: bool| {
            json!({"metadata": {"namespace": "ns", "ownerReferences": [
                {"apiVersion": "x/v1", "kind": "Other", "name": "o", "uid": "u", "controller": controller}]}})
        };
        assert!(index(MACHINE, ORPHANS, owned(true)).is_empty());
        assert_eq!(index(MACHINE, ORPHANS, owned(false)), ["ns"]);
    }
}
