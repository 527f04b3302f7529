//! Linux's TCP with TLS 1.3 as an endpoint program (`endpoints/CONTRACT.md`), in socket mode.
//!
//! HTTP/0.9 over TLS, or in the clear: a connection for each request, `GET /path` or `PUT /path`,
//! whose ends say `close_notify` and FIN. Congestion control and all else of TCP is the kernel's;
//! `kernel` says what of it is set. Pages are loaded over HTTP/1.1 and HTTP/2 (`http`).

mod client;
mod files;
mod http;
mod kernel;
mod multipath;
mod server;
mod stream;

use std::env;
use std::process::ExitCode;

use bentpipe_endpoint::{EndpointError, HTTP1_CONNECTIONS, Options, Resume, Role, Setup, TestCase};

use crate::kernel::Kernel;

/// The application protocol, as IANA registered it.
const ALPN: &str = "http/0.9";
/// The size of a thread's stack: there may be thousands of them.
const STACK_BYTES: usize = 256 << 10;
/// Connections of a client at one time, unless the option says otherwise: as many as a connection
/// of most stacks of QUIC may have streams. SYNs of thousands at once are lost in any queue.
const PARALLEL: usize = 100;
/// The number of ports for them.
const MOST_PARALLEL: usize = 28_000;

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--version"] => {
            println!("{}", kernel::version());
            Ok(())
        }
        [] => run(),
        _ => {
            eprintln!("usage: bentpipe-endpoint-linux [--version]");
            eprintln!("endpoints/CONTRACT.md says what it does.");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bentpipe-endpoint-linux: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run() -> Result<(), EndpointError> {
    let setup = Setup::from_environment()?;
    let is_of_http = setup.test_case.is_of_http();
    let spoken = if is_of_http { http::ALPN } else { &[ALPN] };
    if !spoken.contains(&setup.alpn.as_str()) {
        let (alpn, case, spoken) = (&setup.alpn, setup.test_case.name(), spoken.join(", "));
        let what = format!("application protocol {alpn:?}; in {case} there is {spoken} over TCP");
        return Err(EndpointError::Unsupported(what));
    }
    let why = match setup.test_case {
        TestCase::PageZeroRtt => Some("pages have no early data over TCP"),
        TestCase::Frames => Some("no stream of frames is carried over TCP"),
        _ => None,
    };
    if let Some(why) = why {
        let what = format!("test case {:?}: {why}", setup.test_case.name());
        return Err(EndpointError::Unsupported(what));
    }
    let mut options = Options::new(setup.options.clone());
    let kernel = Kernel::take(&mut options, setup.role)?;
    let parallel = parallel(&setup, &mut options)?;
    options.finish()?;
    if !kernel.is_tls()
        && let Some(what) = needs_tls(&setup, &kernel)
    {
        return Err(EndpointError::Unsupported(format!("{what} with tls=off")));
    }
    kernel.apply()?;
    bentpipe_linux_tcp::raise_descriptors();
    match setup.role {
        Role::Client if is_of_http => http::load(&setup, &kernel, parallel),
        Role::Server if is_of_http => http::serve(&setup, &kernel),
        Role::Client => client::run(&setup, &kernel, parallel),
        Role::Server => server::run(&setup, &kernel),
    }
}

/// How many connections a client has at one time. A server takes any number, and a client of HTTP/2
/// has one: both refuse the option.
fn parallel(setup: &Setup, options: &mut Options) -> Result<usize, EndpointError> {
    let (most, default) = match (setup.role, setup.test_case) {
        (Role::Server, _) => return Ok(1),
        (Role::Client, case) if !case.is_of_http() => (MOST_PARALLEL, PARALLEL),
        (Role::Client, _) if setup.alpn == http::H2 => return Ok(1),
        (Role::Client, _) => (HTTP1_CONNECTIONS, HTTP1_CONNECTIONS),
    };
    let asked = options.take_number("parallel", 1..=most)?;
    Ok(asked.unwrap_or(default))
}

/// The first requested feature that needs TLS, if there is one.
fn needs_tls(setup: &Setup, kernel: &Kernel) -> Option<String> {
    let case = setup.test_case;
    if case.resume() != Resume::Nothing {
        return Some(format!("test case {:?}", case.name()));
    }
    if setup.alpn == http::H2 {
        return Some(format!("application protocol {:?}", setup.alpn));
    }
    kernel.record().map(|_| "option record".to_owned())
}

/// The application protocol of connections.
fn alpn(setup: &Setup) -> Vec<u8> {
    setup.alpn.as_bytes().to_vec()
}
