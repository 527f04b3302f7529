//! Four hosts in a row, and the emulator between them; where a scenario has several paths, two more
//! hosts for each further one.

use std::env;
use std::fs;
use std::io;
use std::path::Path;

use bentpipe_link::{HostName, Scenario};

use crate::error::{Doing, EmulatorError};
use crate::hosts::addresses::{AddressPlan, Block, SegmentAddresses};
use crate::hosts::device::{
    Device, SegmentPorts, bring_up, pair, port, wait_until_heard, wait_until_running,
};
use crate::hosts::further_path::FurtherPath;
use crate::hosts::host::Host;
use crate::hosts::namespace::Namespace;
use bentpipe_netlink::Netlink;

/// The environment variable of programs on a client with the block of addresses for a shell inside,
/// as in 10.0.0.0/8.
const BLOCK_VARIABLE: &str = "BENTPIPE_BLOCK";
/// The environment variable with the name of a program's host.
const HOST_VARIABLE: &str = "BENTPIPE_HOST";

/// The hosts of a scenario and what connects them. All of it vanishes when this value and the
/// programs on the hosts are gone.
#[derive(Debug)]
pub struct Topology {
    /// In the order of [`HostName::ALL`].
    hosts: [Host; 4],
    emulator: Namespace,
    segments: Vec<SegmentPorts>,
    /// The paths beside the first.
    others: Vec<FurtherPath>,
    is_inner: bool,
}

impl Topology {
    /// Makes one that stands alone.
    pub fn build(scenario: &Scenario) -> Result<Self, EmulatorError> {
        let plan = AddressPlan::outer();
        let server = new_host(HostName::Server, &plan)?;
        let mut topology = Self::with_server(server, &plan)?;
        for hop in &plan.hops {
            topology.connect(hop, scenario, hop.name.name())?;
        }
        topology.finish(&plan)?;
        for (number, path) in scenario.each_path().iter().enumerate().skip(1) {
            let hosts = [HostName::Terminal, HostName::Gateway].map(|host| new_host(host, &plan));
            let [terminal, gateway] = hosts;
            let further = FurtherPath {
                number,
                routers: [terminal?, gateway?],
            };
            let ends = [HostName::Client, HostName::Server].map(|it| topology.host(it).network());
            let ports = further.connect(path, ends, &topology.emulator)?;
            topology.segments.extend(ports);
            topology.others.push(further);
        }
        topology.wait_for_ports()?;
        Ok(topology)
    }

    /// Makes one whose far end is where this process is, if that is the client of another topology:
    /// so the path of the inner client goes on through the outer one. Else one that stands alone.
    pub fn build_here(scenario: &Scenario) -> Result<Self, EmulatorError> {
        let place = |variable| env::var(variable).unwrap_or_default();
        match place(HOST_VARIABLE).as_str() {
            "" => Self::build(scenario),
            "client" => match place(BLOCK_VARIABLE).parse() {
                Ok(block) => Self::inside(scenario, block),
                Err(()) => Err(EmulatorError::NoRoom(
                    "the environment has no BENTPIPE_BLOCK",
                )),
            },
            _ => Err(EmulatorError::NoRoom("it can be started on a client only")),
        }
    }

