//! One event.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// An event of a trace. `data` is the JSON text as it stands in the file: most readers want few
/// events' data.
#[derive(Debug, Clone)]
pub struct Event<'a> {
    /// Index into [`crate::Reader::traces`].
    pub trace: usize,
    /// Nanoseconds since what the trace's [`crate::Clock`] names.
    pub time: i64,
    /// The name in the current schema, as in `quic:packet_sent`; one that is not known, as it
    /// stands in the file.
    pub name: Cow<'a, str>,
    /// The event.
    pub data: Option<&'a RawValue>,
    /// The connection that it belongs to, if the event says so.
    pub group: Option<&'a RawValue>,
    /// All other members, by name.
    pub others: Vec<(Cow<'a, str>, &'a RawValue)>,
}

/// An event as it stands in the file.
#[derive(Debug, Default)]
pub struct RawEvent<'a> {
    pub time: Option<&'a RawValue>,
    pub name: Option<Cow<'a, str>>,
    pub category: Option<Cow<'a, str>>,
    pub kind: Option<Cow<'a, str>>,
    pub data: Option<&'a RawValue>,
    pub group: Option<&'a RawValue>,
    pub others: Vec<(Cow<'a, str>, &'a RawValue)>,
    /// There are no members: what some writers end their array with, so that every event can have a
    /// comma after it.
    pub is_empty: bool,
}

impl<'a> RawEvent<'a> {
    /// Reads an event. `columns` name the elements of one that is an array.
    pub fn parse(text: &'a [u8], columns: &[String]) -> Result<Self, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        let event = Seed(columns).deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(event)
    }

    /// The name as it stands in the file; category and type joined where they are apart.
    pub fn full_name(&mut self) -> Option<Cow<'a, str>> {
        match (self.name.take(), self.category.take(), self.kind.take()) {
            (Some(name), _, _) => Some(name),
            (None, Some(category), Some(kind)) => Some(Cow::Owned(
                format!("{category}:{kind}").to_ascii_lowercase(),
            )),
            _ => None,
        }
    }
}

struct Seed<'c>(&'c [String]);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = RawEvent<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// A text that is borrowed where it has no escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowing;
        impl<'de> Visitor<'de> for Borrowing {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrowing)
    }
}

/// Takes a member, whose value the closures read as text or as it stands.
macro_rules! take {
    ($event:ident, $key:expr, $text:expr, $raw:expr) => {
        match $key.as_ref() {
            "time" => $event.time = $raw,
            "name" => $event.name = $text,
            "category" => $event.category = $text,
            "type" => $event.kind = $text,
            "data" => $event.data = $raw,
            "group_id" => $event.group = $raw,
            _ => {
                if let Some(value) = $raw {
                    $event.others.push(($key, value));
                }
            }
        }
    };
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = RawEvent<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event: an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut event = RawEvent {
            is_empty: true,
            ..RawEvent::default()
        };
        while let Some(Text(key)) = members.next_key()? {
            event.is_empty = false;
            take!(
                event,
                key,
                Some(members.next_value::<Text<'_>>()?.0),
                Some(members.next_value::<&RawValue>()?)
            );
        }
        Ok(event)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut event = RawEvent {
            is_empty: true,
            ..RawEvent::default()
        };
        for column in self.0 {
            let key = Cow::Owned::<str>(column.clone());
            take!(
                event,
                key,
                elements.next_element::<Text<'_>>()?.map(|text| text.0),
                elements.next_element::<&RawValue>()?
            );
            event.is_empty &= event.time.is_none() && event.others.is_empty();
        }
        if self.0.is_empty() {
            let problem =
                "an array, but the trace has no event_fields that say what its elements are";
            return Err(A::Error::custom(problem));
        }
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(event)
    }
}
