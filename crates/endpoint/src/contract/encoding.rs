//! The binary layout of messages: `length: u32 | type: u8 | body`, little-endian
//! (`endpoints/CONTRACT.md`).

use std::ops::Range;

use bytes::{BufMut, Bytes};
use memmap2::MmapMut;

/// Bytes before a message's body.
pub const HEADER_LEN: usize = 5;
/// Coordinator to program: [`super::Hello`].
pub const HELLO: u8 = 1;
/// Program to coordinator: [`super::Ready`].
pub const READY: u8 = 2;
/// Coordinator to program: run until.
pub const RUN: u8 = 3;
/// Program to coordinator: what it did.
pub const RAN: u8 = 4;
/// Coordinator to program: the end.
pub const FINISH: u8 = 5;
/// Program to coordinator: [`super::Bye`].
pub const BYE: u8 = 6;
/// Added to the type of a message whose body is in shared memory.
pub const SHARED: u8 = 0x80;
/// Shorter messages go through the pipe even where memory is shared: in one piece, they cost no
/// more.
pub const SHARED_FROM: usize = 2048;
/// The longest body: no epoch carries more, so a larger length breaks the contract.
pub const BODY_LIMIT: usize = 1 << 28;
/// The longest UDP payload that an IPv4 packet carries.
pub const PAYLOAD_LIMIT: usize = 65_507;
/// In the ECN field of a proxy's datagrams: it arrives or departs on the side of the server.
/// Without it, on that of the client.
pub const SERVER_SIDE: u8 = 0x80;
/// The bits of the ECN field that have the number of the path which a datagram takes, where a
/// client and a server have several.
pub const PATH_BITS: u8 = 0x30;
/// How far the number of the path is shifted within the ECN field.
pub const PATH_SHIFT: u32 = PATH_BITS.trailing_zeros();
/// The `next_wake` of a program that waits for arrivals alone.
pub const NEVER: u64 = u64::MAX;

/// `time: u64 | ecn: u8 | length: u16`.
const DATAGRAM_HEADER_LEN: usize = 11;

/// A breach of the contract: bytes that are not in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContractError {
    /// The body ends too early.
    #[error("the message ends within {0}")]
    Truncated(&'static str),
    /// The body goes on after its last field.
    #[error("{0} bytes are left over after the last datagram of the message")]
    Trailing(usize),
    /// `done` is a truth value.
    #[error("done is {0}, and may be 0 or 1")]
    Done(u8),
    /// The ECN field has two bits, two for the path, and a proxy's one for the side.
    #[error(
        "ecn is {0:#04x}; of its bits 0x03 are ECN, 0x30 the path, and a proxy's 0x80 the side"
    )]
    Ecn(u8),
}

/// A datagram within a message: its bytes are `body[payload]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// The time of arrival or departure, in nanoseconds.
    pub time: u64,
    /// 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE; of a proxy's perhaps with [`SERVER_SIDE`], of a
    /// program with several paths with [`PATH_BITS`].
    pub ecn: u8,
    /// The place of the UDP payload in the message's body.
    pub payload: Range<usize>,
}

/// A datagram to be put into RUN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The time of arrival, in nanoseconds.
    pub time: u64,
    /// 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE; to a proxy perhaps with [`SERVER_SIDE`].
    pub ecn: u8,
    /// The UDP payload.
    pub payload: Bytes,
}

/// The body of RUN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The end of the run, exclusive, in nanoseconds.
    pub until: u64,
    /// The datagrams that arrive. The order of times is for the reader to check.
    pub arrivals: Vec<Datagram>,
}

/// The body of RAN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// The time at which the program wants to run next, in nanoseconds, or [`NEVER`].
    pub next_wake: u64,
    /// Whether it has nothing more to do.
    pub done: bool,
    /// The datagrams that departed. The order of times is for the reader to check.
    pub departures: Vec<Datagram>,
}

/// The name of a type of message, for errors.
#[must_use]
pub fn message_name(kind: u8) -> String {
    match kind {
        HELLO => "HELLO".into(),
        READY => "READY".into(),
        RUN => "RUN".into(),
        RAN => "RAN".into(),
        FINISH => "FINISH".into(),
        BYE => "BYE".into(),
        other => format!("{other}"),
    }
}

/// The length of the body that follows and the message's type.
pub fn decode_header(message: &[u8]) -> Result<(usize, u8), ContractError> {
    let mut fields = Fields::new(message, Sides::One);
    let length = fields.u32("its header")?;
    Ok((length as usize, fields.u8("its header")?))
}

/// A whole message around `body`.
///
/// # Panics
/// If the body has 4 GiB or more.
#[must_use]
pub fn encode_message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER_LEN + body.len());
    message.extend_from_slice(&encode_header(body.len(), kind));
    message.extend_from_slice(body);
    message
}

