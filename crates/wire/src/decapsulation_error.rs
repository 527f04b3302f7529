//! Why a captured packet cannot be looked into.

/// The reason why a captured packet is not a datagram that can be looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DecapsulationError {
    /// A link type of which the layout is not known here.
    #[error(
        "link type {0} ({name}) is not read (hint: capture with Ethernet, IP, PPP, loopback or \
         Linux cooked headers)",
        name = link_type_name(*.0)
    )]
    LinkType(u16),
    /// More tunnels, one in the other, than anybody lays.
    #[error("more than 8 tunnels, one in the other")]
    Nested,
    /// Something else than UDP over IP.
    #[error("not UDP")]
    NotUdp,
    /// Something else than TCP over IP, where UDP was ruled out before.
    #[error("neither UDP nor TCP")]
    NotTcp,
    /// A part of a larger IP packet.
    #[error("an IP fragment")]
    Fragment,
    /// Headers that are incomplete or contradict themselves.
    #[error("incomplete or damaged headers")]
    Damaged,
}

/// The names of link types that carry IP too, but among what cannot be read here.
fn link_type_name(link_type: u16) -> &'static str {
    match link_type {
        105 | 119 | 127 | 163 | 192 => "802.11, as a monitor sees it",
        195 | 215 | 230 | 283 => "802.15.4",
        117 => "of OpenBSD's packet filter",
        149 | 258 => "of Apple's packet tap",
        143 => "DOCSIS",
        189 | 220 | 249 => "USB",
        187 | 201 | 251 | 255 => "Bluetooth",
        147..=162 => "for private use",
        _ => "unknown here",
    }
}
