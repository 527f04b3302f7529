//! Measures the crate `noq` unchanged, with its own sockets, runtime and defaults; and loads the
//! proxy.
//!
//! `noq-bulk server` prints its port, serves one client and ends; `noq-bulk client PORT BYTES`
//! sends, and prints how many seconds passed from the open stream until all was acknowledged. Both
//! use one thread, as `bentpipe perf` does. `load` has the rest.

mod load;
mod tls;

use std::error::Error;
use std::time::Instant;

use bytes::Bytes;

type Outcome<T> = Result<T, Box<dyn Error>>;

const CHUNK: usize = 1 << 20;

fn main() -> Outcome<()> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match words[..] {
        ["server"] => runtime.block_on(server()),
        ["client", port, bytes] => runtime.block_on(client(port.parse()?, bytes.parse()?)),
        ["echo"] => runtime.block_on(load::echo()),
        ["ping", port, count, gap_us] => {
            runtime.block_on(load::ping(port.parse()?, count.parse()?, gap_us.parse()?))
        }
        ["hold", port, count] => runtime.block_on(load::hold(port.parse()?, count.parse()?)),
        ["short", port, count, a_minute] => runtime.block_on(load::short(
            port.parse()?,
            count.parse()?,
            a_minute.parse()?,
        )),
        ["requests", port, connections, count] => runtime.block_on(load::requests(
            port.parse()?,
            connections.parse()?,
            count.parse()?,
        )),
        _ => Err(
            "usage: noq-bulk server | client PORT BYTES | echo | ping PORT COUNT GAP_US | hold \
             PORT COUNT | short PORT COUNT A_MINUTE | requests PORT CONNECTIONS COUNT"
                .into(),
        ),
    }
}

async fn server() -> Outcome<()> {
    let endpoint = noq::Endpoint::server(tls::server()?, "127.0.0.1:0".parse()?)?;
    println!("{}", endpoint.local_addr()?.port());
    let connection = endpoint.accept().await.ok_or("no connection")?.await?;
    let mut stream = connection.accept_uni().await?;
    while stream.read_chunk(CHUNK).await?.is_some() {}
    connection.closed().await;
    Ok(())
}

async fn client(port: u16, bytes: usize) -> Outcome<()> {
    let endpoint = noq::Endpoint::client("127.0.0.1:0".parse()?)?;
    let remote = (std::net::Ipv4Addr::LOCALHOST, port).into();
    let connection = endpoint
        .connect_with(tls::client()?, remote, "localhost")?
        .await?;
    let mut stream = connection.open_uni().await?;
    let block = Bytes::from(vec![0; CHUNK]);
    #[expect(clippy::disallowed_methods, reason = "it measures")]
    let begun = Instant::now();
    let mut left = bytes;
    while left > 0 {
        let piece = block.slice(..left.min(CHUNK));
        left -= piece.len();
        stream.write_chunk(piece).await?;
    }
    stream.finish()?;
    stream.stopped().await?;
    #[expect(clippy::disallowed_methods, reason = "it measures")]
    let seconds = begun.elapsed().as_secs_f64();
    println!("{seconds}");
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}
