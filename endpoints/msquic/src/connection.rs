//! One connection and what its callback tells.

use std::net::SocketAddr;
use std::ptr;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use bentpipe_endpoint::{Closing, ConnectionKey, Event, LogFile, Role, StreamKey};
use msquic::{
    Addr, Api, Configuration, ConnectionEvent, ConnectionRef, ConnectionShutdownFlags,
    PARAM_CONN_LOCAL_ADDRESS, PARAM_CONN_REMOTE_ADDRESS, PARAM_CONN_RESUMPTION_TICKET,
    Registration, SEND_RESUMPTION_FLAG_FINAL, Status, StatusCode,
};

use crate::messages::Message;
use crate::secrets::Secrets;
use crate::stream::Stream;

/// The state that callbacks need.
#[derive(Debug, Clone)]
pub struct Context {
    /// The side that the program plays.
    pub role: Role,
    /// The channel to the program's own thread.
    pub sender: Sender<Message>,
    /// For TLS secrets.
    pub keylog: Option<LogFile>,
}

/// A connection, closed when it is dropped, which must not happen in a callback.
#[derive(Debug)]
pub struct Connection {
    handle: msquic::Connection,
}

impl Connection {
    /// A connection to the server at `remote`, with the session of `ticket`, which is yet to be
    /// started.
    pub fn new(
        registration: &Registration,
        remote: SocketAddr,
        ticket: Option<&[u8]>,
        key: ConnectionKey,
        context: &Context,
    ) -> Result<Self, Status> {
        let secrets = Secrets::shared(context.keylog.as_ref());
        let callback = callback(key, context.clone(), secrets.clone());
        let handle = msquic::Connection::open(registration, callback)?;
        if let Some(secrets) = secrets {
            locked(&secrets).ask(&handle)?;
        }
        set(&handle, PARAM_CONN_REMOTE_ADDRESS, &Addr::from(remote))?;
        if let Some(ticket) = ticket {
            set(&handle, PARAM_CONN_RESUMPTION_TICKET, ticket)?;
        }
        Ok(Self { handle })
    }

    /// Lets the handshake begin.
    pub fn start(&self, configuration: &Configuration, port: u16) -> Result<(), Status> {
        self.handle.start(configuration, "server", port)
    }

    /// Takes over a connection that a client has begun; for the listener's callback.
    #[expect(unsafe_code, reason = "the wrapper lends what the program must close")]
    pub fn accept(
        connection: &ConnectionRef,
        configuration: &Configuration,
        key: ConnectionKey,
        context: &Context,
    ) -> Result<Self, Status> {
        let secrets = Secrets::shared(context.keylog.as_ref());
        connection.set_callback_handler(callback(key, context.clone(), secrets.clone()));
        if let Some(secrets) = secrets {
            locked(&secrets).ask(connection)?;
        }
        connection.set_configuration(configuration)?;
        // SAFETY: the handle is open, and nobody else closes it, now that this function succeeds.
        let handle = unsafe { msquic::Connection::from_raw(connection.as_raw()) };
        Ok(Self { handle })
    }

    /// The handle that streams are opened with.
    pub fn handle(&self) -> &msquic::Connection {
        &self.handle
    }

    /// Has the connection go on from another local address: it migrates. `false`: `MsQuic` does not
    /// yet, before the handshake is confirmed.
    pub fn migrate(&self, local: SocketAddr) -> bool {
        set(&self.handle, PARAM_CONN_LOCAL_ADDRESS, &Addr::from(local)).is_ok()
    }

    /// Closes the connection with an application error code; its callback tells when that is done.
    pub fn close(&self, code: u32) {
        self.handle
            .shutdown(ConnectionShutdownFlags::NONE, u64::from(code));
    }
}

fn callback(
    key: ConnectionKey,
    context: Context,
    secrets: Option<Arc<Mutex<Secrets>>>,
) -> impl FnMut(ConnectionRef, ConnectionEvent) -> Result<(), Status> + 'static {
    move |connection, event| {
        let message = match event {
            ConnectionEvent::Connected { .. } => {
                log(secrets.as_ref());
                if context.role == Role::Server {
                    send_ticket(&connection);
                }
                Message::Event(Event::Connected(key))
            }
            ConnectionEvent::ResumptionTicketReceived { resumption_ticket } => {
                Message::Ticket(key, resumption_ticket.to_vec())
            }
            ConnectionEvent::PeerStreamStarted { stream, .. } => {
                let id = StreamKey(stream.get_stream_id()?);
                let stream = Stream::accept(&stream, (key, id), context.sender.clone());
                Message::Opened(key, id, stream)
            }
            ConnectionEvent::ShutdownInitiatedByTransport { status, error_code } => {
                Message::Event(Event::Closed(key, reason(&status, error_code)))
            }
            ConnectionEvent::ShutdownInitiatedByPeer { error_code } => {
                let reason = String::new();
                let closing = Closing::Application {
                    code: error_code,
                    reason,
                };
                Message::Event(Event::Closed(key, closing))
            }
            ConnectionEvent::ShutdownComplete { .. } => {
                log(secrets.as_ref());
                Message::ConnectionOver(key)
            }
            _ => return Ok(()),
        };
        // Nobody listens any more when the program is ending.
        let _ = context.sender.send(message);
        Ok(())
    }
}

/// Why `MsQuic` gave up, or what the peer's QUIC complained of.
fn reason(status: &Status, error_code: u64) -> Closing {
    match status.try_as_status_code() {
        Ok(StatusCode::QUIC_STATUS_CONNECTION_IDLE) => Closing::IdleTimeout,
        // Before the handshake is complete it is the handshake's; later, that nothing was
        // acknowledged for too long.
        Ok(StatusCode::QUIC_STATUS_CONNECTION_TIMEOUT) => {
            Closing::Error("handshake timeout".into())
        }
        Ok(code) => Closing::Error(format!("{code}, error code {error_code:#x}")),
        Err(_) => Closing::Error(format!("{status}, error code {error_code:#x}")),
    }
}

/// The wrapper does not have this. A ticket that cannot be sent is none: the client says that it
/// got none.
#[expect(unsafe_code, reason = "a call of C")]
fn send_ticket(connection: &ConnectionRef) {
    let send = Api::get_ffi().ConnectionSendResumptionTicket;
    let send = send.expect("in every table");
    let flags = SEND_RESUMPTION_FLAG_FINAL;
    // SAFETY: the handle is open, and there are no data of the application's.
    unsafe { send(connection.as_raw(), flags, 0, ptr::null()) };
}

/// Sets a parameter to the bytes of `value`.
#[expect(unsafe_code, reason = "a call of C")]
fn set<T: ?Sized>(
    connection: &msquic::Connection,
    parameter: u32,
    value: &T,
) -> Result<(), Status> {
    let size = u32::try_from(size_of_val(value)).expect("a small value");
    // SAFETY: the handle is open, and `size` bytes are at `value`.
    unsafe {
        let handle = connection.as_raw();
        Api::set_param(handle, parameter, size, (&raw const *value).cast())
    }
}

fn log(secrets: Option<&Arc<Mutex<Secrets>>>) {
    if let Some(secrets) = secrets {
        locked(secrets).log();
    }
}

fn locked(secrets: &Mutex<Secrets>) -> std::sync::MutexGuard<'_, Secrets> {
    secrets.lock().unwrap_or_else(PoisonError::into_inner)
}
