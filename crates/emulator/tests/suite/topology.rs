//! Hosts and what connects them, where this process may make namespaces: as root. What ordinary
//! users get is tested with `bentpipe shell`.

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use bentpipe_emulator::{EmulatorError, Forwarder, Host, HostName, Options, Topology};
use bentpipe_link::{Scenario, SegmentName};
use bentpipe_netlink::{MptcpEndpoint, MptcpPathManager};

const PORT: u16 = 7;

fn scenario(segments: &str) -> Scenario {
    let text = format!(
        "title = \"t\"\nsource = \"s\"\ntimeout = \"60 s\"\n\
         [satellite.forward]\ndelay = \"1 ms\"\n[satellite.return]\ndelay = \"1 ms\"\n{segments}"
    );
    Scenario::parse(&text, "test.toml", &[]).expect("a scenario")
}

fn build(segments: &str) -> Option<Topology> {
    built(&scenario(segments))
}

/// A topology, or none and a line that says why.
fn built(scenario: &Scenario) -> Option<Topology> {
    match Topology::build(scenario) {
        Ok(topology) => Some(topology),
        Err(error @ EmulatorError::NoNamespaces { .. }) => {
            println!("left out: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn inside<T: Send>(host: &Host, work: impl FnOnce() -> io::Result<T> + Send) -> T {
    let done = host.network().within(|| Ok(work()));
    done.expect("a host to enter").expect("sockets that work")
}

/// A socket of one host that is bound to its address.
fn bound(host: &Host, address: &str) -> UdpSocket {
    let address: IpAddr = address.parse().expect("an address");
    inside(host, || {
        let socket = UdpSocket::bind((address, PORT))?;
        socket.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(socket)
    })
}

/// Sends from one address to the other; what arrives, and from where.
fn says(from: &UdpSocket, to: &UdpSocket) -> (Vec<u8>, IpAddr) {
    let target = to.local_addr().expect("a bound socket");
    from.send_to(b"hello", target).expect("a way there");
    let mut data = [0; 100];
    let (length, sender) = to.recv_from(&mut data).expect("a datagram");
    (data[..length].to_vec(), sender.ip())
}

const TRANSPARENT_PAIRS: [[(HostName, &str); 2]; 4] = [
    [
        (HostName::Client, "192.0.2.1"),
        (HostName::Terminal, "192.0.2.254"),
    ],
    [
        (HostName::Client, "2001:db8:1::1"),
        (HostName::Terminal, "2001:db8:1::fe"),
    ],
    [
        (HostName::Gateway, "198.51.100.254"),
        (HostName::Server, "198.51.100.1"),
    ],
    [
        (HostName::Gateway, "2001:db8:2::fe"),
        (HostName::Server, "2001:db8:2::1"),
    ],
];

#[test]
fn transparent_segments_carry_both_versions_both_ways() {
    let Some(topology) = build("") else { return };
    for pair in TRANSPARENT_PAIRS {
        let [one, other] = pair.map(|(host, address)| bound(topology.host(host), address));
        for (from, to) in [(&one, &other), (&other, &one)] {
            let sender = from.local_addr().expect("a bound socket").ip();
            assert_eq!(says(from, to), (b"hello".to_vec(), sender));
        }
    }
}

#[test]
fn emulated_segments_end_in_the_emulator() {
    let segments = "[access.forward]\n[ground.return]\n";
    let Some(topology) = build(segments) else {
        return;
    };
    let names: Vec<_> = topology.segments().iter().map(|ports| ports.name).collect();
    assert_eq!(
        names,
        [
            SegmentName::Access,
            SegmentName::Satellite,
            SegmentName::Ground
        ]
    );
    // Nothing forwards, so nothing arrives.
    let [(client, from), (terminal, to)] = TRANSPARENT_PAIRS[0];
    let [from, to] =
        [(client, from), (terminal, to)].map(|(host, at)| bound(topology.host(host), at));
    to.set_read_timeout(Some(Duration::from_millis(300)))
        .expect("a timeout");
    let target = to.local_addr().expect("a bound socket");
    from.send_to(b"hello", target).expect("a way there");
    to.recv(&mut [0; 100]).expect_err("nobody forwards");
}

#[test]
fn topologies_do_not_meet() {
    let (Some(one), Some(other)) = (build(""), build("")) else {
        return;
    };
    let [(client, from), (terminal, to)] = TRANSPARENT_PAIRS[0];
    let sender = bound(one.host(client), from);
    let near = bound(one.host(terminal), to);
    let far = bound(other.host(terminal), to);
    far.set_read_timeout(Some(Duration::from_millis(300)))
        .expect("a timeout");
    says(&sender, &near);
    far.recv(&mut [0; 100])
        .expect_err("a datagram of another topology");
}

#[test]
fn packets_take_the_path_of_the_clients_address() {
    let text = "title = \"t\"\nsource = \"s\"\ntimeout = \"60 s\"\npath = \"one\"\n\
                [satellite.forward]\ndelay = \"1 ms\"\n[satellite.return]\n\
                delay = \"1 ms\"\n[paths.other.access.forward]\n\
                [paths.other.satellite.forward]\ndelay = \"1 ms\"\n\
                [paths.other.satellite.return]\ndelay = \"1 ms\"\n";
    let scenario = Scenario::parse(text, "test.toml", &[]).expect("a scenario");
    let Some(topology) = built(&scenario) else {
        return;
    };
    let running = topology
        .emulator()
        .within(|| Forwarder::start(topology.segments(), &scenario, 1, &Options::default()))
        .expect("a thread that forwards");
    for (server, clients) in [
        ("198.51.100.1", ["192.0.2.1", "192.0.2.2"]),
        ("2001:db8:2::1", ["2001:db8:1::1", "2001:db8:1::2"]),
    ] {
        let server = bound(topology.host(HostName::Server), server);
        for client in clients {
            let client = bound(topology.host(HostName::Client), client);
            for (from, to) in [(&client, &server), (&server, &client)] {
                let sender = from.local_addr().expect("a bound socket").ip();
                assert_eq!(says(from, to), (b"hello".to_vec(), sender));
            }
        }
    }
    let report = running.stop().expect("it ends");
    let passed: Vec<_> = report
        .passed
        .iter()
        .map(|it| (it.path, it.segment, it.packets))
        .collect();
    // One packet of each version of IP each way.
    let expected = [
        (0, SegmentName::Satellite),
        (1, SegmentName::Access),
        (1, SegmentName::Satellite),
    ];
    let expected = expected.map(|(path, segment)| [(path, segment, 2); 2]);
    assert_eq!(passed, expected.concat());
}

fn output(mut command: Command) -> String {
    let done = command.output().expect("a command that starts");
    String::from_utf8(done.stdout)
        .expect("text")
        .trim()
        .to_owned()
}

#[test]
fn commands_run_on_their_host_in_this_folder() {
    let Some(topology) = build("") else { return };
    for name in HostName::ALL {
        let mut command = topology.host(name).command("sh").expect("a command");
        command.args(["-c", "hostname; pwd; echo $BENTPIPE_HOST"]);
        let here = std::env::current_dir().expect("a folder");
        assert_eq!(
            output(command),
            format!("{name}\n{}\n{name}", here.display())
        );
    }
}

#[test]
fn names_are_those_of_the_four_hosts() {
    let Some(topology) = build("") else { return };
    let mut command = topology
        .host(HostName::Gateway)
        .command("getent")
        .expect("a command");
    command.args(["ahostsv4", "server"]);
    assert!(output(command).starts_with("198.51.100.1"));
    let mut command = topology
        .host(HostName::Gateway)
        .command("getent")
        .expect("a command");
    command.args(["ahostsv6", "client"]);
    assert!(output(command).starts_with("2001:db8:1::1"));
    let own = std::fs::read_to_string("/etc/hosts").expect("the machine's own names");
    assert!(
        !own.contains("2001:db8:1::1"),
        "the machine's own file was changed"
    );
}

#[test]
fn a_command_ends_with_the_thread_that_started_it() {
    let Some(topology) = build("") else { return };
    let start = || {
        let mut command = topology
            .host(HostName::Client)
            .command("sleep")
            .expect("a command");
        command
            .arg("1000")
            .stdin(Stdio::null())
            .spawn()
            .expect("a process")
    };
    let mut child = thread::scope(|scope| scope.spawn(start).join()).expect("a child");
    let status = child.wait().expect("a status");
    assert!(!status.success());
    assert!(!Path::new(&format!("/proc/{}", child.id())).exists());
}

/// Two clients of one host, each of which tells the kernel of the host's addresses.
#[test]
fn an_address_that_mptcp_knows_already_is_no_error() {
    let Some(topology) = build("") else { return };
    let address = |last| IpAddr::from([192, 0, 2, last]);
    let endpoint = |last| MptcpEndpoint {
        address: address(last),
        is_full_mesh: false,
        is_backup: false,
    };
    inside(topology.host(HostName::Client), || {
        let mut manager = match MptcpPathManager::open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                println!("left out: this kernel has no MPTCP");
                return Ok(());
            }
            other => other?,
        };
        for _ in 0..2 {
            manager.set_limits(8)?;
            manager.add(endpoint(1))?;
            manager.add(endpoint(2))?;
        }
        // Linux takes eight; another error than that of an address twice is still one.
        let last = (3..20).find_map(|last| manager.add(endpoint(last)).err());
        assert!(last.is_some(), "more addresses than Linux takes");
        Ok(())
    });
}
