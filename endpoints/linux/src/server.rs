//! The server: a thread for each connection, each with one request.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::thread;

use bentpipe_endpoint::{EndpointError, Setup, TestCase};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;

use crate::kernel::Kernel;
use crate::{ALPN, STACK_BYTES, files};

type Stream = StreamOwned<ServerConnection, TcpStream>;

/// A request line that is longer is none.
const LONGEST_LINE: usize = 4096;

/// What every connection is answered by.
struct Server {
    tls: Arc<ServerConfig>,
    /// To serve from, or to store in.
    folder: PathBuf,
    stores: bool,
}

/// Serves until SIGTERM.
pub fn run(setup: &Setup, kernel: &Kernel) -> Result<(), EndpointError> {
    let stores = setup.test_case == TestCase::Upload;
    let folder = if stores { &setup.downloads } else { &setup.www };
    let mut tls = setup.server_tls()?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.max_early_data_size = 0;
    let server = Arc::new(Server {
        tls: Arc::new(tls),
        folder: folder.clone().ok_or_else(|| EndpointError::Field {
            field: if stores { "DOWNLOADS" } else { "WWW" },
            value: String::new(),
            problem: "a server needs this folder".to_owned(),
        })?,
        stores,
    });
    let listener = kernel.listen(setup.local)?;
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

impl Server {
    fn answer(&self, stream: TcpStream) -> Result<(), EndpointError> {
        stream
            .set_nodelay(true)
            .map_err(EndpointError::io("accepting"))?;
        let tls = ServerConnection::new(self.tls.clone())
            .map_err(|error| EndpointError::Tls(error.to_string()))?;
        let mut stream = StreamOwned::new(tls, stream);
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
        end(&mut stream)
    }
}

/// The connection ends without `close_notify`, which tells the client. What it sends all the same is
/// read, so that the kernel sends no reset.
fn refuse(line: &str, stream: Stream) -> Result<(), EndpointError> {
    let mut socket = stream.sock;
    let _ = socket.shutdown(Shutdown::Write);
    let _ = io::copy(&mut socket, &mut io::sink());
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

/// Nothing more is sent; waits until the client ends too, so that the kernel sends no reset.
fn end(stream: &mut Stream) -> Result<(), EndpointError> {
    stream.conn.send_close_notify();
    stream.flush().map_err(EndpointError::io("closing"))?;
    let _ = stream.sock.shutdown(Shutdown::Write);
    let _ = stream.sock.read(&mut [0; 1024]);
    Ok(())
}
