//! Connections of the client: TCP, TLS, and HTTP on it.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use bentpipe_endpoint::{EndpointError, LogFile};
use bentpipe_linux_tcp::SocketKind;
use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::{http1, http2};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpSocket;
use tokio::task::spawn_local;
use tokio_rustls::TlsConnector;

use super::LocalTasks;

/// Flow control of HTTP/2 as Chromium has it: bytes of a stream, and of the connection.
const WINDOWS: [u32; 2] = [6 << 20, 15 << 20];

/// The sender of requests on a connection of HTTP/1.1, one at a time.
pub type Http1 = http1::SendRequest<Empty<Bytes>>;
/// The sender of requests on a connection of HTTP/2; its clones send at the same time.
pub type Http2 = http2::SendRequest<Empty<Bytes>>;

/// The byte stream that carries HTTP.
trait Stream: Read + Write + Unpin {}
impl<T: Read + Write + Unpin> Stream for T {}

/// The maker of connections.
pub struct Connector {
    pub sockets: SocketKind,
    /// None: in the clear.
    pub tls: Option<Arc<ClientConfig>>,
    pub remote: SocketAddr,
    pub keylog: Option<LogFile>,
}

impl Connector {
    /// A connection of HTTP/1.1.
    pub async fn http1(&self) -> Result<Http1, EndpointError> {
        let stream = self.connect().await?;
        let (asker, connection) = http1::handshake(stream).await.map_err(failed)?;
        spawn_local(connection);
        Ok(asker)
    }

    /// A connection of HTTP/2.
    pub async fn http2(&self) -> Result<Http2, EndpointError> {
        let stream = self.connect().await?;
        let mut builder = http2::Builder::new(LocalTasks);
        builder.initial_stream_window_size(WINDOWS[0]);
        builder.initial_connection_window_size(WINDOWS[1]);
        let (asker, connection) = builder.handshake(stream).await.map_err(failed)?;
        spawn_local(connection);
        Ok(asker)
    }

    async fn connect(&self) -> Result<Box<dyn Stream>, EndpointError> {
        let failed = || EndpointError::io("connecting");
        let socket = TcpStream::from(self.sockets.make(self.remote)?);
        let socket = TcpSocket::from_std_stream(socket);
        let stream = socket.connect(self.remote).await.map_err(failed())?;
        let Some(tls) = &self.tls else {
            return Ok(Box::new(TokioIo::new(stream)));
        };
        let name = ServerName::try_from("server").expect("it is a name");
        let connecting = TlsConnector::from(tls.clone()).connect(name, stream);
        let stream = connecting.await.map_err(failed())?;
        // A client may be ended at any time.
        if let Some(keylog) = &self.keylog {
            keylog.complete()?;
        }
        Ok(Box::new(TokioIo::new(stream)))
    }
}

fn failed(error: hyper::Error) -> EndpointError {
    EndpointError::io("connecting")(io::Error::other(error))
}
