//! Packets of this machine's kernel through the emulator. Root only, since a test cannot move
//! itself into a user namespace; left out, with a line that says so, where namespaces cannot be
//! made.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use bentpipe_analysis::connection as trace;
use bentpipe_emulator::{
    EmulatorError, Forwarder, HopPacket, HostName, Options, Report, Running, Topology,
};
use bentpipe_link::{Direction, Fate, PacketMeta, Path, Scenario};
use bentpipe_units::Time;
use bentpipe_wire::capture::{Item, Reader};

const SEED: u64 = 7;
/// How often a reader looks whether there is more to come, and how often it does so in vain before
/// it gives up.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const MOST_LOOKS: u32 = 1200;

/// A topology whose packets are forwarded.
struct Trial {
    scenario: Scenario,
    topology: Topology,
    running: Running,
}

impl Trial {
    /// None where namespaces cannot be made.
    fn start(scenario: &str, options: &Options) -> Option<Self> {
        let text = format!("title = \"t\"\nsource = \"s\"\ntimeout = \"60 s\"\n{scenario}");
        let scenario = Scenario::parse(&text, "test.toml", &[]).unwrap();
        let topology = match Topology::build(&scenario) {
            Err(EmulatorError::NoNamespaces { error, .. }) => {
                println!("left out: namespaces cannot be made here ({error})");
                return None;
            }
            other => other.unwrap(),
        };
        let start = || Forwarder::start(topology.segments(), &scenario, SEED, options);
        let running = topology.emulator().within(start).unwrap();
        Some(Self {
            scenario,
            topology,
            running,
        })
    }

    /// Does `work` with the sockets of one host.
    fn on<T: Send>(&self, host: HostName, work: impl FnOnce() -> T + Send) -> T {
        let network = self.topology.host(host).network();
        network.within(|| Ok(work())).unwrap()
    }

    fn udp(&self, host: HostName, address: &str) -> UdpSocket {
        let socket = self.on(host, || UdpSocket::bind(address).unwrap());
        socket.set_read_timeout(Some(LOOK_AGAIN)).unwrap();
        // Whoever reads may have to wait for a processor.
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 1 << 22).unwrap();
        socket
    }

    /// How many packets came out towards the client, once all of `count` have met their fate and no
    /// more will come.
    fn settled(&self, count: u64) -> Option<u64> {
        let forward = &self.running.segment_counters()[0];
        let decided = forward.delivered + forward.queue_drops + forward.losses;
        let is_over = forward.packets == count && decided == count;
        (is_over && forward.released == forward.delivered).then_some(forward.released)
    }

    /// Sends numbered datagrams of growing size from the server to the client, and gives the
    /// numbers of those that arrive.
    fn send_numbers(&self, server: &str, client: &str, count: u16) -> BTreeSet<u16> {
        let receiver = self.udp(HostName::Client, client);
        let sender = self.udp(HostName::Server, server);
        for number in 0..count {
            let mut payload = vec![0; 20 + usize::from(number)];
            payload[..2].copy_from_slice(&number.to_le_bytes());
            sender.send_to(&payload, client).unwrap();
        }
        let mut arrived = BTreeSet::new();
        let mut buffer = [0; 2000];
        let mut looks_left = MOST_LOOKS;
        while self.settled(count.into()) != Some(arrived.len() as u64) {
            let Ok(length) = receiver.recv(&mut buffer) else {
                looks_left -= 1;
                assert!(looks_left > 0, "only {} came: {arrived:?}", arrived.len());
                continue;
            };
            let number = u16::from_le_bytes([buffer[0], buffer[1]]);
            assert_eq!(length, 20 + usize::from(number));
            assert!(arrived.last().is_none_or(|last| *last < number), "order");
            arrived.insert(number);
        }
        arrived
    }

    fn stop(self) -> Report {
        self.running.stop().unwrap()
    }
}

