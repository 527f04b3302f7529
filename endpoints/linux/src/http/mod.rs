//! HTTP/1.1 and HTTP/2 over the kernel's TCP, by hyper: pages (`endpoints/contract/pages.md`).

mod client;
mod connection;
mod pool;
mod server;

use bentpipe_endpoint::EndpointError;
use tokio::runtime::{Builder, Runtime};

pub use self::client::load;
pub use self::server::serve;

/// HTTP/1.1.
pub const H1: &str = "http/1.1";
/// HTTP/2.
pub const H2: &str = "h2";
/// The application protocols of pages.
pub const ALPN: &[&str] = &[H1, H2];

/// One thread: what happens in which order is not for the scheduler to say.
fn runtime() -> Result<Runtime, EndpointError> {
    let built = Builder::new_current_thread().enable_all().build();
    built.map_err(EndpointError::io("starting the runtime"))
}

/// Runs the tasks that a connection of HTTP/2 needs where it is.
#[derive(Clone, Copy)]
struct LocalTasks;

impl<F: Future + 'static> hyper::rt::Executor<F> for LocalTasks {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}
