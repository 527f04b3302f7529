//! The client: asks for a file, or sends one, over a connection for each request.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use bentpipe_endpoint::{EndpointError, Setup, TestCase};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::kernel::Kernel;
use crate::{ALPN, files};

/// All requests of the setup: one, or in `resumption` one more with the first one's ticket.
pub fn run(setup: &Setup, kernel: &Kernel) -> Result<(), EndpointError> {
    let most = if setup.test_case == TestCase::Resumption {
        2
    } else {
        1
    };
    if setup.requests.len() != most {
        let (name, count) = (setup.test_case.name(), setup.requests.len());
        let what = format!("{name} of {count} requests; over TCP there are {most}");
        return Err(EndpointError::Unsupported(what));
    }
    let mut tls = setup.client_tls()?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let client = Client {
        setup,
        kernel,
        tls: Arc::new(tls),
        remote: setup.remote.expect("a client is told"),
    };
    setup.requests.iter().try_for_each(|url| client.ask(url))
}

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

struct Client<'a> {
    setup: &'a Setup,
    kernel: &'a Kernel,
    tls: Arc<ClientConfig>,
    remote: SocketAddr,
}

impl Client<'_> {
    /// The secrets are there as soon as the handshake is complete: a client may be ended at any time.
    fn connect(&self) -> Result<TlsStream, EndpointError> {
        let name = ServerName::try_from("server").expect("it is a name");
        let mut tls = ClientConnection::new(self.tls.clone(), name)
            .map_err(|error| EndpointError::Tls(error.to_string()))?;
        let mut stream = self.kernel.connect(self.remote)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut stream)
                .map_err(EndpointError::io("the handshake"))?;
        }
        if let Some(keylog) = &self.setup.keylog {
            keylog.complete()?;
        }
        Ok(StreamOwned::new(tls, stream))
    }

    fn ask(&self, url: &str) -> Result<(), EndpointError> {
        let path = path_of(url)?;
        let mut stream = self.connect()?;
        if self.setup.test_case == TestCase::Upload {
            self.send(path, &mut stream)
        } else {
            self.fetch(path, &mut stream)
        }
    }

    fn fetch(&self, path: &str, stream: &mut TlsStream) -> Result<(), EndpointError> {
        let file = self.folder(self.setup.downloads.as_deref(), path, files::below)?;
        say(stream, "GET", path)?;
        files::store(stream, &file)?;
        end(stream)
    }

    fn send(&self, path: &str, stream: &mut TlsStream) -> Result<(), EndpointError> {
        let mut file = self.folder(self.setup.www.as_deref(), path, files::open)?;
        say(stream, "PUT", path)?;
        files::send(&mut file, stream)?;
        end(stream)?;
        let answer = stream.read(&mut [0]);
        match answer.map_err(EndpointError::io("waiting for the answer"))? {
            0 => Ok(()),
            _ => Err(EndpointError::Failed(format!(
                "{path}: an answer with bytes"
            ))),
        }
    }

    fn folder<T>(
        &self,
        folder: Option<&Path>,
        path: &str,
        find: impl FnOnce(&Path, &str) -> Option<T>,
    ) -> Result<T, EndpointError> {
        let found = folder.and_then(|folder| find(folder, path));
        found.ok_or_else(|| EndpointError::Field {
            field: "REQUESTS",
            value: path.to_owned(),
            problem: format!(
                "it names no file of the folder of {}",
                self.setup.test_case.name()
            ),
        })
    }
}

fn say(stream: &mut impl Write, verb: &str, path: &str) -> Result<(), EndpointError> {
    let line = format!("{verb} {path}\r\n");
    stream
        .write_all(line.as_bytes())
        .map_err(EndpointError::io("asking"))
}

/// Nothing more is sent.
fn end(stream: &mut TlsStream) -> Result<(), EndpointError> {
    stream.conn.send_close_notify();
    stream.flush().map_err(EndpointError::io("closing"))?;
    // The other end may have gone already.
    let _ = stream.sock.shutdown(Shutdown::Write);
    Ok(())
}

fn path_of(url: &str) -> Result<&str, EndpointError> {
    let authority = url.strip_prefix("https://").unwrap_or(url);
    let slash = authority.find('/');
    slash
        .map(|at| &authority[at..])
        .ok_or_else(|| EndpointError::Field {
            field: "REQUESTS",
            value: url.to_owned(),
            problem: "write a URL with a path, such as https://127.0.0.1:4433/1024".to_owned(),
        })
}
