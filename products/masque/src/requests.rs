//! A proxy's tasks: which requests of a connection are for UDP or IP, and the answers.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h3::error::StreamError;
use h3::ext::Protocol;
use h3::server::RequestResolver;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};

use crate::channel::{Channel, Ending, Shared, read, write};
use crate::forwarding::field::{self, Forwarding, Offer};
use crate::forwarding::{Transform, TransformKind, Transforms};
use crate::ip::{Scope, ScopeError};
use crate::refusal::Refusal;
use crate::session::{Session, spawn};
use crate::streams::wake;
use crate::target::Target;
use crate::transport::Transport;

/// The longest header section that is read, in bytes as RFC 9114, section 4.2.2, counts them.
const LONGEST_HEADERS: u64 = 16 << 10;

/// A request that may succeed: if there is a socket for it, or a route.
pub struct Requested {
    pub kind: RequestKind,
    pub channel: Shared,
}

/// The kind of a request, with its limits.
pub enum RequestKind {
    /// UDP payloads to a target.
    Udp(Target),
    /// IP packets.
    Ip(Scope),
}

/// The kinds of requests that a proxy takes beside UDP payloads in a tunnel.
#[derive(Debug, Clone, Copy)]
pub struct Takes {
    /// Requests for IP.
    pub ip: bool,
    /// Packets of QUIC beside the tunnel, with this transform.
    pub forward: Option<TransformKind>,
}

/// The requests of a connection that nobody has looked at.
#[derive(Default)]
pub struct Arrivals {
    pub requested: VecDeque<Requested>,
    /// The statuses of those that were refused at once.
    pub refused: Vec<StatusCode>,
    is_draining: bool,
    drainer: Option<Waker>,
}

/// The requests of a connection; its tasks share them.
pub type Requests = Rc<RefCell<Arrivals>>;

/// The tokens that hold now, one of which a client must show; none: all may.
pub type Tokens = Rc<RefCell<Rc<[String]>>>;

impl Arrivals {
    /// Those that nobody has looked at, and the statuses of those that were refused.
    pub fn take(&mut self) -> (VecDeque<Requested>, Vec<StatusCode>) {
        let Self {
            requested, refused, ..
        } = self;
        (std::mem::take(requested), std::mem::take(refused))
    }

    /// Has the client be told that there will be no more.
    pub fn drain(&mut self) {
        self.is_draining = true;
        wake(&mut self.drainer);
    }

    fn poll_drain(&mut self, context: &Context<'_>) -> Poll<()> {
        if std::mem::take(&mut self.is_draining) {
            return Poll::Ready(());
        }
        self.drainer = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Adds the tasks that take a connection's requests.
pub fn serve(session: &Session, (requests, takes): (&Requests, Takes), tokens: &Tokens) {
    let (transport, spawner) = (session.transport().clone(), session.spawner().clone());
    let (requests, tokens) = (requests.clone(), tokens.clone());
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
        loop {
            let next = {
                let mut accepted = pin!(connection.accept());
                poll_fn(|context| match requests.borrow_mut().poll_drain(context) {
                    Poll::Ready(()) => Poll::Ready(None),
                    Poll::Pending => accepted.as_mut().poll(context).map(Some),
                })
                .await
            };
            let request = match next {
                // GOAWAY with the first request that is not taken (RFC 9114, section 5.2): those
                // after it the library rejects, and the proxy that one.
                None if connection.shutdown(1).await.is_ok() => continue,
                Some(Ok(Some(request))) => request,
                None | Some(Ok(None) | Err(_)) => return,
            };
            let (transport, requests) = (transport.clone(), requests.clone());
            let (tasks, tokens) = (spawner.clone(), tokens.clone());
            spawn(&spawner, async move {
                // What fails here the client learns from its stream.
                let around = (transport, requests, takes);
                let _ = answer(request, around, &tokens, tasks).await;
            });
        }
    });
}

