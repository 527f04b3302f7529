//! The HTTP fields by which client and proxy agree on forwarded mode: `Proxy-QUIC-Forwarding`, and
//! `Proxy-QUIC-Port-Sharing`, which neither offers.

use http::{HeaderMap, HeaderName, HeaderValue};
use sfv::{Item, ItemSerializer, KeyRef, Parser, StringRef, key_ref, string_ref};

use super::transform::{KEY, Key, TransformKind};

/// The name of the field.
pub const FORWARDING: HeaderName = HeaderName::from_static("proxy-quic-forwarding");
/// A proxy may share the ports towards targets among its clients' connections.
pub const PORT_SHARING: HeaderName = HeaderName::from_static("proxy-quic-port-sharing");
/// The Boolean "false" of a structured field.
pub const NO: HeaderValue = HeaderValue::from_static("?0");

const ACCEPTED: &KeyRef = key_ref("accept-transform");
const SELECTED: &KeyRef = key_ref("transform");
const SCRAMBLE_KEY: &KeyRef = key_ref("scramble-key");

/// The transform that an end offers or has selected, and the key of what it sends itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forwarding {
    pub kind: TransformKind,
    pub key: Key,
}

impl Forwarding {
    /// This transform with a new key.
    pub fn with_random_key(kind: TransformKind) -> Self {
        let mut key = [0; KEY];
        let random = rustls::crypto::ring::default_provider().secure_random;
        random.fill(&mut key).expect("the system has random bytes");
        Self { kind, key }
    }
}

/// The answer of a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It does not forward.
    No,
    /// It forwards so.
    Yes(Forwarding),
    /// It has selected a transform that was not offered.
    Unasked(String),
}

/// The field of a client that offers one transform.
pub fn offer(offered: &Forwarding) -> HeaderValue {
    write(ACCEPTED, offered)
}

/// The field of a proxy that has selected one.
pub fn selection(selected: &Forwarding) -> HeaderValue {
    write(SELECTED, selected)
}

fn write(name: &KeyRef, said: &Forwarding) -> HeaderValue {
    let transform = string_ref(said.kind.name());
    let mut item = ItemSerializer::new()
        .bare_item(true)
        .parameter(name, transform);
    if said.kind == TransformKind::Scramble {
        item = item.parameter(SCRAMBLE_KEY, &said.key[..]);
    }
    HeaderValue::try_from(item.finish()).expect("structured fields are of ASCII")
}

/// The offer of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offer {
    /// Nothing that the draft knows: the answer is as if it had not asked.
    None,
    /// No forwarding, or other transforms.
    Other,
    /// This transform; its key for what it sends.
    Wanted(Key),
}

/// The client's offer, where the proxy has this transform.
pub fn offered(fields: &HeaderMap, wanted: TransformKind) -> Offer {
    let Some(item) = read(fields) else {
        return Offer::None;
    };
    if !is_yes(&item) {
        return Offer::Other;
    }
    let Some(names) = text(&item, ACCEPTED) else {
        return Offer::None;
    };
    let mut names = names.as_str().split(',').map(str::trim);
    if !names.any(|it| it == wanted.name()) {
        return Offer::Other;
    }
    key(&item, wanted).map_or(Offer::Other, Offer::Wanted)
}

/// The proxy's answer to the offer of this transform.
pub fn answer(fields: &HeaderMap, wanted: TransformKind) -> Answer {
    let Some(item) = read(fields) else {
        return Answer::No;
    };
    match text(&item, SELECTED).map(StringRef::as_str) {
        Some(other) if other != wanted.name() => Answer::Unasked(other.to_owned()),
        Some(_) if is_yes(&item) => key(&item, wanted).map_or(Answer::No, |key| {
            Answer::Yes(Forwarding { kind: wanted, key })
        }),
        _ => Answer::No,
    }
}

/// The field, a Boolean with parameters. What cannot be read counts as not there (RFC 9651, section
/// 4.2).
fn read(fields: &HeaderMap) -> Option<Item> {
    let mut all = fields.get_all(FORWARDING).into_iter();
    let (only, None) = (all.next()?, all.next()) else {
        return None;
    };
    let item: Item = Parser::new(only.as_bytes()).parse().ok()?;
    item.bare_item.as_boolean().is_some().then_some(item)
}

