//! Whether a server's command is there: it listens, as the kernel's tables of sockets say.

use std::fs;

/// The tables, with how the fourth column of one writes that a TCP socket listens or that a UDP
/// socket is bound.
const STATES: [(&str, &str); 4] = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];

/// Whether a TCP socket of the guest listens, or a UDP socket of it is bound.
pub fn somebody_listens() -> bool {
    STATES.iter().any(|(table, state)| {
        let text = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        has_socket(&text, state)
    })
}

fn has_socket(table: &str, state: &str) -> bool {
    table
        .lines()
        .any(|line| line.split_whitespace().nth(3) == Some(state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_listens_is_told_from_one_that_is_connected() {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n";
        let listens = "   0: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000\n";
        let connected = "   1: 0100007F:0050 0100007F:D431 01 00000000:00000000 00:00000000\n";
        assert!(!has_socket(head, "0A"));
        assert!(has_socket(&[head, connected, listens].concat(), "0A"));
        assert!(!has_socket(&[head, connected].concat(), "0A"));
    }
}
