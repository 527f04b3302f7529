//! The order in which packets meet the nodes of a link.

use serde::{Serialize, Serializer};

use crate::fields::{Entry, Problem, nearest};

/// A node of a link, by its name in scenario files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeName {
    /// The key `mtu`.
    Mtu,
    /// The keys `rate`, `burst` and `drop` of `udp`.
    Udp,
    /// The key `policer`.
    Policer,
    /// The key `shaper`.
    Shaper,
    /// The keys `rate`, `queue`, `frame` and `outages`, and the gaps of `handovers`.
    Queue,
    /// The key `loss`.
    Loss,
    /// The key `bit_errors`.
    BitErrors,
    /// The keys `delay` and `handovers`.
    Delay,
    /// The key `aggregate`.
    Aggregate,
    /// The key `duplicate`.
    Duplicate,
    /// The key `reorder`.
    Reorder,
}

/// All nodes, in their usual order.
pub(crate) const USUAL: [NodeName; 11] = [
    NodeName::Mtu,
    NodeName::Udp,
    NodeName::Policer,
    NodeName::Shaper,
    NodeName::Queue,
    NodeName::Loss,
    NodeName::BitErrors,
    NodeName::Delay,
    NodeName::Aggregate,
    NodeName::Duplicate,
    NodeName::Reorder,
];
const EXAMPLE: &str = "[\"policer\", \"queue\", \"loss\", \"delay\"]";

impl NodeName {
    /// As in scenario files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mtu => "mtu",
            Self::Udp => "udp",
            Self::Policer => "policer",
            Self::Shaper => "shaper",
            Self::Queue => "queue",
            Self::Loss => "loss",
            Self::BitErrors => "bit_errors",
            Self::Delay => "delay",
            Self::Aggregate => "aggregate",
            Self::Duplicate => "duplicate",
            Self::Reorder => "reorder",
        }
    }

    /// Whether it takes packets that are lost: what happens to others does not depend on them.
    pub(crate) fn takes_lost(self) -> bool {
        matches!(self, Self::Loss | Self::BitErrors | Self::Delay)
    }

    fn read(entry: &Entry) -> Result<Self, Problem> {
        let text = entry.text()?;
        if let Some(name) = USUAL.into_iter().find(|it| it.name() == text) {
            return Ok(name);
        }
        let known = USUAL.map(Self::name);
        let near = nearest(&text, &known);
        let near = near.map_or(String::new(), |near| format!("did you mean \"{near}\"? "));
        Err(entry.problem(&format!("unknown node; {near}Known: {}", known.join(", "))))
    }
}

impl Serialize for NodeName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Reads the order of the nodes of a direction: each that it has, once.
pub(crate) fn read(entry: Entry, has: impl Fn(NodeName) -> bool) -> Result<Vec<NodeName>, Problem> {
    let wrong = entry.problem(&format!("write the nodes in their order, as in {EXAMPLE}"));
    let without = |name: &str| {
        entry.problem(&format!(
            "leaves out \"{name}\", which this direction has; add it"
        ))
    };
    let without = USUAL.map(|node| (node, without(node.name())));
    let mut order = Vec::new();
    for item in entry.items().ok_or(wrong)? {
        let node = NodeName::read(&item)?;
        if order.contains(&node) {
            return Err(item.problem("stands here twice; a packet meets each node once"));
        }
        order.push(node);
    }
    let missing = |node: NodeName| has(node) && !order.contains(&node);
    match without.into_iter().find(|(node, _)| missing(*node)) {
        Some((_, problem)) => Err(problem),
        None => Ok(order),
    }
}
