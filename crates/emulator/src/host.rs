//! The hosts of a topology, and programs that run on them.

/// One of the four hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostName {
    /// Where requests come from.
    Client,
    /// The user's end of the satellite link.
    Terminal,
    /// The operator's end of the satellite link.
    Gateway,
    /// Where files are.
    Server,
}

/// A host: its name and its namespaces.
#[derive(Debug)]
pub struct Host;
