//! The client: asks for files, or sends some, over a connection for each request.
//!
//! A request that the server refuses fails alone. One whose connection fails makes the program
//! fail, after all others have ended.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bentpipe_endpoint::{EndpointError, Resume, Setup, TestCase};
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use crate::kernel::Kernel;
use crate::stream::Stream;
use crate::{STACK_BYTES, alpn, files};

/// Sends all requests of the setup, `parallel` at once; in test cases of two connections the second
/// after the first, with its ticket.
pub fn run(setup: &Setup, kernel: &Kernel, parallel: usize) -> Result<(), EndpointError> {
    let takes_ticket = setup.test_case.resume() != Resume::Nothing;
    if takes_ticket && setup.requests.len() != 2 {
        let (name, count) = (setup.test_case.name(), setup.requests.len());
        let what = format!("{name} of {count} requests; over TCP there are 2");
        return Err(EndpointError::Unsupported(what));
    }
    let client = Client {
        setup,
        kernel,
        tls: kernel.is_tls().then(|| tls(setup, kernel)).transpose()?,
        remote: setup.remote.expect("a client is told"),
        parallel,
    };
    if takes_ticket || setup.requests.len() == 1 {
        return setup.requests.iter().try_for_each(|url| client.ask(url));
    }
    client.ask_all(&setup.requests)
}

pub fn tls(setup: &Setup, kernel: &Kernel) -> Result<Arc<ClientConfig>, EndpointError> {
    let mut tls = setup.client_tls()?;
    tls.max_fragment_size = kernel.record();
    tls.alpn_protocols = vec![alpn(setup)];
    let resume = setup.test_case.resume();
    tls.enable_early_data = resume == Resume::EarlyData;
    if setup.test_case.is_of_page() && resume == Resume::Nothing {
        tls.resumption = Resumption::disabled(); // all connections of a page are new ones
    }
    Ok(Arc::new(tls))
}

struct Client<'a> {
    setup: &'a Setup,
    kernel: &'a Kernel,
    /// None: in the clear.
    tls: Option<Arc<ClientConfig>>,
    remote: SocketAddr,
    parallel: usize,
}

impl Client<'_> {
    /// A connection with `request` sent. The secrets are there as soon as the handshake is
    /// complete: a client may be ended at any time.
    fn connect(&self, request: &[u8]) -> Result<Stream, EndpointError> {
        let socket = self.kernel.connect(self.remote)?;
        let Some(tls) = &self.tls else {
            let mut stream = Stream::clear(socket);
            stream
                .write_all(request)
                .map_err(EndpointError::io("asking"))?;
            return Ok(stream);
        };
        let name = ServerName::try_from("server").expect("it is a name");
        let tls = ClientConnection::new(tls.clone(), name).map_err(EndpointError::tls)?;
        let stream = Stream::client(socket, tls, request)?;
        if let Some(keylog) = &self.setup.keylog {
            keylog.complete()?;
        }
        Ok(stream)
    }

    /// Sends all requests, as many at once as are allowed, each in a thread; when one has ended,
    /// the next one begins. The error is one of those that failed.
    fn ask_all(&self, urls: &[String]) -> Result<(), EndpointError> {
        let next = AtomicUsize::new(0);
        let ask_one_after_the_other = || {
            let mut all = Ok(());
            while let Some(url) = urls.get(next.fetch_add(1, Ordering::Relaxed)) {
                all = all.and(self.ask(url));
            }
            all
        };
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for _ in urls.iter().take(self.parallel) {
                let thread = thread::Builder::new().stack_size(STACK_BYTES);
                let started = thread.spawn_scoped(scope, ask_one_after_the_other);
                threads.push(started.map_err(EndpointError::io("starting a thread"))?);
            }
            let ended = threads
                .into_iter()
                .map(|it| it.join().expect("none panics"));
            ended.fold(Ok(()), Result::and)
        })
    }

    fn ask(&self, url: &str) -> Result<(), EndpointError> {
        let path = path_of(url)?;
        let ended = if self.setup.test_case == TestCase::Upload {
            self.send(path)
        } else {
            self.fetch(path)
        };
        match ended {
            Err(error) if files::is_refusal(&error) => {
                eprintln!("bentpipe-endpoint-linux: {path}: the server refused it");
                Ok(())
            }
            other => other,
        }
    }

    /// Requests a file, also one that could not be stored: the server says whether there is such a
    /// path.
    fn fetch(&self, path: &str) -> Result<(), EndpointError> {
        let folder = self.setup.downloads.as_deref();
        let mut stream = self.connect(format!("GET {path}\r\n").as_bytes())?;
        let Some(file) = folder.and_then(|folder| files::below(folder, path)) else {
            io::copy(&mut stream, &mut io::sink()).map_err(EndpointError::io("reading"))?;
            let what = format!("{path}: the server has it, but it is not below DOWNLOADS");
            return Err(EndpointError::Failed(what));
        };
        files::store(&mut stream, &file)?;
        stream.end()
    }

    fn send(&self, path: &str) -> Result<(), EndpointError> {
        let folder = self.setup.www.as_deref();
        let mut file = folder
            .and_then(|folder| files::open(folder, path))
            .ok_or_else(|| EndpointError::Field {
                field: "REQUESTS",
                value: path.to_owned(),
                problem: "it names no file of WWW".to_owned(),
            })?;
        let mut stream = self.connect(format!("PUT {path}\r\n").as_bytes())?;
        files::send(&mut file, &mut stream)?;
        stream.end()?;
        let answer = stream.read(&mut [0]);
        match answer.map_err(EndpointError::io("waiting for the answer"))? {
            0 => Ok(()),
            _ => Err(EndpointError::Failed(format!(
                "{path}: an answer with bytes"
            ))),
        }
    }
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
