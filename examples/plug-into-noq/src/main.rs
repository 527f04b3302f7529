//! A download with noq over a satellite link in memory, with controllers of `bentpipe-congestion`.
//! `glue.rs` is all that plugs them in.
//!
//! Time is virtual: ten seconds of the link pass in a fraction of one.

mod glue;
mod link;
mod peer;
mod tls;

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bentpipe_congestion::Algorithms;
use noq_proto::congestion::{ControllerFactory, CubicConfig};
use noq_proto::{Dir, PathId, StreamId, TransportConfig, VarInt};

use link::Link;
use peer::Peer;

/// Bytes of the download.
const DOWNLOAD: u64 = 20_000_000;
/// Bytes per second of the link to the client: 20 Mbit/s.
const FORWARD: u64 = 2_500_000;
/// Bytes per second of the link back: 5 Mbit/s.
const RETURN: u64 = 625_000;
/// One way.
const DELAY: Duration = Duration::from_millis(300);
/// The longest delay of the queues.
const LONGEST: Duration = Duration::from_millis(300);

type Chosen = Arc<dyn ControllerFactory + Send + Sync>;

fn main() -> Result<(), Box<dyn Error>> {
    println!("{DOWNLOAD} bytes over 20 Mbit/s and an RTT of 600 ms:");
    // Not `standard`, nor noq's own CUBIC: they lose thousands of packets at once on this path, and
    // noq 1.4 ends a connection whose stream has that many gaps.
    for (cc, ss) in [
        ("cubic", "hystart++"),
        ("cubic", "search"),
        ("bentpipe", "flight"),
    ] {
        let algorithms = Algorithms::new(cc, ss)?;
        download(
            &format!("cc={cc} ss={ss}"),
            Arc::new(glue::Factory(algorithms)),
        )?;
    }
    Ok(())
}

fn transport(chosen: Chosen) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(chosen)
        // Flow control and send buffers must not be what limits a path of this length.
        .stream_receive_window(VarInt::from_u32(64 << 20))
        .send_window(64 << 20)
        .enable_segmentation_offload(false);
    Arc::new(transport)
}

fn download(name: &str, chosen: Chosen) -> Result<(), Box<dyn Error>> {
    let (mut of_server, mut of_client) = tls::both()?;
    of_server.transport_config(transport(chosen));
    of_client.transport_config(transport(Arc::new(CubicConfig::default())));

    #[expect(clippy::disallowed_methods, reason = "where virtual time begins")]
    let start = Instant::now();
    let mut now = start;
    let mut forward = Link::new(FORWARD, DELAY, LONGEST, start);
    let mut back = Link::new(RETURN, DELAY, LONGEST, start);
    let mut server = Peer::server(of_server);
    let mut client = Peer::client(of_client, start);
    let (mut source, mut sink) = (Source::default(), Sink::default());

    while sink.received < DOWNLOAD {
        while let Some(datagram) = back.receive(now) {
            server.receive(now, datagram);
        }
        while let Some(datagram) = forward.receive(now) {
            client.receive(now, datagram);
        }
        source.write(&mut server)?;
        sink.read(&mut client)?;
        server.drive(now, &mut forward)?;
        client.drive(now, &mut back)?;
        let next = [
            forward.next(),
            back.next(),
            server.timeout(),
            client.timeout(),
        ];
        let next = next.into_iter().flatten().min();
        now = next.ok_or("nobody has anything to do")?.max(now);
    }

    let took = (now - start).as_secs_f64();
    let (_, connection) = server.connection.as_mut().expect("it sent everything");
    let window = connection.path_stats(PathId::ZERO).map_or(0, |it| it.cwnd);
    println!(
        "{name:22} {took:6.2} s, {:3} packets lost, window {window} B at the end",
        forward.dropped
    );
    Ok(())
}

/// The server's application.
#[derive(Default)]
struct Source {
    stream: Option<StreamId>,
    written: u64,
}

impl Source {
    fn write(&mut self, peer: &mut Peer) -> Result<(), Box<dyn Error>> {
        let Some((_, connection)) = &mut peer.connection else {
            return Ok(());
        };
        if self.stream.is_none() {
            self.stream = connection.streams().open(Dir::Uni);
        }
        let (Some(stream), true) = (self.stream, self.written < DOWNLOAD) else {
            return Ok(());
        };
        let block = [0; 16384];
        let mut stream = connection.send_stream(stream);
        loop {
            let left = block.len().min((DOWNLOAD - self.written) as usize);
            if left == 0 {
                stream.finish()?;
                return Ok(());
            }
            match stream.write(&block[..left]) {
                Ok(bytes) => self.written += bytes as u64,
                Err(noq_proto::WriteError::Blocked) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The client's application.
#[derive(Default)]
struct Sink {
    stream: Option<StreamId>,
    received: u64,
}

impl Sink {
    fn read(&mut self, peer: &mut Peer) -> Result<(), Box<dyn Error>> {
        let (_, connection) = peer.connection.as_mut().expect("it has connected");
        if self.stream.is_none() {
            self.stream = connection.streams().accept(Dir::Uni);
        }
        let Some(stream) = self.stream else {
            return Ok(());
        };
        let mut stream = connection.recv_stream(stream);
        let mut chunks = stream.read(true)?;
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            self.received += chunk.bytes.len() as u64;
        }
        let _ = chunks.finalize();
        Ok(())
    }
}
