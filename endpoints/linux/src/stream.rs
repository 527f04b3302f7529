//! A connection's bytes both ways, within TLS or in the clear.
//!
//! A request is refused by an end without an answer: within TLS by FIN without `close_notify`, in
//! the clear, where a file ends by FIN, by a reset.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};

use bentpipe_endpoint::EndpointError;
use rustix::net::sockopt::set_socket_linger;
use rustls::{ClientConnection, Connection, ServerConnection};
use std::time::Duration;

/// A connection.
pub struct Stream {
    socket: TcpStream,
    /// None: in the clear.
    tls: Option<Connection>,
    /// Whether anything has been read in the clear.
    is_answered: bool,
}

impl Stream {
    fn new(socket: TcpStream, tls: Option<Connection>) -> Self {
        Self {
            socket,
            tls,
            is_answered: false,
        }
    }

    /// In the clear.
    pub fn clear(socket: TcpStream) -> Self {
        Self::new(socket, None)
    }

    /// A server's within TLS. What is read may be early data, and what is written may go before the
    /// handshake is complete, if `tls` allows it.
    pub fn server(socket: TcpStream, tls: ServerConnection) -> Self {
        Self::new(socket, Some(Connection::Server(tls)))
    }

    /// A client's within TLS, when the handshake is complete, with `request` sent: as early data
    /// where `tls` has leave for it and the server takes it.
    pub fn client(
        mut socket: TcpStream,
        mut tls: ClientConnection,
        request: &[u8],
    ) -> Result<Self, EndpointError> {
        if let Some(mut early) = tls.early_data() {
            early
                .write_all(request)
                .map_err(EndpointError::io("asking early"))?;
        }
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)
                .map_err(EndpointError::io("the handshake"))?;
        }
        let is_asked = tls.is_early_data_accepted();
        let mut stream = Self::new(socket, Some(Connection::Client(tls)));
        if !is_asked {
            stream
                .write_all(request)
                .map_err(EndpointError::io("asking"))?;
        }
        Ok(stream)
    }

    /// Says that nothing more is sent.
    pub fn end(&mut self) -> Result<(), EndpointError> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        self.flush().map_err(EndpointError::io("closing"))?;
        // The other end may have gone already.
        let _ = self.socket.shutdown(Shutdown::Write);
        Ok(())
    }

    /// Waits until the other end ends too, so that the kernel sends no reset.
    pub fn wait_for_end(mut self) {
        let _ = io::copy(&mut self, &mut io::sink());
        let _ = io::copy(&mut self.socket, &mut io::sink());
    }

    /// Tells the client that its request is refused.
    pub fn refuse(mut self) {
        if self.tls.is_none() {
            let _ = set_socket_linger(&self.socket, Some(Duration::ZERO));
            return;
        }
        // Data that the client sends all the same are read, so that the kernel sends no reset.
        let _ = self.socket.shutdown(Shutdown::Write);
        let _ = io::copy(&mut self.socket, &mut io::sink());
    }
}

/// Sends what TLS has to send.
fn send(tls: &mut Connection, socket: &mut TcpStream) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(socket)?;
    }
    Ok(())
}

/// Takes in what has come, which is waited for, and answers it.
fn receive(tls: &mut Connection, socket: &mut TcpStream) -> io::Result<()> {
    tls.read_tls(socket)?;
    let taken = tls.process_new_packets();
    send(tls, socket)?; // an alert too
    taken.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(())
}

fn read_early(tls: &mut Connection, to: &mut [u8]) -> io::Result<usize> {
    match tls {
        Connection::Server(server) => server.early_data().map_or(Ok(0), |mut it| it.read(to)),
        Connection::Client(_) => Ok(0),
    }
}

impl Read for Stream {
    /// `UnexpectedEof`: the other end refuses.
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            // Behind the first byte of an answer a reset is a failure.
            let is_answered = std::mem::replace(&mut self.is_answered, true);
            return self.socket.read(to).map_err(|error| match error.kind() {
                io::ErrorKind::ConnectionReset if !is_answered => {
                    io::ErrorKind::UnexpectedEof.into()
                }
                _ => error,
            });
        };
        loop {
            match read_early(tls, to)? {
                0 => {}
                count => return Ok(count),
            }
            match tls.reader().read(to) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    receive(tls, &mut self.socket)?;
                }
                other => return other,
            }
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.socket.write(bytes);
        };
        let count = tls.writer().write(bytes)?;
        send(tls, &mut self.socket)?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => send(tls, &mut self.socket),
            None => Ok(()),
        }
    }
}
