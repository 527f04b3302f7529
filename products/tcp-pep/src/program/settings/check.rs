//! Checks across settings: whether the values go together.

use bentpipe_linux_tcp::congestion_control;
use bentpipe_service::settings::{Problem, time, within, wrong};
use bentpipe_units::Size;

use super::{Intercept, Settings, SideSettings};
use crate::config::Accept;
use crate::options::{BUFFERS, INITIAL_WINDOWS, LATE_WITH_POOL, POOLS, RATES};

/// Threads that there may be.
pub const MOST_WORKERS: usize = 64;
/// Bytes of a name of a device, without the zero at its end (IFNAMSIZ, netdevice(7)).
const DEVICE_NAME: usize = 15;

impl Settings {
    /// All checks.
    pub(super) fn check_all(&self) -> Result<(), Problem> {
        self.check_sources()
            .and_then(|()| self.check_pool())
            .and_then(|()| self.check_accept())
            .and_then(|()| self.check_ranges())
            .and_then(|()| self.check_side("client-side", &self.client_side))
            .and_then(|()| self.check_side("server-side", &self.server_side))
    }

    /// Where clients come from.
    fn check_sources(&self) -> Result<(), Problem> {
        if let Some(intercept) = &self.intercept {
            check_intercept(intercept)?;
        }
        match (self.listen.first(), &self.next_hop) {
            (Some(place), None) => wrong(
                format!("listen = [\"{place}\"]: connections to it have nowhere to go"),
                "say where with next-hop = \"HOST:PORT\" (--next-hop)",
            ),
            (None, Some(next_hop)) => wrong(
                format!("next-hop = \"{next_hop}\": no connection goes there"),
                "say where clients connect to with listen = [\"ADDR:PORT\"] (--listen); \
                 connections that are intercepted go where their client wants",
            ),
            (Some(place), Some(_)) if self.intercept.is_some() => wrong(
                format!("listen = [\"{place}\"] and intercept exclude each other"),
                "start one proxy for each",
            ),
            (None, None) if self.intercept.is_none() && self.pool.listen.is_empty() => wrong(
                "there is nowhere that clients come from",
                "name two devices and ports under [intercept] (--clients, --servers, --port), or \
                 an address with listen and next-hop (--listen, --next-hop)",
            ),
            _ => Ok(()),
        }
    }

    fn check_pool(&self) -> Result<(), Problem> {
        let pool = &self.pool;
        if let (Some(gateway), Some(place)) = (&pool.gateway, pool.listen.first()) {
            return wrong(
                format!(
                    "pool.gateway = \"{gateway}\" and pool.listen = [\"{place}\"] exclude each \
                     other"
                ),
                "a proxy is the terminal of a pool, or its gateway",
            );
        }
        if let (Some(place), true) = (pool.listen.first(), pool.terminals.is_empty()) {
            return wrong(
                format!("pool.listen = [\"{place}\"]: pool.terminals is empty"),
                "name the addresses of the terminals: who may use a pool can go anywhere from \
                 here, as anybody",
            );
        }
        within("pool.connections", pool.connections.into(), POOLS)
    }

    fn check_accept(&self) -> Result<(), Problem> {
        if self.accept == Accept::Early {
            return Ok(());
        }
        let what = |why: &str| format!("accept = \"late\": {why}");
        if self.intercept.is_none() || !self.pool.listen.is_empty() {
            let hint = "it is for connections that are intercepted on their way";
            return wrong(what("only SYNs that are intercepted can wait"), hint);
        }
        if self.pool.gateway.is_some() {
            return wrong(what(LATE_WITH_POOL), "leave accept or pool.gateway out");
        }
        if self.workers > 1 {
            let hint = "write workers = 1";
            return wrong(what(&format!("workers = {}", self.workers)), hint);
        }
        Ok(())
    }

    fn check_side(&self, name: &str, side: &SideSettings) -> Result<(), Problem> {
        if let Err(error) = congestion_control(&side.cc) {
            let text = error.to_string();
            let text = text.trim_start_matches("not supported: option ");
            let (what, hint) = text.split_once(" (hint: ").unwrap_or((text, ""));
            return wrong(format!("{name}.{what}"), hint.trim_end_matches(')'));
        }
        if let Some(packets) = side.iw {
            within(&format!("{name}.iw"), packets.into(), INITIAL_WINDOWS)?;
            if self.intercept.is_none() {
                let hint = "the initial window belongs to the routes of a device: it takes \
                            [intercept], or `ip route change … initcwnd`";
                return wrong(format!("{name}.iw = {packets}: there is no device"), hint);
            }
        }
        match side.rate {
            Some(rate) if !RATES.contains(&rate.bps()) => wrong(
                format!("{name}.rate = \"{rate}\""),
                "write a rate from \"1 kbit/s\" to \"100 Gbit/s\"",
            ),
            _ => Ok(()),
        }
    }

    fn check_ranges(&self) -> Result<(), Problem> {
        let limits = &self.limits;
        within("workers", self.workers as u64, 0..=MOST_WORKERS as u64)?;
        for (key, value) in [
            ("limits.connections", limits.connections),
            (
                "limits.connections-per-client",
                limits.connections_per_client,
            ),
        ] {
            within(key, value.into(), 1..=1_000_000)?;
        }
        check_buffer(limits.buffer)?;
        if limits.memory.bytes() < 2 * limits.buffer.bytes() {
            let what = format!(
                "limits.memory = \"{}\" is less than two of limits.buffer = \"{}\"",
                limits.memory, limits.buffer
            );
            return wrong(
                what,
                "give one connection room for both directions at least",
            );
        }
        time("times.idle", self.times.idle)?;
        time("times.handshake", self.times.handshake)?;
        time("times.drain", self.times.drain)
    }
}

fn check_intercept(intercept: &Intercept) -> Result<(), Problem> {
    for (key, device) in [
        ("intercept.clients", &intercept.clients),
        ("intercept.servers", &intercept.servers),
    ] {
        let is_name = !device.is_empty()
            && device.len() <= DEVICE_NAME
            && device.chars().all(|it| it.is_ascii_graphic() && it != '/');
        if !is_name {
            let hint = "write the name of a device, as `ip link` lists them";
            return wrong(format!("{key} = {device:?}"), hint);
        }
    }
    if intercept.clients == intercept.servers {
        let what = format!(
            "intercept.clients and intercept.servers are both {:?}",
            intercept.clients
        );
        return wrong(what, "a proxy stands between two devices");
    }
    if intercept.ports.is_empty() || intercept.ports.contains(&0) {
        let what = format!("intercept.ports = {:?}", intercept.ports);
        return wrong(what, "name the servers' ports, as in ports = [80, 443]");
    }
    Ok(())
}

fn check_buffer(buffer: Size) -> Result<(), Problem> {
    if BUFFERS.contains(&buffer.bytes()) {
        return Ok(());
    }
    wrong(
        format!("limits.buffer = \"{buffer}\""),
        "write a size from \"4 KiB\" to \"64 MiB\"",
    )
}