const LOSSY: &str = "
[satellite.forward]
rate = \"2 Mbit/s\"
delay = \"20 ms\"
queue = \"100 packets\"
loss = \"5 %\"
[satellite.return]
delay = \"20 ms\"
";

/// Both versions of IP: what arrives is what the model of virtual time lets through, and nothing
/// comes before its time.
#[test]
fn real_packets_meet_the_fates_of_virtual_time() {
    for (server, client, header) in [
        ("198.51.100.1:4000", "192.0.2.1:4000", 28),
        ("[2001:db8:2::1]:4000", "[2001:db8:1::1]:4000", 48),
    ] {
        let options = Options {
            keep_packets: true,
            ..Options::default()
        };
        let Some(trial) = Trial::start(LOSSY, &options) else {
            return;
        };
        let arrived = trial.send_numbers(server, client, 300);
        let mut path = Path::new(&trial.scenario, Direction::Forward, SEED);
        let report = trial.stop();

        assert_eq!(report.packets.len(), 300, "{:?}", report.fidelity);
        let mut fates = BTreeSet::new();
        for (number, packet) in (0_u16..).zip(&report.packets) {
            assert_eq!(packet.direction, Direction::Forward);
            assert_eq!(packet.ip().len(), header + 20 + usize::from(number));
            let ip_bytes = u32::try_from(packet.ip().len()).unwrap();
            let meta = PacketMeta {
                id: 0,
                ip_bytes,
                ecn: 0,
                flow: 0,
                is_udp: true,
            };
            path.enqueue(packet.sent.unwrap(), meta);
            let expected = path.outcome().unwrap().fate;
            check(packet, expected);
            fates.insert(packet.fate.name());
            let came = packet.fate == trace::Fate::Delivered;
            assert_eq!(arrived.contains(&number), came, "{number}");
        }
        let all = ["delivered", "loss", "queue_drop"];
        assert_eq!(fates, BTreeSet::from(all), "the test shows nothing");
        let forward = report.passed[0];
        assert_eq!(forward.packets, 300);
        assert_eq!(forward.released, arrived.len() as u64);
        assert_eq!(report.fidelity.release_error.packets, forward.released);
        assert_eq!(report.fidelity.kernel_drops, 0);
    }
}

fn check(packet: &HopPacket, expected: Fate) {
    match expected {
        Fate::Delivered { at } => {
            assert_eq!(packet.fate, trace::Fate::Delivered);
            assert!(packet.arrived.unwrap() >= at, "before its time");
        }
        Fate::QueueDrop => assert_eq!(packet.fate, trace::Fate::QueueDrop),
        Fate::Loss => assert_eq!(packet.fate, trace::Fate::Loss),
    }
}

/// The trace has each packet on the sender's side, followed by its arrival or with a comment.
#[test]
fn the_capture_is_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.pcapng");
    let options = Options {
        capture: Some(file.clone()),
        keep_packets: true,
        ..Options::default()
    };
    let Some(trial) = Trial::start(LOSSY, &options) else {
        return;
    };
    trial.send_numbers("198.51.100.1:4000", "192.0.2.1:4000", 300);
    let report = trial.stop();
    let bytes = fs::read(file).unwrap();
    let mut reader = Reader::new(&bytes).unwrap();
    let mut captured = Vec::new();
    for item in reader.by_ref() {
        let Ok(Item::Packet(packet)) = item else {
            panic!("{item:?}");
        };
        let comment = packet.comment.map(<[u8]>::to_vec);
        captured.push((
            packet.interface,
            packet.time,
            packet.bytes.to_vec(),
            comment,
        ));
    }
    let names: Vec<_> = reader
        .interfaces()
        .iter()
        .map(|it| it.name.clone())
        .collect();
    assert_eq!(
        names,
        ["client", "server"].map(|name| Some(name.to_owned()))
    );
    assert_eq!(captured.len() as u64, report.captured);

    let unix = |time: Time| report.start_unix_ns + time.as_nanos();
    let mut captured = captured.into_iter();
    for packet in &report.packets {
        let (interface, time, bytes, comment) = captured.next().unwrap();
        assert_eq!((interface, &*bytes), (1, packet.ip()));
        assert_eq!(time, packet.sent.map(unix));
        let lost = packet.fate != trace::Fate::Delivered;
        let expected = lost.then(|| packet.fate.name().as_bytes().to_vec());
        assert_eq!(comment, expected);
        if let Some(at) = packet.arrived {
            let (interface, time, bytes, comment) = captured.next().unwrap();
            assert_eq!((interface, &*bytes, comment), (0, packet.ip(), None));
            assert_eq!(time, Some(unix(at)));
        }
    }
    assert!(captured.next().is_none());
}

