//! The access network of a satellite: carriers whose modulation follows the weather, and that
//! terminals share.

mod acm;
mod assignment;
mod backlog;
mod carrier;
mod decibel_steps;
mod dvb_s2;
mod groups;
mod gse;
mod modcod;
mod rcs2;
mod rcs2_reading;
mod requests;
mod return_carrier;
mod rle;
mod settings;
mod waveforms;

pub(crate) use acm::{Adaptation, Mode};
pub use acm::{Loop, Reception};
pub(crate) use carrier::Carrier;
pub use decibel_steps::DecibelSteps;
pub(crate) use dvb_s2::{CarrierRate, EXAMPLE};
pub use dvb_s2::{DvbS2, Terminal};
pub use groups::TerminalGroup;
pub use modcod::{DVB_S2, DVB_S2X, FrameLength, Framing, Modcod};
pub(crate) use rcs2::ReturnRate;
pub use rcs2::{ControlChannel, Rcs2, ReturnTerminal, Signalling, Volume};
pub(crate) use return_carrier::ReturnCarrier;
pub use waveforms::{Burst, WAVEFORMS, Waveform};
