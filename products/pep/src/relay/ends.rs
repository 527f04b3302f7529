//! The connections between which data are relayed.

use noq_proto::Connection;

/// The two connections of a pair, as far as they are there.
pub type BothConnections<'a> = [Option<&'a mut Connection>; 2];

/// The two connections that a direction leads from and to.
pub struct RelayEnds<'a> {
    /// `None`: it has ended.
    pub from: Option<&'a mut Connection>,
    /// The other one.
    pub to: &'a mut Connection,
}

impl<'a> RelayEnds<'a> {
    /// The ends of a direction of which both are there.
    pub fn between(from: &'a mut Connection, to: &'a mut Connection) -> Self {
        Self {
            from: Some(from),
            to,
        }
    }
}
