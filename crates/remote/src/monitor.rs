//! A small regular flow beside trials: what it takes to and fro, and how much of it is lost.
//!
//! Its packets carry a number and the time at which they were sent, 64 bytes in all. Over a link
//! whose queues are by flow, it does not see what a loaded flow sees.

use std::error::Error;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::clock::{now, now_unix_ns};

const BYTES: usize = 64;
/// How long an answer is waited for when no more is asked.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// How soon a request to end is noticed, and the shortest timeout of a socket.
const TICK: Duration = Duration::from_millis(100);
const LEAST: Duration = Duration::from_micros(1);

/// Sends back what comes, until it is asked to end.
pub fn echo(listen: &str) -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind(listen.parse::<SocketAddr>()?)?;
    let stop = stop()?;
    socket.set_read_timeout(Some(TICK))?;
    println!("ready");
    let mut packet = [0; BYTES];
    while !stop.load(Ordering::Relaxed) {
        match socket.recv_from(&mut packet) {
            // A packet that cannot be sent back counts as lost, there.
            Ok((BYTES, from)) => drop(socket.send_to(&packet, from)),
            Ok(_) => {}
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Sends a probe every `every_ms` milliseconds until it is asked to end, and prints each one's
/// result as JSON: when it was sent, and the round trip, null where no answer came.
pub fn probe(to: &str, every_ms: &str) -> Result<(), Box<dyn Error>> {
    let to: SocketAddr = to.parse()?;
    let every = Duration::from_millis(every_ms.parse::<u64>()?.max(1));
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.connect(to)?;
    let stop = stop()?;
    let mut asked: Vec<(i64, Option<i64>)> = Vec::new();
    let mut next = now();
    while !stop.load(Ordering::Relaxed) {
        let at = now_unix_ns();
        let mut packet = [0; BYTES];
        packet[..8].copy_from_slice(&(asked.len() as u64).to_be_bytes());
        packet[8..16].copy_from_slice(&at.to_be_bytes());
        asked.push((at, None));
        // A host that refuses, or a route that is gone, is a loss.
        let _ = socket.send(&packet);
        next += every;
        while now() < next && !stop.load(Ordering::Relaxed) {
            listen(&socket, &mut asked, next)?;
        }
    }
    let end = now() + ANSWER_TIMEOUT;
    while now() < end && asked.iter().any(|it| it.1.is_none()) {
        listen(&socket, &mut asked, end)?;
    }
    let samples = asked.iter().map(|(at, round_trip)| {
        let ms = round_trip.map(|it| Duration::from_nanos(it.unsigned_abs()).as_secs_f64() * 1e3);
        json!({"asked_unix_ns": at, "rtt_ms": ms})
    });
    println!("{}", json!(samples.collect::<Vec<_>>()));
    Ok(())
}

/// Takes an answer, if one comes soon, and before `until`.
fn listen(
    socket: &UdpSocket,
    asked: &mut [(i64, Option<i64>)],
    until: Instant,
) -> Result<(), Box<dyn Error>> {
    let left = until.saturating_duration_since(now());
    socket.set_read_timeout(Some(left.clamp(LEAST, TICK)))?;
    let mut packet = [0; BYTES];
    match socket.recv(&mut packet) {
        Ok(BYTES) => {
            let number = u64::from_be_bytes(packet[..8].try_into()?);
            let sent = usize::try_from(number)
                .ok()
                .and_then(|it| asked.get_mut(it));
            if let Some(sent) = sent.filter(|it| it.1.is_none()) {
                sent.1 = Some(now_unix_ns() - sent.0);
            }
        }
        Ok(_) => {}
        Err(error) if is_pause(&error) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Whether nothing has come, or the other side said that nobody listens.
fn is_pause(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock
            | ErrorKind::TimedOut
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
    )
}

fn stop() -> Result<Arc<AtomicBool>, Box<dyn Error>> {
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&stop))?;
    Ok(stop)
}