async fn answer(
    request: RequestResolver<Transport, Bytes>,
    (transport, requests, takes): (Transport, Requests, Takes),
    tokens: &Tokens,
    spawner: futures_executor::LocalSpawner,
) -> Result<(), StreamError> {
    let (request, mut stream) = request.resolve_request().await?;
    let id = stream.id();
    transport.used(id);
    let valid = tokens.borrow().clone();
    let kind = match judge(&request, &valid, takes.ip) {
        Ok(kind) => kind,
        Err(status) => {
            requests.borrow_mut().refused.push(status);
            stream.send_response(response(status)).await?;
            return stream.finish().await;
        }
    };
    let (transforms, agreed) = match kind {
        RequestKind::Udp(_) => agree(request.headers(), takes.forward),
        RequestKind::Ip(_) => (None, None),
    };
    let mut channel = Channel::of(id);
    channel.transforms = transforms;
    let channel: Shared = Rc::new(RefCell::new(channel));
    requests.borrow_mut().requested.push_back(Requested {
        kind,
        channel: channel.clone(),
    });
    let decided = poll_fn(|context| channel.borrow_mut().poll_decided(context));
    let decided = decided.await;
    let (status, answer) = match decided {
        Ok(()) => (StatusCode::OK, accepting(agreed)),
        Err(refusal) => (refusal.status(), refusal.response()),
    };
    let sent = stream.send_response(answer).await;
    if decided.is_err() || sent.is_err() {
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

/// The kind of a request, or the status of its answer.
fn judge(
    request: &Request<()>,
    tokens: &[String],
    takes_ip: bool,
) -> Result<RequestKind, StatusCode> {
    if request.method() != Method::CONNECT {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    let protocol = request.extensions().get::<Protocol>();
    let is_ip = match protocol {
        Some(&Protocol::CONNECT_UDP) => false,
        Some(&Protocol::CONNECT_IP) if takes_ip => true,
        _ => return Err(StatusCode::NOT_IMPLEMENTED),
    };
    if !tokens.is_empty() && !is_known(request.headers(), tokens) {
        return Err(StatusCode::PROXY_AUTHENTICATION_REQUIRED);
    }
    let path = request.uri().path();
    if is_ip {
        let scope = Scope::of_path(path).map_err(|error| match error {
            ScopeError::Path(_) => StatusCode::BAD_REQUEST,
            ScopeError::Name(_) => StatusCode::BAD_GATEWAY,
        });
        return scope.map(RequestKind::Ip);
    }
    let target = Target::of_path(path).map_err(|_| StatusCode::BAD_REQUEST);
    target.map(RequestKind::Udp)
}

/// How packets are forwarded, if a client offers what the proxy takes; and the answer's field, if
/// the client has asked.
fn agree(
    asked: &HeaderMap,
    takes: Option<TransformKind>,
) -> (Option<Transforms>, Option<HeaderValue>) {
    let Some(kind) = takes else {
        // It knows the field, and does not forward.
        let is_asked = asked.contains_key(field::FORWARDING);
        return (None, is_asked.then_some(field::NO));
    };
    let key = match field::offered(asked, kind) {
        Offer::None => return (None, None),
        Offer::Other => return (None, Some(field::NO)),
        Offer::Wanted(key) => key,
    };
    let own = Forwarding::with_random_key(kind);
    let transforms = Transforms {
        sending: Transform::new(kind, &own.key),
        receiving: Transform::new(kind, &key),
    };
    (Some(transforms), Some(field::selection(&own)))
}

/// The answer to a request that succeeds.
fn accepting(forwarding: Option<HeaderValue>) -> Response<()> {
    let mut response = response(StatusCode::OK);
    if let Some(forwarding) = forwarding {
        let headers = response.headers_mut();
        headers.insert(field::FORWARDING, forwarding);
        headers.insert(field::PORT_SHARING, field::NO);
    }
    response
}

/// Whether a client shows one of the tokens (RFC 6750, section 2.1), in whatever case the scheme is
/// written (RFC 9110, section 11.1).
fn is_known(headers: &HeaderMap, tokens: &[String]) -> bool {
    let shown = headers.get(header::PROXY_AUTHORIZATION);
    let shown = shown.and_then(|it| it.to_str().ok()?.split_once(' '));
    shown.is_some_and(|(scheme, shown)| {
        let shown = shown.trim_start_matches(' ');
        let is_scheme = scheme.eq_ignore_ascii_case("Bearer");
        tokens
            .iter()
            .fold(false, |known, token| known | is_same(shown, token))
            && is_scheme
    })
}

/// Takes as long whichever byte differs.
fn is_same(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).map(|(a, b)| a ^ b);
    one.len() == other.len() && differences.fold(0, |sum, it| sum | it) == 0
}

impl Refusal {
    fn response(self) -> Response<()> {
        let mut response = response(self.status());
        let headers = response.headers_mut();
        headers.insert(
            "proxy-status",
            HeaderValue::from_static(self.proxy_status()),
        );
        response
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_in_whatever_case_its_scheme_is_written() {
        let tokens = ["one".to_owned(), "other".to_owned()];
        for (value, known) in [
            ("Bearer other", true),
            ("bearer one", true),
            ("BEARER  one", true),
            ("Basic one", false),
            ("Bearer One", false),
            ("Bearer", false),
            ("one", false),
        ] {
            let mut headers = HeaderMap::new();
            let value = HeaderValue::from_static(value);
            headers.insert(header::PROXY_AUTHORIZATION, value.clone());
            assert_eq!(is_known(&headers, &tokens), known, "{value:?}");
        }
    }
}