/// A whole RUN message.
///
/// # Panics
/// If a payload has 64 KiB or more, or all of them 4 GiB.
#[must_use]
pub fn encode_run(until: u64, arrivals: &[Arrival]) -> Vec<u8> {
    let mut message = Vec::new();
    put_run(&mut message, until, arrivals);
    message
}

/// The same behind what is in `messages`, whose memory can so be used again.
///
/// # Panics
/// As [`encode_run`].
pub fn put_run(messages: &mut Vec<u8>, until: u64, arrivals: &[Arrival]) {
    let length = run_body_len(arrivals);
    messages.reserve(HEADER_LEN + length);
    messages.extend_from_slice(&encode_header(length, RUN));
    put_run_body(messages, until, arrivals);
}

/// The bytes of the body of a RUN message.
#[must_use]
pub fn run_body_len(arrivals: &[Arrival]) -> usize {
    let sizes = arrivals
        .iter()
        .map(|it| DATAGRAM_HEADER_LEN + it.payload.len());
    12 + sizes.sum::<usize>()
}

/// The body of a RUN message alone.
///
/// # Panics
/// As [`encode_run`], and if there is no room.
pub fn put_run_body(body: &mut impl BufMut, until: u64, arrivals: &[Arrival]) {
    let count = u32::try_from(arrivals.len()).expect("a message has less than 4 GiB");
    body.put_u64_le(until);
    body.put_u32_le(count);
    for arrival in arrivals {
        put_datagram(body, arrival.time, arrival.ecn, &arrival.payload);
    }
}

/// The first bytes of a message, with the length of its body.
///
/// # Panics
/// If the body has 4 GiB or more.
#[must_use]
pub fn encode_header(length: usize, kind: u8) -> [u8; HEADER_LEN] {
    let length = u32::try_from(length).expect("a message has less than 4 GiB");
    let [a, b, c, d] = length.to_le_bytes();
    [a, b, c, d, kind]
}

impl Run {
    /// Reads the body of a RUN message to a client or a server.
    pub fn decode(body: &[u8]) -> Result<Self, ContractError> {
        Self::of(Fields::new(body, Sides::One))
    }

    /// Reads the body of a RUN message to a proxy.
    pub fn decode_for_proxy(body: &[u8]) -> Result<Self, ContractError> {
        Self::of(Fields::new(body, Sides::Two))
    }

    fn of(mut fields: Fields<'_>) -> Result<Self, ContractError> {
        let until = fields.u64("until")?;
        let arrivals = fields.datagrams()?;
        Ok(Self { until, arrivals })
    }
}

impl Ran {
    /// Reads the body of a RAN message of a client or a server.
    pub fn decode(body: &[u8]) -> Result<Self, ContractError> {
        Self::of(Fields::new(body, Sides::One))
    }

    /// Reads the body of a RAN message of a proxy.
    pub fn decode_of_proxy(body: &[u8]) -> Result<Self, ContractError> {
        Self::of(Fields::new(body, Sides::Two))
    }

    fn of(mut fields: Fields<'_>) -> Result<Self, ContractError> {
        let next_wake = fields.u64("next_wake")?;
        let done = match fields.u8("done")? {
            0 => false,
            1 => true,
            other => return Err(ContractError::Done(other)),
        };
        let departures = fields.datagrams()?;
        Ok(Self {
            next_wake,
            done,
            departures,
        })
    }
}

/// A RAN message in the making. Its memory is used again and again.
#[derive(Debug)]
pub struct RanMessage {
    /// Memory that is shared with the coordinator, for bodies that fit.
    shared: Option<MmapMut>,
    /// The bytes of the body there; `None`: the body is in `message`.
    in_shared: Option<usize>,
    message: Vec<u8>,
    count: u32,
}

impl RanMessage {
    /// The bytes before the datagrams.
    const FIELDS_LEN: usize = 13;
    const BODY_START: usize = HEADER_LEN + Self::FIELDS_LEN;

    /// An empty message.
    #[must_use]
    pub fn new() -> Self {
        Self::with_body_in(None)
    }

    /// An empty message whose body is in shared memory, where there is some and it is long enough
    /// to be there.
    #[must_use]
    pub fn with_body_in(shared: Option<MmapMut>) -> Self {
        let mut new = Self {
            shared,
            in_shared: None,
            message: Vec::new(),
            count: 0,
        };
        new.clear();
        new
    }

    /// Takes all departures out.
    pub fn clear(&mut self) {
        let has_room = |memory: &MmapMut| memory.len() >= Self::FIELDS_LEN;
        let shared = self.shared.as_ref().filter(|memory| has_room(memory));
        self.in_shared = shared.map(|_| Self::FIELDS_LEN);
        self.message.clear();
        self.message.resize(Self::BODY_START, 0);
        self.count = 0;
    }

