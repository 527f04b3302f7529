//! A client's request, and the answer to it.

use bytes::Bytes;
use h3::client::SendRequest;
use http::{HeaderMap, Method, Request, Uri};

use crate::channel::{Channel, Ending, Shared, read, write};
use crate::config::ClientSettings;
use crate::forwarding::field::{self, Answer, Forwarding};
use crate::forwarding::{Transform, Transforms};
use crate::session::spawn;
use crate::transport::Transport;

/// The sender of a connection's requests.
pub type Asker = SendRequest<Transport, Bytes>;

/// The request for a target (RFC 9298, section 3.4) or for IP (RFC 9484, section 4.4).
pub fn request(uri: &Uri, settings: &ClientSettings, offer: Option<&Forwarding>) -> Request<()> {
    let mut request = Request::builder()
        .method(Method::CONNECT)
        .uri(uri.clone())
        .header("capsule-protocol", "?1")
        .extension(settings.wanted.protocol());
    if let Some(token) = &settings.token {
        request = request.header(http::header::PROXY_AUTHORIZATION, format!("Bearer {token}"));
    }
    if let Some(offer) = offer {
        request = request
            .header(field::FORWARDING, field::offer(offer))
            .header(field::PORT_SHARING, field::NO);
    }
    request.body(()).expect("its parts were checked")
}

/// Sends a request, and carries its capsules until it is over.
pub async fn exchange(
    mut asker: Asker,
    request: Request<()>,
    channel: &Shared,
    transport: Transport,
    spawner: futures_executor::LocalSpawner,
) -> Result<(), String> {
    let words = |error: h3::error::StreamError| error.to_string();
    let stream = asker.send_request(request).await.map_err(words)?;
    let id = stream.id();
    let (sender, mut receiver) = stream.split();
    channel.borrow_mut().stream = Some(id);
    spawn(&spawner, write(sender, channel.clone()));
    let response = receiver.recv_response().await.map_err(words)?;
    transport.used(id);
    if !response.status().is_success() {
        let mut channel = channel.borrow_mut();
        channel.end(Ending::Refused(response.status().as_u16()));
        channel.leave(Ok(()));
        return Ok(());
    }
    agree(&mut channel.borrow_mut(), response.headers())?;
    channel.borrow_mut().open();
    read(receiver, id, channel.clone(), transport).await;
    Ok(())
}

/// Takes the proxy's answer to an offer to forward packets.
fn agree(channel: &mut Channel, answer: &HeaderMap) -> Result<(), String> {
    let Some(offer) = &channel.offer else {
        return Ok(());
    };
    match field::answer(answer, offer.kind) {
        Answer::No => Ok(()),
        Answer::Yes(peer) => {
            channel.transforms = Some(Transforms {
                sending: Transform::new(offer.kind, &offer.key),
                receiving: Transform::new(offer.kind, &peer.key),
            });
            Ok(())
        }
        Answer::Unasked(name) => Err(format!(
            "the proxy has selected the transform {name:?}, which was not offered"
        )),
    }
}
