//! The keys of a direction in the order of the nodes that they describe, for those who show them.

use crate::order::NodeName;
use crate::scenario::DirectionConfig;

impl DirectionConfig {
    /// Its keys in the order in which packets meet what they describe. A key that is not among
    /// them has no place of its own; it is shown beside the others.
    #[must_use]
    pub fn keys_in_order(&self) -> Vec<&'static str> {
        let nodes = self.order().iter().flat_map(|node| node.keys());
        std::iter::once(&"sources").chain(nodes).copied().collect()
    }
}

impl NodeName {
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Mtu => &["mtu"],
            Self::Udp => &["udp"],
            Self::Policer => &["policer"],
            Self::Shaper => &["shaper"],
            Self::Queue => &["queue", "rate", "outages", "frame"],
            Self::Loss => &["loss"],
            Self::BitErrors => &["bit_errors"],
            Self::Delay => &["delay", "handovers"],
            Self::Aggregate => &["aggregate"],
            Self::Duplicate => &["duplicate"],
            Self::Reorder => &["reorder"],
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::DirectionConfig;

    #[test]
    fn every_key_that_a_transparent_link_has_is_in_the_order() {
        let link = DirectionConfig::default();
        let in_order = link.keys_in_order();
        let json = serde_json::to_value(&link).expect("a link is JSON");
        let keys = json.as_object().expect("a table").keys();
        let missing: Vec<_> = keys.filter(|it| !in_order.contains(&it.as_str())).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