    /// The first block that no other shell inside has is ours: each has a device in the outer
    /// client by the block's number.
    fn inside(scenario: &Scenario, block: Block) -> Result<Self, EmulatorError> {
        if scenario.each_path().len() > 1 {
            return Err(EmulatorError::NoRoom(
                "a scenario with several paths does not lie inside another",
            ));
        }
        for (index, block) in block.inside().into_iter().enumerate() {
            let plan = AddressPlan::inner(block);
            let outer = Host::here(HostName::Server, Vec::new())?;
            let mut topology = Self::with_server(outer, &plan)?;
            topology.is_inner = true;
            let [access, satellite, ground] = &plan.hops;
            match topology.connect(ground, scenario, &format!("inside{}", index + 1)) {
                Err(EmulatorError::System { error, .. })
                    if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    topology.connect(access, scenario, access.name.name())?;
                    topology.connect(satellite, scenario, satellite.name.name())?;
                    topology.finish(&plan)?;
                    return Ok(topology);
                }
            }
        }
        Err(EmulatorError::NoRoom("all blocks of addresses are taken"))
    }

    fn with_server(server: Host, plan: &AddressPlan) -> Result<Self, EmulatorError> {
        let host = |name| new_host(name, plan);
        let emulator = Namespace::new()?;
        emulator.within(|| set("ipv6/conf/default/disable_ipv6", "1"))?;
        Ok(Self {
            hosts: [
                host(HostName::Client)?,
                host(HostName::Terminal)?,
                host(HostName::Gateway)?,
                server,
            ],
            emulator,
            segments: Vec::new(),
            others: Vec::new(),
            is_inner: false,
        })
    }

    /// A host.
    #[must_use]
    pub fn host(&self, name: HostName) -> &Host {
        &self.hosts[name as usize]
    }

    /// The namespace in which [`Topology::segments`] are.
    #[must_use]
    pub fn emulator(&self) -> &Namespace {
        &self.emulator
    }

    /// The segments that run through the emulator.
    #[must_use]
    pub fn segments(&self) -> &[SegmentPorts] {
        &self.segments
    }

    /// Whether the far end is the client of another topology, and no host of this one.
    #[must_use]
    pub fn is_inner(&self) -> bool {
        self.is_inner
    }

    /// Lays one segment. Devices are called after it, but for that at the server's end of the
    /// ground.
    fn connect(
        &mut self,
        hop: &SegmentAddresses,
        scenario: &Scenario,
        far: &str,
    ) -> Result<(), EmulatorError> {
        let name = hop.name.name();
        let is_given = scenario.segment(hop.name).is_some();
        let [near, beyond] = [0, 1].map(|index| Device {
            name: if index == 0 { name } else { far },
            mac: [2, 0, 0, 0, hop.name as u8, index],
            end: &hop.ends[usize::from(index)],
        });
        let [a, b] = [&near, &beyond].map(|device| self.host(device.end.host).network());
        if is_given {
            let ports = SegmentPorts {
                path: 0,
                name: hop.name,
                client_side: format!("c-{name}"),
                server_side: format!("s-{name}"),
            };
            pair(
                &self.emulator,
                near.at(a),
                port(&ports.client_side, &self.emulator),
            )?;
            pair(
                &self.emulator,
                beyond.at(b),
                port(&ports.server_side, &self.emulator),
            )?;
            self.emulator.within(|| {
                bring_up(&ports.client_side)?;
                bring_up(&ports.server_side)
            })?;
            self.segments.push(ports);
        } else {
            pair(&self.emulator, near.at(a), beyond.at(b))?;
        }
        let [a, b] = [&near, &beyond].map(|device| self.host(device.end.host).network());
        near.configure(a, &beyond)?;
        beyond.configure(b, &near)?;
        wait_until_running(a, near.name)?;
        wait_until_running(b, beyond.name)
    }

    fn wait_for_ports(&self) -> Result<(), EmulatorError> {
        for ports in &self.segments {
            wait_until_running(&self.emulator, &ports.client_side)?;
            wait_until_running(&self.emulator, &ports.server_side)?;
        }
        Ok(())
    }

    /// Adds the routes, and waits until all that has been set up works.
    fn finish(&self, plan: &AddressPlan) -> Result<(), EmulatorError> {
        self.wait_for_ports()?;
        for end in plan.hops.iter().flat_map(|hop| &hop.ends) {
            let network = self.host(end.host).network();
            for prefix in end.addresses {
                wait_until_heard(network, prefix.address)?;
            }
        }
        self.route(plan)
    }

    fn route(&self, plan: &AddressPlan) -> Result<(), EmulatorError> {
        for route in &plan.routes {
            self.host(route.host).network().within(|| {
                let mut netlink = Netlink::open().doing("opening netlink")?;
                netlink
                    .add_route(route.destination, route.via)
                    .doing(format!("routing on the {}", route.host))
            })?;
        }
        Ok(())
    }
}

fn new_host(name: HostName, plan: &AddressPlan) -> Result<Host, EmulatorError> {
    let mut variables = vec![(HOST_VARIABLE, name.name().to_owned())];
    if name == HostName::Client {
        variables.push((BLOCK_VARIABLE, plan.block.to_string()));
    }
    let host = Host::new(name, &plan.hosts_file(), variables)?;
    host.network().within(|| {
        let mut netlink = Netlink::open().doing("opening netlink")?;
        netlink.set_up("lo").doing("setting up lo")?;
        settle()?;
        if name == HostName::Server {
            return Ok(());
        }
        // The client forwards too: what a shell inside sends.
        set("ipv4/ip_forward", "1")?;
        set("ipv6/conf/all/forwarding", "1")?;
        // A device that comes as a router's would tell the link of it.
        set("ipv6/conf/default/forwarding", "0")
    })?;
    Ok(host)
}

/// Settings of devices to come: each may take packets from anywhere, and says nothing of itself.
fn settle() -> Result<(), EmulatorError> {
    for (file, value) in [
        ("ipv4/conf/all/rp_filter", "0"),
        ("ipv4/conf/default/rp_filter", "0"),
        ("ipv6/conf/default/disable_ipv6", "0"),
        ("ipv6/conf/default/accept_dad", "0"),
        ("ipv6/conf/default/accept_ra", "0"),
        ("ipv6/conf/default/router_solicitations", "0"),
        ("ipv6/conf/default/addr_gen_mode", "1"),
    ] {
        set(file, value)?;
    }
    Ok(())
}

/// Sets a setting of the calling thread's network namespace.
pub(crate) fn set(file: &str, value: &str) -> Result<(), EmulatorError> {
    let path = Path::new("/proc/sys/net").join(file);
    fs::write(&path, value).doing(format!("writing {value} to {}", path.display()))
}
