//! Every label, annotation, finalizer, condition type, reason and message that users or other components match on.

/// API group of the Machine API.
pub const GROUP: &str = "machine.openshift.io";
/// Version of its kinds.
pub const VERSION: &str = "v1beta1";
/// Group and version.
pub const API_VERSION: &str = "machine.openshift.io/v1beta1";
/// Kind Machine.
pub const KIND_MACHINE: &str = "Machine";
/// Kind MachineSet.
pub const KIND_MACHINE_SET: &str = "MachineSet";
/// Kind MachineHealthCheck.
pub const KIND_MACHINE_HEALTH_CHECK: &str = "MachineHealthCheck";
/// API group of the simulated cloud.
pub const SIMULATION_GROUP: &str = "simulation.machine.openshift.io";
/// Kind SimulatedInstance.
pub const KIND_SIMULATED_INSTANCE: &str = "SimulatedInstance";

/// Finalizers.
pub mod finalizer {
    /// Held by the machine controller until the instance is gone.
    pub const MACHINE: &str = "machine.machine.openshift.io";
    /// Held by the simulated cloud until an instance, its Lease and its Node are gone.
    pub const SIMULATED_INSTANCE: &str = "simulation.machine.openshift.io/instance";
}

/// Labels.
pub mod label {
    /// Cluster id; mandatory on a Machine.
    pub const CLUSTER: &str = "machine.openshift.io/cluster-api-cluster";
    /// Name of the MachineSet, by convention only.
    pub const MACHINE_SET: &str = "machine.openshift.io/cluster-api-machineset";
    /// Role of the machine.
    pub const ROLE: &str = "machine.openshift.io/cluster-api-machine-role";
    /// Type of the machine.
    pub const TYPE: &str = "machine.openshift.io/cluster-api-machine-type";
    /// Region of the instance.
    pub const REGION: &str = "machine.openshift.io/region";
    /// Zone of the instance.
    pub const ZONE: &str = "machine.openshift.io/zone";
    /// Size of the instance.
    pub const INSTANCE_TYPE: &str = "machine.openshift.io/instance-type";
    /// Set, with an empty value, on machines that the cloud may take away.
    pub const INTERRUPTIBLE: &str = "machine.openshift.io/interruptible-instance";
    /// On a Node: it is simulated and may be touched by the simulated cloud.
    pub const SIMULATED: &str = "machine.openshift.io/simulated";
    /// On a Lease of a simulated Node: the instance that it speaks for.
    pub const SIMULATED_INSTANCE: &str = "simulation.machine.openshift.io/instance";
    /// Role label of control-plane Nodes.
    pub const NODE_CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
    /// Older role label of control-plane Nodes.
    pub const NODE_MASTER: &str = "node-role.kubernetes.io/master";
}

/// Annotations.
pub mod annotation {
    /// On a Machine, presence: its Node is not drained.
    pub const EXCLUDE_DRAIN: &str = "machine.openshift.io/exclude-node-draining";
    /// On a Machine: state of the instance in the cloud's words.
    pub const INSTANCE_STATE: &str = "machine.openshift.io/instance-state";
    /// On a Node: `<namespace>/<name>` of its Machine.
    pub const MACHINE: &str = "machine.openshift.io/machine";
    /// On a Machine, non-empty: it goes first when its set shrinks.
    pub const DELETE_MACHINE: &str = "machine.openshift.io/delete-machine";
    /// Older form of the same.
    pub const DELETE_MACHINE_LEGACY: &str = "machine.openshift.io/cluster-api-delete-machine";
    /// On a Machine, presence: a bare-metal remediation was asked for.
    pub const EXTERNAL_REMEDIATION: &str = "host.metal3.io/external-remediation";
    /// On a health check: how it repairs.
    pub const REMEDIATION_STRATEGY: &str = "machine.openshift.io/remediation-strategy";
    /// The one value of the strategy that has a meaning.
    pub const STRATEGY_EXTERNAL_BAREMETAL: &str = "external-baremetal";
    /// On a health check, presence: it does nothing.
    pub const PAUSED: &str = "cluster.x-k8s.io/paused";
    /// On a remediation request: name of its template.
    pub const CLONED_FROM_NAME: &str = "machine.openshift.io/cloned-from-name";
    /// On a remediation request: `Kind.group` of its template.
    pub const CLONED_FROM_GROUP_KIND: &str = "machine.openshift.io/cloned-from-groupkind";
    /// On a Pod, presence: it is static.
    pub const MIRROR_POD: &str = "kubernetes.io/config.mirror";
    /// On a MachineSet: virtual CPUs of one machine.
    pub const CPU: &str = "machine.openshift.io/vCPU";
    /// On a MachineSet: MiB of memory of one machine.
    pub const MEMORY: &str = "machine.openshift.io/memoryMb";
    /// On a MachineSet: GPUs of one machine.
    pub const GPU: &str = "machine.openshift.io/GPU";
    /// On a MachineSet: pods that fit on one machine.
    pub const MAX_PODS: &str = "machine.openshift.io/maxPods";
    /// On a MachineSet: labels of the Nodes to come, `k=v` separated by commas.
    pub const CAPACITY_LABELS: &str = "capacity.cluster-autoscaler.kubernetes.io/labels";
    /// On a MachineSet: CPU quantity, the autoscaler's own key.
    pub const CAPACITY_CPU: &str = "capacity.cluster-autoscaler.kubernetes.io/cpu";
    /// On a MachineSet: memory quantity, the autoscaler's own key.
    pub const CAPACITY_MEMORY: &str = "capacity.cluster-autoscaler.kubernetes.io/memory";
    /// On a Machine: faults to inject into a live simulated instance, as JSON.
    pub const FAULTS: &str = "simulation.machine.openshift.io/faults";
    /// On a Machine of the historic simulated cloud: when its deletion may go on, unix seconds.
    pub const DELETION_TIMEOUT: &str = "machine.openshift.io/deletion-timeout";
    /// On a Machine of the historic simulated cloud: it stands for this Node; refused today.
    pub const STATIC_MACHINE: &str = "machine.openshift.io/static-machine";
}

