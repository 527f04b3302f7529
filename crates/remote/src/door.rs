//! A door into a network namespace: a Unix socket, which all namespaces see, and behind it a port
//! of the namespace.
//!
//! The laboratory (`bentpipe lab`) has an SSH server in each of two namespaces, which nothing leads
//! into but the emulated link.

use std::error::Error;
use std::io::{self, Read, Write, stdin, stdout};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, exit};
use std::thread;
use std::time::Duration;

use crate::clock::pause;

/// Runs `command` and leads what connects to `socket` to the port of `address`, until the command
/// ends.
pub fn open(socket: &str, address: &str, command: &[&str]) -> Result<(), Box<dyn Error>> {
    let (program, arguments) = command.split_first().ok_or("there is no command")?;
    let listener = UnixListener::bind(socket)?;
    let mut child = Command::new(program).args(arguments).spawn()?;
    thread::spawn(move || {
        let code = child.wait().ok().and_then(|status| status.code());
        exit(code.unwrap_or(1));
    });
    println!("ready");
    for client in listener.incoming() {
        let (client, address) = (client?, address.to_owned());
        thread::spawn(move || lead(&client, &address));
    }
    Ok(())
}

/// Leads standard input and output through the door at `socket`.
pub fn enter(socket: &str) -> Result<(), Box<dyn Error>> {
    let door = UnixStream::connect(socket)?;
    let mut out = door.try_clone()?;
    thread::spawn(move || {
        let _ = copy(&mut stdin(), &mut out);
        let _ = out.shutdown(Shutdown::Write);
    });
    match copy(&mut &door, &mut stdout()) {
        // ssh has left. Why, it has said; another complaint would hide that.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        ended => Ok(ended?),
    }
}

fn lead(client: &UnixStream, address: &str) {
    let Some(server) = connect(address) else {
        return;
    };
    let _ = server.set_nodelay(true);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = copy(&mut &*client, &mut &server);
            let _ = server.shutdown(Shutdown::Write);
        });
        let _ = copy(&mut &server, &mut &*client);
        let _ = client.shutdown(Shutdown::Both);
    });
}

/// The command may need a moment to listen.
fn connect(address: &str) -> Option<TcpStream> {
    for _ in 0..100 {
        if let Ok(stream) = TcpStream::connect(address) {
            return Some(stream);
        }
        pause(Duration::from_millis(50));
    }
    None
}

/// As `io::copy`, but without waiting for more before it hands on what is there.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut chunk = vec![0; 1 << 16];
    loop {
        let count = match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(&chunk[..count])?;
        to.flush()?;
    }
}
