//! Which worker a datagram is for.
//!
//! Every worker has a separate socket at the same address (`SO_REUSEPORT`). By itself, the kernel
//! would choose among them by the addresses of the datagram, and a client whose address changes,
//! because it moves or a NAT forgets it, would come to a worker that does not know its connection.
//! So the choice is by the first byte of the destination connection ID instead, which QUIC sends in
//! the clear in every packet: modulo the number of workers it is the worker's number. Connection
//! IDs that a worker issues have such a first byte ([`SteeredIds`]); that of a client's first
//! packets is the client's choice, random, and the same until the worker has issued one, so that
//! the first flight stays together.
//!
//! A classic BPF program in the kernel does this ([`attach`], `SO_ATTACH_REUSEPORT_CBPF`). It sees
//! the first of datagrams that the kernel has put together (receive offload), which may be of
//! several connections of one client; and not every kernel has it. So whoever receives a datagram
//! asks [`worker_of`], which says the same, and hands on what is not its own.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use noq_proto::{ConnectionId, ConnectionIdGenerator};
use rustls::crypto::SecureRandom;

/// A first byte has at least four values for each, so that it tells little.
pub const MOST_WORKERS: usize = 64;

/// As noq's own: random enough that nobody guesses one.
const ID_BYTES: usize = 8;
/// Form bit of a first byte: a long header, where version and length stand before the connection ID
/// (RFC 8999, section 5).
const LONG_HEADER: u8 = 0x80;
const SHORT_OFFSET: u8 = 1;
const LONG_OFFSET: u8 = 6;

/// The number of the worker that a datagram is for; one that is too short to tell is the first's.
#[must_use]
pub fn worker_of(datagram: &[u8], workers: usize) -> usize {
    let is_long = datagram.first().is_some_and(|it| it & LONG_HEADER != 0);
    let offset = if is_long { LONG_OFFSET } else { SHORT_OFFSET };
    datagram
        .get(usize::from(offset))
        .map_or(0, |&byte| usize::from(byte) % workers)
}

/// The maker of connection ID generators, one for each endpoint.
pub type ConnectionIds = Arc<dyn Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync>;

/// Connection IDs that lead to a worker.
pub struct SteeredIds {
    worker: usize,
    workers: usize,
    random: &'static dyn SecureRandom,
}

impl SteeredIds {
    /// The IDs of worker `worker` of `workers`.
    #[must_use]
    pub fn of(worker: usize, workers: usize) -> Self {
        assert!(worker < workers && workers <= MOST_WORKERS, "see there");
        Self {
            worker,
            workers,
            random: rustls::crypto::ring::default_provider().secure_random,
        }
    }

    /// As an endpoint wants them.
    #[must_use]
    pub fn factory(worker: usize, workers: usize) -> ConnectionIds {
        Arc::new(move || Box::new(Self::of(worker, workers)))
    }
}

impl ConnectionIdGenerator for SteeredIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut bytes = [0; ID_BYTES];
        self.random
            .fill(&mut bytes)
            .expect("the system has random bytes");
        bytes[0] = steer(bytes[0], self.worker, self.workers);
        ConnectionId::new(&bytes)
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

/// A byte that leads to `worker`, as random as `byte` is.
fn steer(byte: u8, worker: usize, workers: usize) -> u8 {
    let rounds = (256 - worker).div_ceil(workers);
    let steered = usize::from(byte) % rounds * workers + worker;
    u8::try_from(steered).expect("rounds are those that stay below 256")
}

/// Gives all sockets at the address of `socket` the program; they must have been bound in the order
/// of the workers, all of them.
pub fn attach(socket: &UdpSocket, workers: usize) -> io::Result<()> {
    let program = program(u32::try_from(workers).expect("see MOST_WORKERS"));
    set_program(socket, &program)
}

/// The BPF program of [`worker_of`]. A load from beyond the end returns 0 by itself.
fn program(workers: u32) -> [libc::sock_filter; 7] {
    let step = |code: u32, k: u32, yes: u8, no: u8| libc::sock_filter {
        code: u16::try_from(code).expect("codes are of 16 bits"),
        jt: yes,
        jf: no,
        k,
    };
    let load = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
    let test = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
    let jump = libc::BPF_JMP | libc::BPF_JA;
    let modulo = libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K;
    [
        step(load, 0, 0, 0),
        step(test, LONG_HEADER.into(), 0, 2),
        step(load, LONG_OFFSET.into(), 0, 0),
        step(jump, 1, 0, 0),
        step(load, SHORT_OFFSET.into(), 0, 0),
        step(modulo, workers, 0, 0),
        step(libc::BPF_RET | libc::BPF_A, 0, 0, 0),
    ]
}

#[expect(unsafe_code, reason = "rustix knows no programs for SO_REUSEPORT")]
fn set_program(socket: &UdpSocket, program: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: program.len().try_into().expect("a short program"),
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies the program, whose length is right, and changes nothing.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const program).cast(),
            size_of_val(&program).try_into().expect("a small struct"),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::listening;

    #[test]
    fn connection_ids_lead_to_their_worker() {
        for workers in [1, 2, 3, 5, 48, MOST_WORKERS] {
            for worker in 0..workers {
                let mut ids = SteeredIds::of(worker, workers);
                for _ in 0..20 {
                    let id = ids.generate_cid();
                    assert_eq!(worker_of(&[&[0x40], &id[..]].concat(), workers), worker);
                    let long = [&[0xc0, 0, 0, 0, 1, 8], &id[..]].concat();
                    assert_eq!(worker_of(&long, workers), worker);
                }
            }
        }
    }

    #[test]
    fn every_byte_of_a_worker_occurs() {
        for (worker, workers) in [(0, 3), (1, 3), (2, 3), (63, 64), (0, 1)] {
            let mut found: Vec<_> = (0..=255).map(|it| steer(it, worker, workers)).collect();
            found.sort_unstable();
            found.dedup();
            let wanted = (0..=255_u8).filter(|&it| usize::from(it) % workers == worker);
            assert!(found.into_iter().eq(wanted), "{worker} of {workers}");
        }
    }

    /// Plain datagrams: each comes to the socket that [`worker_of`] names, whoever sends it.
    #[test]
    fn the_kernel_chooses_the_same_worker() {
        const WORKERS: usize = 3;
        let first = listening::shared("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let place = first.local_addr().unwrap();
        let others = (1..WORKERS).map(|_| listening::shared(place, false).unwrap());
        let all: Vec<_> = [first].into_iter().chain(others).collect();
        attach(&all[0], WORKERS).unwrap();
        let senders = [(); 4].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        for sample in samples() {
            for sender in &senders {
                sender.send_to(&sample, place).unwrap();
                let mut buffer = [0; 64];
                let chosen = &all[worker_of(&sample, WORKERS)];
                chosen.set_nonblocking(false).unwrap();
                chosen
                    .set_read_timeout(Some(Duration::from_secs(60)))
                    .unwrap();
                let (length, _) = chosen.recv_from(&mut buffer).unwrap();
                assert_eq!(buffer[..length], sample);
            }
        }
    }

    /// Short and long headers with all first bytes of a connection ID, and what is too short for
    /// one.
    fn samples() -> Vec<Vec<u8>> {
        let mut samples = vec![vec![], vec![0x40], vec![0xc0], vec![0xc0, 0, 0, 0, 1, 8]];
        for byte in 0..=255 {
            samples.push(vec![0x40, byte, 0, 7, 7]);
            samples.push(vec![0xc3, 0, 0, 0, 1, 8, byte, 9, 9]);
        }
        samples
    }
}
