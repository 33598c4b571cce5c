//! Which Machine and which Node are the same thing. The same rule in both directions: by provider id, else by the first
//! internal address among all addresses of the other side. Never here: writes.

use mapi_api::{Machine, Node, Object};

/// Objects of one kind that may be the counterpart of an object of the other kind.
#[derive(Clone, Debug)]
pub struct Candidates<'a, T> {
    /// Those with the object's provider id; none if it has no provider id.
    pub by_provider_id: Vec<&'a T>,
    /// Those that have the object's first InternalIP among theirs; none if it has no InternalIP.
    pub by_address: Vec<&'a T>,
}

/// More than one counterpart. Picking one could link a Node to a Machine of another instance, so none is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot link {kind} `{object}`: {} have its {by} `{value}`, one is allowed", .candidates.join(" and "))]
pub struct Ambiguity {
    kind: &'static str,
    object: String,
    by: &'static str,
    value: String,
    candidates: Vec<String>,
}

/// The Machine of a Node. Machines that are being deleted count, of every watched namespace.
pub fn machine_of<'a>(
    node: &Node,
    candidates: &Candidates<'a, Machine>,
) -> Result<Option<&'a Machine>, Ambiguity> {
    pick(node, candidates)
}

/// The Node of a Machine.
pub fn node_of<'a>(
    machine: &Machine,
    candidates: &Candidates<'a, Node>,
) -> Result<Option<&'a Node>, Ambiguity> {
    pick(machine, candidates)
}

/// What both kinds have in common here.
pub trait Peer: Object {
    /// Word for messages.
    const KIND: &'static str;
    /// A provider id that is not empty.
    fn identity(&self) -> Option<&str>;
    /// The first InternalIP.
    fn first_address(&self) -> Option<&str>;
}

impl Peer for Machine {
    const KIND: &'static str = "machine";
    fn identity(&self) -> Option<&str> {
        self.provider_id()
    }
    fn first_address(&self) -> Option<&str> {
        self.internal_ips().next()
    }
}

impl Peer for Node {
    const KIND: &'static str = "node";
    fn identity(&self) -> Option<&str> {
        self.provider_id()
    }
    fn first_address(&self) -> Option<&str> {
        self.internal_ips().next()
    }
}

fn pick<'a, A: Peer, B: Peer>(
    object: &A,
    candidates: &Candidates<'a, B>,
) -> Result<Option<&'a B>, Ambiguity> {
    if let Some(id) = object.identity()
        && let Some(found) = single(object, "provider id", id, &candidates.by_provider_id)?
    {
        return Ok(Some(found));
    }
    let Some(address) = object.first_address() else { return Ok(None) };
    // An address is used again by the next instance: two different provider ids are two instances.
    let is_another =
        |other: &&B| matches!((object.identity(), other.identity()), (Some(a), Some(b)) if a != b);
    let possible: Vec<&B> =
        candidates.by_address.iter().copied().filter(|other| !is_another(other)).collect();
    single(object, "internal address", address, &possible)
}

fn single<'a, A: Peer, B: Peer>(
    object: &A,
    by: &'static str,
    value: &str,
    found: &[&'a B],
) -> Result<Option<&'a B>, Ambiguity> {
    match found {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        many => Err(Ambiguity {
            kind: A::KIND,
            object: object.key().to_string(),
            by,
            value: value.into(),
            candidates: many.iter().map(|other| format!("{} `{}`", B::KIND, other.key())).collect(),
        }),
    }
}