    /// Adds a datagram that departs at `time`.
    ///
    /// # Panics
    /// If the payload has 64 KiB or more.
    pub fn push(&mut self, time: u64, ecn: u8, payload: &[u8]) {
        self.count += 1;
        if let (Some(memory), Some(start)) = (&mut self.shared, self.in_shared) {
            let end = start + DATAGRAM_HEADER_LEN + payload.len();
            if let Some(mut place) = memory.get_mut(start..end) {
                put_datagram(&mut place, time, ecn, payload);
                self.in_shared = Some(end);
                return;
            }
            self.leave_shared();
        }
        put_datagram(&mut self.message, time, ecn, payload);
    }

    /// The whole message, header included; of one whose body is in shared memory the header alone.
    pub fn finish(&mut self, next_wake: u64, done: bool) -> &[u8] {
        let mut fields = [0; Self::FIELDS_LEN];
        fields[..8].copy_from_slice(&next_wake.to_le_bytes());
        fields[8] = u8::from(done);
        fields[9..].copy_from_slice(&self.count.to_le_bytes());
        if let (Some(memory), Some(length)) = (&mut self.shared, self.in_shared)
            && length >= SHARED_FROM
        {
            memory[..Self::FIELDS_LEN].copy_from_slice(&fields);
            let header = encode_header(length, RAN | SHARED);
            self.message[..HEADER_LEN].copy_from_slice(&header);
            return &self.message[..HEADER_LEN];
        }
        self.leave_shared();
        self.message[HEADER_LEN..Self::BODY_START].copy_from_slice(&fields);
        let header = encode_header(self.message.len() - HEADER_LEN, RAN);
        self.message[..HEADER_LEN].copy_from_slice(&header);
        &self.message
    }

    /// The body goes on in the program's own memory.
    fn leave_shared(&mut self) {
        if let (Some(memory), Some(length)) = (&self.shared, self.in_shared.take()) {
            let datagrams = &memory[Self::FIELDS_LEN..length];
            self.message.extend_from_slice(datagrams);
        }
    }
}

impl Default for RanMessage {
    fn default() -> Self {
        Self::new()
    }
}

fn put_datagram(message: &mut impl BufMut, time: u64, ecn: u8, payload: &[u8]) {
    let length = u16::try_from(payload.len()).expect("a UDP payload has less than 64 KiB");
    let mut header = [0; DATAGRAM_HEADER_LEN];
    header[..8].copy_from_slice(&time.to_le_bytes());
    header[8] = ecn;
    header[9..].copy_from_slice(&length.to_le_bytes());
    message.put_slice(&header);
    message.put_slice(payload);
}

/// Whether a program has one side or, as a proxy has, two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sides {
    One,
    Two,
}

/// A cursor over a body.
struct Fields<'a> {
    body: &'a [u8],
    at: usize,
    sides: Sides,
}

impl<'a> Fields<'a> {
    fn new(body: &'a [u8], sides: Sides) -> Self {
        Self { body, at: 0, sides }
    }

    fn take<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], ContractError> {
        let bytes = self.body.get(self.at..).and_then(<[u8]>::first_chunk::<N>);
        self.at += N;
        bytes.copied().ok_or(ContractError::Truncated(what))
    }

    fn u8(&mut self, what: &'static str) -> Result<u8, ContractError> {
        Ok(u8::from_le_bytes(self.take(what)?))
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, ContractError> {
        Ok(u32::from_le_bytes(self.take(what)?))
    }

    fn u64(&mut self, what: &'static str) -> Result<u64, ContractError> {
        Ok(u64::from_le_bytes(self.take(what)?))
    }

    /// `count` and as many datagrams, which end the body.
    fn datagrams(&mut self) -> Result<Vec<Datagram>, ContractError> {
        let count = self.u32("count")? as usize;
        let possible = (self.body.len() - self.at) / DATAGRAM_HEADER_LEN;
        let mut datagrams = Vec::with_capacity(count.min(possible));
        for _ in 0..count {
            datagrams.push(self.datagram()?);
        }
        match self.body.len() - self.at {
            0 => Ok(datagrams),
            left => Err(ContractError::Trailing(left)),
        }
    }

    fn datagram(&mut self) -> Result<Datagram, ContractError> {
        let header: [u8; DATAGRAM_HEADER_LEN] = self.take("a datagram's header")?;
        let [t0, t1, t2, t3, t4, t5, t6, t7, ecn, l0, l1] = header;
        let side = match self.sides {
            Sides::One => 0,
            Sides::Two => ecn & SERVER_SIDE,
        };
        if (ecn - side) & !PATH_BITS > 3 {
            return Err(ContractError::Ecn(ecn));
        }
        let end = self.at + usize::from(u16::from_le_bytes([l0, l1]));
        if end > self.body.len() {
            return Err(ContractError::Truncated("a datagram's payload"));
        }
        let time = u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
        let payload = std::mem::replace(&mut self.at, end)..end;
        Ok(Datagram { time, ecn, payload })
    }
}
