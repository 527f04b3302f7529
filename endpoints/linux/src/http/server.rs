//! The server: answers each request with the file that its path names.

use std::cell::RefCell;
use std::convert::Infallible;
use std::net::TcpListener as Listener;
use std::rc::Rc;
use std::sync::Arc;

use bentpipe_endpoint::{EndpointError, ServedFolder, Setup};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};
use tokio_rustls::TlsAcceptor;

use super::{H2, LocalTasks, runtime};
use crate::kernel::Kernel;
use crate::server::end_on_signal;

/// The server's state, shared by all connections.
struct Server {
    /// None: in the clear.
    tls: Option<Arc<ServerConfig>>,
    www: RefCell<ServedFolder>,
    is_http2: bool,
}

/// Serves until SIGTERM.
pub fn serve(setup: &Setup, kernel: &Kernel) -> Result<(), EndpointError> {
    let www = ServedFolder::new(setup.www.as_deref().unwrap_or("".as_ref()))?;
    let server = Rc::new(Server {
        tls: kernel
            .is_tls()
            .then(|| crate::server::tls(setup, kernel))
            .transpose()?,
        www: RefCell::new(www),
        is_http2: setup.alpn == H2,
    });
    let listener = kernel.listen(setup.local)?;
    end_on_signal(setup)?;
    LocalSet::new().block_on(&runtime()?, server.run(listener))
}

impl Server {
    async fn run(self: Rc<Self>, listener: Listener) -> Result<(), EndpointError> {
        let failed = || EndpointError::io("listening");
        listener.set_nonblocking(true).map_err(failed())?;
        let listener = TcpListener::from_std(listener).map_err(failed())?;
        println!("ready");
        loop {
            let (stream, _) = listener.accept().await.map_err(failed())?;
            spawn_local(self.clone().answer(stream));
        }
    }

    /// A connection. What fails is the client's to say.
    async fn answer(self: Rc<Self>, stream: TcpStream) {
        let _ = stream.set_nodelay(true); // the connection may be gone already
        match &self.tls {
            None => self.speak(stream).await,
            Some(tls) => {
                if let Ok(stream) = TlsAcceptor::from(tls.clone()).accept(stream).await {
                    self.speak(stream).await;
                }
            }
        }
    }

    async fn speak(self: &Rc<Self>, stream: impl AsyncRead + AsyncWrite + Unpin + 'static) {
        let service = service_fn(|request| {
            let server = self.clone();
            async move { Ok::<_, Infallible>(server.respond(&request)) }
        });
        let stream = TokioIo::new(stream);
        let _ = if self.is_http2 {
            let builder = http2::Builder::new(LocalTasks);
            builder.serve_connection(stream, service).await
        } else {
            http1::Builder::new()
                .serve_connection(stream, service)
                .await
        };
    }

    fn respond(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path().trim_start_matches('/');
        let file = self.www.borrow_mut().load(path);
        let file = file.filter(|_| request.method() == Method::GET);
        let status = file
            .as_ref()
            .map_or(StatusCode::NOT_FOUND, |_| StatusCode::OK);
        let mut response = Response::new(Full::from(file.unwrap_or_default()));
        *response.status_mut() = status;
        response
    }
}