/// Types of conditions.
pub mod condition {
    /// The instance exists at the cloud.
    pub const INSTANCE_EXISTS: &str = "InstanceExists";
    /// No pre-drain hook is present.
    pub const DRAINABLE: &str = "Drainable";
    /// No pre-terminate hook is present.
    pub const TERMINABLE: &str = "Terminable";
    /// The Node was drained, or there was no need to.
    pub const DRAINED: &str = "Drained";
    /// Another API owns the object.
    pub const PAUSED: &str = "Paused";
    /// The spec can be acted upon.
    pub const SPEC_VALID: &str = "SpecValid";
    /// The last pass over a set's Machines went through.
    pub const MACHINES_CREATED: &str = "MachinesCreated";
    /// Repairs are allowed.
    pub const REMEDIATION_ALLOWED: &str = "RemediationAllowed";
    /// The remediation template was found.
    pub const TEMPLATE_AVAILABLE: &str = "ExternalRemediationTemplateAvailable";
    /// The remediation request could be made.
    pub const REQUEST_AVAILABLE: &str = "ExternalRemediationRequestAvailable";
}

/// Reasons of conditions and of recorded errors.
pub mod reason {
    /// InstanceExists: no instance was made yet.
    pub const INSTANCE_NOT_CREATED: &str = "InstanceNotCreated";
    /// InstanceExists: the instance is gone.
    pub const INSTANCE_MISSING: &str = "InstanceMissing";
    /// InstanceExists: the cloud did not answer.
    pub const ERROR_CHECKING_PROVIDER: &str = "ErrorCheckingProvider";
    /// Drainable, Terminable: somebody asked to be waited for.
    pub const HOOK_PRESENT: &str = "HookPresent";
    /// Drained: the drain did not get through yet.
    pub const DRAIN_ERROR: &str = "DrainError";
    /// Paused: Cluster API owns the object, or is about to.
    pub const NOT_MACHINE_API: &str = "AuthoritativeAPINotMachineAPI";
    /// Paused: the Machine API owns the object.
    pub const MACHINE_API: &str = "AuthoritativeAPIMachineAPI";
    /// SpecValid: a mandatory label is missing.
    pub const MISSING_LABEL: &str = "MissingLabel";
    /// SpecValid: there is no providerSpec.
    pub const MISSING_PROVIDER_SPEC: &str = "MissingProviderSpec";
    /// SpecValid: the providerSpec cannot be decoded or used.
    pub const INVALID_PROVIDER_SPEC: &str = "InvalidProviderSpec";
    /// SpecValid: no cloud serves this kind of providerSpec.
    pub const UNKNOWN_PROVIDER_KIND: &str = "UnknownProviderKind";
    /// SpecValid: the selector is not valid.
    pub const INVALID_SELECTOR: &str = "InvalidSelector";
    /// SpecValid: the selector was edited.
    pub const SELECTOR_CHANGED: &str = "SelectorChanged";
    /// SpecValid: the number of replicas is not valid.
    pub const INVALID_REPLICAS: &str = "InvalidReplicas";
    /// SpecValid: another field is not valid.
    pub const INVALID_FIELD: &str = "InvalidField";
    /// MachinesCreated: the last pass over the set's Machines failed.
    pub const SYNC_ERROR: &str = "SyncError";
    /// RemediationAllowed: more are unhealthy than maxUnhealthy.
    pub const TOO_MANY_UNHEALTHY: &str = "TooManyUnhealthy";
    /// The remediation template is not there.
    pub const TEMPLATE_NOT_FOUND: &str = "ExternalRemediationTemplateNotFound";
    /// The remediation request could not be made.
    pub const REQUEST_FAILED: &str = "ExternalRemediationRequestCreationFailed";
    /// errorReason: the cloud or the decoder refused the spec for good.
    pub const INVALID_CONFIGURATION: &str = "InvalidConfiguration";
}

/// Who reports an event, in `reportingController`.
pub mod reporter {
    /// The machine controller.
    pub const MACHINE: &str = "machine-controller";
    /// The drain controller.
    pub const DRAIN: &str = "machine-drain-controller";
    /// The MachineSet controller.
    pub const MACHINE_SET: &str = "machineset_controller";
    /// The controller that annotates MachineSets with the size of their machines.
    pub const CAPACITY: &str = "machineset-controller";
    /// The health check controller.
    pub const HEALTH: &str = "machinehealthcheck-controller";
    /// The nodelink controller; it writes no events of its own but names its lease and metrics.
    pub const NODE_LINK: &str = "nodelink-controller";
}

/// Values of `authoritativeAPI`.
pub mod authority {
    /// These controllers own the object.
    pub const MACHINE_API: &str = "MachineAPI";
    /// Cluster API owns the object.
    pub const CLUSTER_API: &str = "ClusterAPI";
    /// Ownership is being handed over.
    pub const MIGRATING: &str = "Migrating";
}
