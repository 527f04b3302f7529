//! Load for the proxy: small requests, many of them or on many connections.
//!
//! `noq-bulk echo` prints its port and answers every bidirectional stream with what it brings,
//! until it is killed. The others ask it, through the proxy or not, and print one JSON object:
//! `ping`, one small stream after the other, how long each took; `hold`, a number of connections
//! open at once, each with a request; `short`, a number of connections a minute, each for one
//! request; `requests`, a number over a few connections.

#![expect(
    clippy::disallowed_methods,
    reason = "it measures, over sockets of its own"
)]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "counts of requests are small"
)]

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noq::{Connection, Endpoint, TransportConfig};
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

use crate::{Outcome, tls};

const REQUEST: [u8; 32] = [7; 32];
/// Requests of a connection that are under way at once.
const DEPTH: usize = 16;
/// Handshakes under way at once, where connections are to be open together.
const STARTING: usize = 50;
const KEEP_ALIVE: Duration = Duration::from_secs(5);

type Sent = Result<(), String>;

pub async fn echo() -> Outcome<()> {
    let endpoint = Endpoint::server(tls::server()?, (Ipv4Addr::LOCALHOST, 0).into())?;
    println!("{}", endpoint.local_addr()?.port());
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else {
                return;
            };
            while let Ok((mut out, mut into)) = connection.accept_bi().await {
                tokio::spawn(async move {
                    if let Ok(bytes) = into.read_to_end(1 << 20).await {
                        // A client that has gone away wants no answer.
                        let _ = out.write_all(&bytes).await;
                        let _ = out.finish();
                    }
                });
            }
        });
    }
    Ok(())
}

pub async fn ping(port: u16, count: usize, gap_us: u64) -> Outcome<()> {
    let endpoint = client()?;
    let connection = connect(&endpoint, port).await?;
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = Instant::now();
        ask(&connection).await?;
        times.push(begun.elapsed());
        sleep(Duration::from_micros(gap_us)).await;
    }
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    times.sort();
    let at = |share: f64| times[(share * (count - 1) as f64) as usize].as_secs_f64() * 1e3;
    println!(
        r#"{{"count": {count}, "p50_ms": {:.4}, "p90_ms": {:.4}, "p99_ms": {:.4}, "max_ms": {:.4}}}"#,
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
    Ok(())
}

pub async fn hold(port: u16, count: usize) -> Outcome<()> {
    let endpoint = client()?;
    let begun = Instant::now();
    let mut starting: JoinSet<Result<Connection, String>> = JoinSet::new();
    let (mut open, mut failed) = (Vec::new(), Vec::new());
    for _ in 0..count {
        if starting.len() == STARTING {
            note(starting.join_next().await, &mut open, &mut failed);
        }
        let endpoint = endpoint.clone();
        starting.spawn(async move {
            let connection = connect(&endpoint, port).await?;
            ask(&connection).await?;
            Ok(connection)
        });
    }
    while !starting.is_empty() {
        note(starting.join_next().await, &mut open, &mut failed);
    }
    let opened = begun.elapsed();
    // All are there at once: each must still answer.
    let mut asking: JoinSet<Sent> = JoinSet::new();
    for connection in &open {
        let connection = connection.clone();
        asking.spawn(async move { ask(&connection).await });
    }
    while let Some(asked) = asking.join_next().await {
        failed.extend(asked?.err());
    }
    let held = open.iter().filter(|it| it.close_reason().is_none()).count();
    println!(
        r#"{{"count": {count}, "held": {held}, "failed": {}, "opened_s": {:.3}, "all_s": {:.3}}}"#,
        failed.len(),
        opened.as_secs_f64(),
        begun.elapsed().as_secs_f64()
    );
    complain(&failed);
    for connection in open {
        connection.close(0u32.into(), b"");
    }
    endpoint.wait_idle().await;
    Ok(())
}

