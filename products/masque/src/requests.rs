//! A proxy's tasks: which requests of a connection are for UDP, and the answers.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use h3::error::StreamError;
use h3::server::RequestResolver;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};

use crate::channel::{Channel, Ending, Shared, read, write};
use crate::session::{Session, spawn};
use crate::target::Target;
use crate::transport::Transport;

/// The longest header section that is read, in bytes as RFC 9114, section 4.2.2, counts them.
const LONGEST_HEADERS: u64 = 16 << 10;

/// A request that may succeed, if there is a socket for it.
pub struct Requested {
    pub target: Target,
    pub channel: Shared,
}

/// The requests of a connection that nobody has looked at.
pub type Requests = Rc<RefCell<VecDeque<Requested>>>;

/// Adds the tasks that take a connection's requests.
pub fn serve(session: &Session, requests: &Requests, tokens: &[String]) {
    let (transport, spawner) = (session.transport().clone(), session.spawner().clone());
    let (requests, tokens) = (requests.clone(), Rc::<[String]>::from(tokens));
    session.spawn(async move {
        let mut builder = h3::server::builder();
        builder
            .send_grease(false) // what is drawn at random would not repeat
            .enable_datagram(true)
            .enable_extended_connect(true)
            .max_field_section_size(LONGEST_HEADERS);
        let built = builder.build::<_, Bytes>(transport.clone()).await;
        let Ok(mut connection) = built else {
            return;
        };
        while let Ok(Some(request)) = connection.accept().await {
            let (transport, requests) = (transport.clone(), requests.clone());
            let (tasks, tokens) = (spawner.clone(), tokens.clone());
            spawn(&spawner, async move {
                // What fails here the client learns from its stream.
                let _ = answer(request, (transport, requests), &tokens, tasks).await;
            });
        }
    });
}

async fn answer(
    request: RequestResolver<Transport, Bytes>,
    (transport, requests): (Transport, Requests),
    tokens: &[String],
    spawner: futures_executor::LocalSpawner,
) -> Result<(), StreamError> {
    let (request, mut stream) = request.resolve_request().await?;
    let id = stream.id();
    transport.used(id);
    let target = match judge(&request, tokens) {
        Ok(target) => target,
        Err(status) => {
            stream.send_response(response(status)).await?;
            return stream.finish().await;
        }
    };
    let channel: Shared = Rc::new(RefCell::new(Channel::of(id)));
    requests.borrow_mut().push_back(Requested {
        target,
        channel: channel.clone(),
    });
    let decided = std::future::poll_fn(|context| channel.borrow_mut().poll_decided(context));
    let status = decided.await;
    let sent = stream.send_response(response(status)).await;
    if status != StatusCode::OK || sent.is_err() {
        let ending = Ending::Refused(status.as_u16());
        channel.borrow_mut().end(ending);
        sent?;
        return stream.finish().await;
    }
    channel.borrow_mut().open();
    let (sender, receiver) = stream.split();
    spawn(&spawner, write(sender, channel.clone()));
    read(receiver, id, channel, transport).await;
    Ok(())
}

/// The target of a request for UDP, or the status of its answer.
fn judge(request: &Request<()>, tokens: &[String]) -> Result<Target, StatusCode> {
    if request.method() != Method::CONNECT {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    let protocol = request.extensions().get::<h3::ext::Protocol>();
    if protocol != Some(&h3::ext::Protocol::CONNECT_UDP) {
        return Err(StatusCode::NOT_IMPLEMENTED);
    }
    if !tokens.is_empty() && !is_known(request.headers(), tokens) {
        return Err(StatusCode::PROXY_AUTHENTICATION_REQUIRED);
    }
    Target::of_path(request.uri().path()).map_err(|_| StatusCode::BAD_REQUEST)
}

/// Whether a client shows one of the tokens (RFC 6750, section 2.1).
fn is_known(headers: &HeaderMap, tokens: &[String]) -> bool {
    let shown = headers.get(header::PROXY_AUTHORIZATION);
    let shown = shown.and_then(|it| it.to_str().ok()?.strip_prefix("Bearer "));
    shown.is_some_and(|shown| {
        tokens
            .iter()
            .fold(false, |known, token| known | is_same(shown, token))
    })
}

/// Takes as long whichever byte differs.
fn is_same(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).map(|(a, b)| a ^ b);
    one.len() == other.len() && differences.fold(0, |sum, it| sum | it) == 0
}

fn response(status: StatusCode) -> Response<()> {
    let mut response = Response::builder().status(status);
    if status == StatusCode::OK {
        response = response.header("capsule-protocol", "?1");
    }
    if status == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
        response = response.header(header::PROXY_AUTHENTICATE, "Bearer");
    }
    response.body(()).expect("its parts are constants")
}
