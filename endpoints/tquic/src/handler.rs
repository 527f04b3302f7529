//! tquic's callbacks: they note what happened, and the adapter looks at the notes.

use std::cell::RefCell;
use std::rc::Rc;

use bentpipe_endpoint::{Clock, Closing, LogFolder, Outbox, Transmit};
use tquic::{Connection, PacketInfo, PacketSendHandler, TransportHandler};

use crate::connection::closing;
use crate::qlog::QlogFile;

/// Events that the callbacks noted.
#[derive(Default)]
pub struct Notes {
    /// Connections that came to be, by index.
    pub created: Vec<u64>,
    /// Connections that tquic has forgotten, and why they ended.
    pub gone: Vec<(u64, Closing)>,
    /// Streams that tquic has forgotten, after the index of their connection.
    pub closed_streams: Vec<(u64, u64)>,
    /// The latest address validation token (RFC 9000, section 8.1.3).
    pub token: Option<Vec<u8>>,
    /// Datagrams to be sent.
    pub outbox: Outbox,
}

/// The callbacks of tquic.
pub struct Handler {
    pub notes: Rc<RefCell<Notes>>,
    pub clock: Clock,
    pub qlog: Option<LogFolder>,
}

impl TransportHandler for Handler {
    fn on_conn_created(&mut self, connection: &mut Connection) {
        if let Some(file) = self.qlog.as_ref().and_then(LogFolder::create) {
            let file = QlogFile::new(file, self.clock.unix());
            connection.set_qlog(Box::new(file), "tquic".into(), String::new());
        }
        self.notes.borrow_mut().created.push(index(connection));
    }

    fn on_conn_established(&mut self, _connection: &mut Connection) {}

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        let why =
            closing(connection).unwrap_or_else(|| Closing::Error("closed without a reason".into()));
        self.notes.borrow_mut().gone.push((index(connection), why));
    }

    fn on_stream_created(&mut self, _connection: &mut Connection, _stream: u64) {}

    /// The application was offered the stream before. tquic would offer it again every millisecond:
    /// this stops it.
    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        let _ = connection.stream_want_read(stream, false);
    }

    /// As above. A write that is blocked makes tquic want it again.
    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        let _ = connection.stream_want_write(stream, false);
    }

    fn on_stream_closed(&mut self, connection: &mut Connection, stream: u64) {
        let note = (index(connection), stream);
        self.notes.borrow_mut().closed_streams.push(note);
    }

    fn on_new_token(&mut self, _connection: &mut Connection, token: Vec<u8>) {
        self.notes.borrow_mut().token = Some(token);
    }
}

fn index(connection: &Connection) -> u64 {
    let index = connection.index();
    index.expect("an endpoint's connections have an index")
}

/// Where tquic's datagrams go.
pub struct Sender(pub Rc<RefCell<Notes>>);

impl PacketSendHandler for Sender {
    fn on_packets_send(&self, packets: &[(Vec<u8>, PacketInfo)]) -> tquic::Result<usize> {
        let outbox = &mut self.0.borrow_mut().outbox;
        for (bytes, info) in packets {
            outbox.push(Transmit::to(info.dst, None), bytes);
        }
        Ok(packets.len())
    }
}