fn is_yes(item: &Item) -> bool {
    item.bare_item.as_boolean() == Some(true)
}

fn text<'a>(item: &'a Item, name: &KeyRef) -> Option<&'a StringRef> {
    item.params.get(name)?.as_string()
}

/// The sender's key; one that is missing switches forwarding off.
fn key(item: &Item, kind: TransformKind) -> Option<Key> {
    match kind {
        TransformKind::Identity => Some([0; KEY]),
        TransformKind::Scramble => {
            let bytes = item.params.get(SCRAMBLE_KEY)?.as_byte_sequence()?;
            bytes.try_into().ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEVENS: &str = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";

    fn fields(text: &str) -> HeaderMap {
        let mut fields = HeaderMap::new();
        fields.insert(FORWARDING, HeaderValue::from_str(text).unwrap());
        fields
    }

    #[test]
    fn an_offer_is_written_as_the_draft_has_it_and_read_again() {
        let said = Forwarding {
            kind: TransformKind::Scramble,
            key: [7; KEY],
        };
        let text = offer(&said);
        let wanted = format!("?1;accept-transform=\"scramble-dt\";scramble-key=:{SEVENS}:");
        assert_eq!(text, wanted);
        let read = offered(&fields(text.to_str().unwrap()), TransformKind::Scramble);
        assert_eq!(read, Offer::Wanted(said.key));
        let text = selection(&said);
        let read = answer(&fields(text.to_str().unwrap()), TransformKind::Scramble);
        assert_eq!(read, Answer::Yes(said));
    }

    #[test]
    fn one_of_several_transforms_is_found() {
        let text =
            format!("?1; accept-transform=\"scramble-dt, identity\"; scramble-key=:{SEVENS}:");
        for kind in [TransformKind::Scramble, TransformKind::Identity] {
            let read = offered(&fields(&text), kind);
            assert!(matches!(read, Offer::Wanted(_)), "{kind:?}");
        }
    }

    #[test]
    fn what_the_draft_does_not_know_is_no_offer_and_another_transform_is_refused() {
        let read = |text: &str, kind| offered(&fields(text), kind);
        for text in [
            "?1",
            "1;accept-transform=\"identity\"",
            "?1;accept-transform=identity",
            "?1;accept-transform=\"identity",
            "?1;transform=\"identity\"",
            "",
        ] {
            assert_eq!(read(text, TransformKind::Identity), Offer::None, "{text}");
        }
        for text in [
            "?0;accept-transform=\"identity\"",
            "?1;accept-transform=\"other\"",
        ] {
            assert_eq!(read(text, TransformKind::Identity), Offer::Other, "{text}");
        }
        let short = "?1;accept-transform=\"scramble-dt\";scramble-key=:BwcH:";
        for text in ["?1;accept-transform=\"scramble-dt\"", short] {
            assert_eq!(read(text, TransformKind::Scramble), Offer::Other, "{text}");
        }
        let none = offered(&HeaderMap::new(), TransformKind::Identity);
        assert_eq!(none, Offer::None);
        let mut two = fields("?1;accept-transform=\"identity\"");
        two.append(FORWARDING, HeaderValue::from_static("?1"));
        assert_eq!(offered(&two, TransformKind::Identity), Offer::None);
    }

    #[test]
    fn an_answer_that_was_not_asked_for_is_told_from_none() {
        let read = |text| answer(&fields(text), TransformKind::Scramble);
        assert_eq!(read("?0"), Answer::No);
        assert_eq!(read("?1"), Answer::No);
        assert_eq!(read("?1;transform=\"scramble-dt\""), Answer::No);
        let unasked = Answer::Unasked("identity".to_owned());
        assert_eq!(read("?1;transform=\"identity\""), unasked);
        assert_eq!(read("?0;transform=\"identity\""), unasked);
        assert_eq!(
            answer(&HeaderMap::new(), TransformKind::Scramble),
            Answer::No
        );
    }
}
