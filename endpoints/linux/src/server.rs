//! The server: a thread for each connection, each with one request.

use std::io::Read;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::thread;

use bentpipe_endpoint::{EndpointError, Setup, TestCase};
use rustls::{ServerConfig, ServerConnection};
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;

use crate::kernel::Kernel;
use crate::stream::Stream;
use crate::{STACK_BYTES, alpn, files};

/// A request line that is longer is none.
const LONGEST_LINE: usize = 4096;
/// Bytes of early data of a connection: a request, not a file to store.
const MOST_EARLY: u32 = 1 << 14;

/// The type of a record with a `ClientHello` (RFC 8446, section 5.1); no request begins so.
const HANDSHAKE: u8 = 22;

/// The server's state, shared by all connections.
struct Server {
    /// None: in the clear.
    tls: Option<Arc<ServerConfig>>,
    /// The folder to serve from, or to store in.
    folder: PathBuf,
    stores: bool,
}

/// Serves until SIGTERM.
pub fn run(setup: &Setup, kernel: &Kernel) -> Result<(), EndpointError> {
    let stores = setup.test_case == TestCase::Upload;
    let folder = if stores { &setup.downloads } else { &setup.www };
    let server = Arc::new(Server {
        tls: kernel.is_tls().then(|| tls(setup, kernel)).transpose()?,
        folder: folder.clone().ok_or_else(|| EndpointError::Field {
            field: if stores { "DOWNLOADS" } else { "WWW" },
            value: String::new(),
            problem: "a server needs this folder".to_owned(),
        })?,
        stores,
    });
    let listener = kernel.listen(setup.local)?;
    end_on_signal(setup)?;
    println!("ready");
    for stream in listener.incoming() {
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) => {
                eprintln!("bentpipe-endpoint-linux: accepting: {error}"); // others may still come
                continue;
            }
        };
        let server = server.clone();
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        let started = thread.spawn(move || {
            if let Err(error) = server.answer(stream) {
                eprintln!("bentpipe-endpoint-linux: {error}");
            }
        });
        if let Err(error) = started {
            eprintln!("bentpipe-endpoint-linux: a thread for a connection: {error}");
        }
    }
    Ok(())
}

/// Ends the program when it is asked to, with its secrets written.
pub fn end_on_signal(setup: &Setup) -> Result<(), EndpointError> {
    let mut signals = Signals::new([SIGTERM]).map_err(EndpointError::io("waiting for SIGTERM"))?;
    let keylog = setup.keylog.clone();
    thread::spawn(move || {
        signals.forever().next();
        let written = keylog.map_or(Ok(()), |keylog| keylog.complete());
        if let Err(error) = &written {
            eprintln!("bentpipe-endpoint-linux: {error}");
        }
        process::exit(i32::from(written.is_err()));
    });
    Ok(())
}

/// Early data is taken where it is tested, and answered at once.
pub fn tls(setup: &Setup, kernel: &Kernel) -> Result<Arc<ServerConfig>, EndpointError> {
    let is_early = setup.test_case == TestCase::ZeroRtt;
    let mut tls = setup.server_tls()?;
    tls.max_fragment_size = kernel.record();
    tls.alpn_protocols = vec![alpn(setup)];
    tls.max_early_data_size = if is_early { MOST_EARLY } else { 0 };
    tls.send_half_rtt_data = is_early;
    Ok(Arc::new(tls))
}

impl Server {
    fn stream(&self, socket: TcpStream) -> Result<Stream, EndpointError> {
        socket
            .set_nodelay(true)
            .map_err(EndpointError::io("accepting"))?;
        let mut first = [0];
        let count = socket
            .peek(&mut first)
            .map_err(EndpointError::io("waiting for a request"))?;
        let says_hello = count == 1 && first == [HANDSHAKE];
        if count == 1 && says_hello != self.tls.is_some() {
            Stream::clear(socket).refuse();
            let (its, own) = if says_hello {
                ("on", "off")
            } else {
                ("off", "on")
            };
            let what = format!("a client with tls={its}, and this server has tls={own}");
            return Err(EndpointError::Failed(what));
        }
        let Some(tls) = &self.tls else {
            return Ok(Stream::clear(socket));
        };
        let tls = ServerConnection::new(tls.clone()).map_err(EndpointError::tls)?;
        Ok(Stream::server(socket, tls))
    }

    fn answer(&self, socket: TcpStream) -> Result<(), EndpointError> {
        let mut stream = self.stream(socket)?;
        let line = request_line(&mut stream)?;
        match line.split_once(' ') {
            Some(("GET", path)) if !self.stores => {
                let Some(mut file) = files::open(&self.folder, path) else {
                    return refuse(&line, stream);
                };
                files::send(&mut file, &mut stream)?;
            }
            Some(("PUT", path)) if self.stores => {
                let Some(file) = files::below(&self.folder, path) else {
                    return refuse(&line, stream);
                };
                files::store(&mut stream, &file)?;
            }
            _ => return refuse(&line, stream),
        }
        stream.end()?;
        stream.wait_for_end();
        Ok(())
    }
}

fn refuse(line: &str, stream: Stream) -> Result<(), EndpointError> {
    stream.refuse();
    Err(EndpointError::Failed(format!("{line:?}: refused")))
}

fn request_line(stream: &mut impl Read) -> Result<String, EndpointError> {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") {
        let count = stream
            .read(&mut byte)
            .map_err(EndpointError::io("reading a request"))?;
        if count == 0 || line.len() == LONGEST_LINE {
            return Err(EndpointError::Failed(
                "a connection without a request".to_owned(),
            ));
        }
        line.push(byte[0]);
    }
    line.truncate(line.len() - 2);
    String::from_utf8(line)
        .map_err(|_| EndpointError::Failed("a request that is no text".to_owned()))
}
