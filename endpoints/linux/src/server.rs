//! The server: a thread for each connection, each with one request.

use std::fs::File;
use std::io::{Read, Write};
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
use crate::{ALPN, files};

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
        thread::spawn(move || {
            if let Err(error) = server.answer(stream) {
                eprintln!("bentpipe-endpoint-linux: {error}");
            }
        });
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
        let served = match line.split_once(' ') {
            Some(("GET", path)) if !self.stores => files::open(&self.folder, path),
            Some(("PUT", path)) if self.stores => {
                return match files::below(&self.folder, path) {
                    Some(file) => {
                        files::store(&mut stream, &file)?;
                        end(&mut stream)
                    }
                    None => Err(refused(&line)),
                };
            }
            _ => None,
        };
        let mut file: File = served.ok_or_else(|| refused(&line))?;
        files::send(&mut file, &mut stream)?;
        end(&mut stream)
    }
}

/// The connection ends without `close_notify`, which tells the client.
fn refused(line: &str) -> EndpointError {
    EndpointError::Failed(format!("{line:?}: refused"))
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
fn end(stream: &mut StreamOwned<ServerConnection, TcpStream>) -> Result<(), EndpointError> {
    stream.conn.send_close_notify();
    stream.flush().map_err(EndpointError::io("closing"))?;
    let _ = stream.sock.shutdown(Shutdown::Write);
    let _ = stream.sock.read(&mut [0; 1024]);
    Ok(())
}
