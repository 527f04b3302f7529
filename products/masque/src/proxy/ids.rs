//! The connection IDs that a proxy's clients have registered, and the virtual ones in their place.

use bentpipe_connections::steering::ConnectionIds;
use noq_proto::ConnectionIdGenerator;

use crate::forwarding::{
    Cid, FIRST_ALLOWED, LONGEST_CID, MOST_IDS, PrefixMap, SHORTEST_VIRTUAL_ID,
};

/// The number of a flow: a request that succeeded, and its socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

/// The connection IDs of a flow.
pub struct FlowIds {
    /// Those of the client, by which packets of the target are found. Each flow has a socket of its
    /// own, so they conflict with those of the same flow alone.
    pub clients: PrefixMap<ClientId>,
    /// Those of the target, with the virtual ones that packets for it have.
    pub targets: Vec<(Cid, Cid)>,
    /// All virtual ones.
    pub virtual_ids: Vec<Cid>,
    /// Registrations that came, and that may come.
    registered: u64,
    allowed: u64,
    /// The client has moved: what was registered is closed, and nothing else is.
    pub is_closed: bool,
}

/// A connection ID of a client.
pub struct ClientId {
    /// The one that packets between client and proxy have.
    pub virtual_id: Cid,
    /// The client knows the virtual one: packets that have it may be sent.
    pub is_known: bool,
}

impl Default for FlowIds {
    fn default() -> Self {
        Self {
            clients: PrefixMap::default(),
            targets: Vec::new(),
            virtual_ids: Vec::new(),
            registered: 0,
            allowed: FIRST_ALLOWED,
            is_closed: false,
        }
    }
}

/// The virtual connection IDs of all flows. None is like another, also not of the two directions.
pub struct VirtualIds {
    /// With the flow, and the target's connection ID if packets for that have it.
    pub by_id: PrefixMap<(FlowId, Option<Cid>)>,
    random: Box<dyn ConnectionIdGenerator>,
}

impl VirtualIds {
    /// None; they are made as the connection IDs of the proxy itself, so that packets come to the
    /// same worker, and nobody can guess one.
    pub fn new(ids: &ConnectionIds) -> Self {
        Self {
            by_id: PrefixMap::default(),
            random: ids(),
        }
    }

    /// A new one in place of a connection ID of `length` bytes: as long, so that packets keep their
    /// size, but never so short that it may be another's.
    fn add(&mut self, flow: FlowId, length: usize, target: Option<&Cid>) -> Cid {
        let length = length.max(SHORTEST_VIRTUAL_ID);
        loop {
            let mut bytes = Vec::new();
            while bytes.len() < length {
                bytes.extend_from_slice(&self.random.generate_cid());
            }
            bytes.truncate(length);
            let id = Cid::from(bytes);
            if self.by_id.insert(id.clone(), (flow, target.cloned())) {
                return id;
            }
        }
    }

    /// A flow is over.
    pub fn forget(&mut self, ids: &FlowIds) {
        for id in &ids.virtual_ids {
            self.by_id.remove(id);
        }
    }
}

impl FlowIds {
    /// Adds a connection ID of the client; `None`: it conflicts with another, or is too long.
    pub fn add_client(&mut self, id: &Cid, flow: FlowId, all: &mut VirtualIds) -> Option<Cid> {
        // Who registers one again wants another virtual one.
        let is_again = self.clients.get_mut(id).is_some();
        let is_refused = self.is_closed || id.len() > LONGEST_CID;
        if is_refused || !is_again && self.clients.conflicts(id) {
            return None;
        }
        self.close_client(id, all);
        let virtual_id = all.add(flow, id.len(), None);
        self.virtual_ids.push(virtual_id.clone());
        let value = ClientId {
            virtual_id: virtual_id.clone(),
            is_known: false,
        };
        self.clients.insert(id.clone(), value);
        Some(virtual_id)
    }

    pub fn add_target(&mut self, id: &Cid, flow: FlowId, all: &mut VirtualIds) -> Option<Cid> {
        if self.is_closed || id.len() > LONGEST_CID {
            return None;
        }
        self.close_target(id, all);
        let virtual_id = all.add(flow, id.len(), Some(id));
        self.virtual_ids.push(virtual_id.clone());
        self.targets.push((id.clone(), virtual_id.clone()));
        Some(virtual_id)
    }

    /// Says whether there was one.
    pub fn close_client(&mut self, id: &Cid, all: &mut VirtualIds) -> bool {
        let Some(gone) = self.clients.remove(id) else {
            return false;
        };
        self.release(&gone.virtual_id, all);
        true
    }

    pub fn close_target(&mut self, id: &Cid, all: &mut VirtualIds) -> bool {
        let Some(index) = self.targets.iter().position(|(it, _)| it == id) else {
            return false;
        };
        let (_, virtual_id) = self.targets.swap_remove(index);
        self.release(&virtual_id, all);
        true
    }

    fn release(&mut self, virtual_id: &Cid, all: &mut VirtualIds) {
        self.virtual_ids.retain(|it| it != virtual_id);
        all.by_id.remove(virtual_id);
    }

    /// Registers one; says whether the client may have done so.
    pub fn count_registration(&mut self) -> bool {
        self.registered += 1;
        self.registered <= self.allowed
    }

    /// Allows as many registrations as there is room for, if that is more than before; the number
    /// of the last.
    pub fn allow(&mut self) -> Option<u64> {
        let room = MOST_IDS.saturating_sub(self.virtual_ids.len()) as u64;
        let allowed = self.registered + room;
        if allowed <= self.allowed {
            return None;
        }
        self.allowed = allowed;
        Some(allowed - 1)
    }
}