/// Hosts route between three emulated segments; nothing is merged, and no checksum is left open.
#[test]
fn tcp_crosses_three_segments() {
    let way = "rate = \"50 Mbit/s\"\ndelay = \"2 ms\"\n";
    let segments = ["access", "satellite", "ground"];
    let scenario = segments.map(|it| format!("[{it}.forward]\n{way}[{it}.return]\n{way}"));
    let Some(trial) = Trial::start(&scenario.concat(), &Options::default()) else {
        return;
    };
    let (mut client, mut server) = connect(&trial);
    let sent: Vec<u8> = (0_u32..1 << 18).flat_map(u32::to_le_bytes).collect();
    let received = std::thread::scope(|scope| {
        scope.spawn(|| {
            server.write_all(&sent).unwrap();
            server.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        client.read_to_end(&mut received).unwrap();
        received
    });
    assert!(received == sent);
    let report = trial.stop();
    assert_eq!(report.passed.len(), 6);
    for link in &report.passed {
        assert!(link.delivered > 0, "{link:?}");
        let all = link.delivered + link.queue_drops + link.losses;
        assert_eq!(link.packets, all, "{link:?}");
    }
    assert_eq!(report.fidelity.merged_packets, 0);
    assert_eq!(report.fidelity.unfinished_checksums, 0);
}

fn connect(trial: &Trial) -> (TcpStream, TcpStream) {
    let at: SocketAddr = "198.51.100.1:5001".parse().unwrap();
    let listener = trial.on(HostName::Server, || TcpListener::bind(at).unwrap());
    let client = trial.on(HostName::Client, || TcpStream::connect(at).unwrap());
    (client, listener.accept().unwrap().0)
}

/// The kernel's CUBIC over a satellite link whose queue holds a BDP fills it, 40 s long.
#[test]
#[ignore = "takes 40 s, and measures"]
fn cubic_fills_the_satellite_link() {
    let way = "delay = \"300 ms\"\nqueue = \"1 BDP\"\n";
    let scenario = format!(
        "[satellite.forward]\nrate = \"20 Mbit/s\"\n{way}[satellite.return]\nrate = \"2 \
         Mbit/s\"\n{way}"
    );
    let Some(trial) = Trial::start(&scenario, &Options::default()) else {
        return;
    };
    let (mut client, mut server) = connect(&trial);
    rustix::net::sockopt::set_tcp_congestion(&server, "cubic").unwrap();
    let second = |it: u64| Time::ZERO + bentpipe_units::Span::from_secs(it);
    let in_the_end = std::thread::scope(|scope| {
        scope.spawn(move || {
            // Until the client has gone.
            let data = vec![0; 1 << 16];
            while server.write_all(&data).is_ok() {}
        });
        let mut buffer = vec![0; 1 << 20];
        let mut bytes = 0;
        while trial.running.now() < second(40) {
            let length = client.read(&mut buffer).unwrap();
            assert!(length > 0, "the server gave up");
            if trial.running.now() >= second(30) {
                bytes += length;
            }
        }
        drop(client);
        bytes
    });
    let report = trial.stop();
    println!(
        "{} Mbit/s; {:?}",
        in_the_end * 8 / 10_000_000,
        report.fidelity
    );
    assert!(in_the_end * 8 > 190_000_000, "{in_the_end} bytes in 10 s");
}
