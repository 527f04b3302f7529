//! The access network of a satellite: carriers whose modulation follows the weather, and that
//! terminals share.

mod acm;
mod carrier;
mod course;
mod dvb_s2;
mod gse;
mod modcod;

pub use acm::{Loop, Reception};
pub(crate) use carrier::Carrier;
pub use course::Course;
pub(crate) use dvb_s2::{CarrierRate, EXAMPLE};
pub use dvb_s2::{DvbS2, Terminal, TerminalGroup};
pub use modcod::{DVB_S2, DVB_S2X, FrameLength, Framing, Modcod};
