//! A qlog file for each connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bentpipe_endpoint::LogFolder;
use noq_proto::{ConnectionId, QlogConfig, QlogFactory, Side, TransportConfig};

/// Has noq write a file per connection, under this title.
pub fn log_to(
    title: &'static str,
    folder: &LogFolder,
    start: Instant,
    transport: &mut TransportConfig,
) {
    transport.qlog_factory(Arc::new(FilePerConnection {
        title,
        folder: folder.clone(),
        start,
    }));
}

struct FilePerConnection {
    title: &'static str,
    folder: LogFolder,
    start: Instant,
}

impl QlogFactory for FilePerConnection {
    fn for_connection(
        &self,
        _side: Side,
        _remote: SocketAddr,
        _initial_dst_cid: ConnectionId,
        _now: Instant,
    ) -> Option<QlogConfig> {
        let mut config = QlogConfig::new(Box::new(self.folder.create()?));
        config.title(Some(self.title.into())).start_time(self.start);
        Some(config)
    }
}