pub async fn short(port: u16, count: usize, a_minute: f64) -> Outcome<()> {
    let endpoint = client()?;
    let begun = tokio::time::Instant::now();
    let mut running: JoinSet<Result<Duration, String>> = JoinSet::new();
    let (mut times, mut failed) = (Vec::new(), Vec::new());
    for number in 0..count {
        sleep_until(begun + Duration::from_secs_f64(60.0 / a_minute * number as f64)).await;
        let endpoint = endpoint.clone();
        running.spawn(async move {
            let begun = Instant::now();
            let connection = connect(&endpoint, port).await?;
            ask(&connection).await?;
            connection.close(0u32.into(), b"");
            Ok(begun.elapsed())
        });
        while let Some(done) = running.try_join_next() {
            note(Some(done), &mut times, &mut failed);
        }
    }
    while !running.is_empty() {
        note(running.join_next().await, &mut times, &mut failed);
    }
    let seconds = begun.elapsed().as_secs_f64();
    times.sort();
    let last = times.len().saturating_sub(1) as f64;
    let at = |share: f64| {
        times
            .get((share * last) as usize)
            .map_or(-1.0, |it| it.as_secs_f64() * 1e3)
    };
    println!(
        r#"{{"count": {count}, "done": {}, "failed": {}, "seconds": {seconds:.3}, "p50_ms": {:.3}, "p99_ms": {:.3}}}"#,
        times.len(),
        failed.len(),
        at(0.5),
        at(0.99)
    );
    complain(&failed);
    endpoint.wait_idle().await;
    Ok(())
}

pub async fn requests(port: u16, connections: usize, count: usize) -> Outcome<()> {
    let endpoint = client()?;
    let begun = Instant::now();
    let mut running: JoinSet<Sent> = JoinSet::new();
    for _ in 0..connections {
        let connection = connect(&endpoint, port).await?;
        for _ in 0..DEPTH {
            let connection = connection.clone();
            let share = count.div_ceil(connections * DEPTH);
            running.spawn(async move {
                for _ in 0..share {
                    ask(&connection).await?;
                }
                Ok(())
            });
        }
    }
    let mut failed = Vec::new();
    while let Some(done) = running.join_next().await {
        failed.extend(done?.err());
    }
    println!(
        r#"{{"count": {count}, "failed": {}, "seconds": {:.3}}}"#,
        failed.len(),
        begun.elapsed().as_secs_f64()
    );
    complain(&failed);
    endpoint.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

fn client() -> Outcome<Endpoint> {
    let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    let mut config = tls::client()?;
    // Connections that are only held do not end by themselves on a machine that is busy for long.
    let mut transport = TransportConfig::default();
    transport.keep_alive_interval(Some(KEEP_ALIVE));
    config.transport_config(Arc::new(transport));
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

async fn connect(endpoint: &Endpoint, port: u16) -> Result<Connection, String> {
    let connecting = endpoint.connect((Ipv4Addr::LOCALHOST, port).into(), "localhost");
    let connecting = connecting.map_err(|error| error.to_string())?;
    connecting.await.map_err(|error| error.to_string())
}

/// A request, and the whole answer.
async fn ask(connection: &Connection) -> Sent {
    let (mut out, mut into) = connection
        .open_bi()
        .await
        .map_err(|error| error.to_string())?;
    out.write_all(&REQUEST)
        .await
        .map_err(|error| error.to_string())?;
    out.finish().map_err(|error| error.to_string())?;
    let answer = into
        .read_to_end(1 << 20)
        .await
        .map_err(|error| error.to_string())?;
    if answer == REQUEST {
        Ok(())
    } else {
        Err(format!(
            "an answer of {} bytes is not the request",
            answer.len()
        ))
    }
}

fn note<T>(
    done: Option<Result<Result<T, String>, tokio::task::JoinError>>,
    good: &mut Vec<T>,
    failed: &mut Vec<String>,
) {
    match done {
        Some(Ok(Ok(it))) => good.push(it),
        Some(Ok(Err(why))) => failed.push(why),
        Some(Err(error)) => failed.push(error.to_string()),
        None => {}
    }
}

fn complain(failed: &[String]) {
    if let Some(first) = failed.first() {
        eprintln!("{} failed, the first: {first}", failed.len());
    }
}
