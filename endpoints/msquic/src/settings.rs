//! Settings of `MsQuic` for the variant's options and the trial. Those that are not given have the
//! defaults of `MsQuic`.

use std::ops::RangeInclusive;
use std::ptr;

use bentpipe_endpoint::{EndpointError, Options, Role, Setup};
use msquic::ffi::{self, QUIC_SETTINGS};
use msquic::{
    Api, BufferRef, CertificateFile, Configuration, Credential, CredentialConfig, Registration,
    ServerResumptionLevel, Status,
};

/// The only one that this program speaks (`endpoints/CONTRACT.md`).
pub const ALPN: &str = "hq-interop";
/// Streams that a client may have open at once; `MsQuic` itself allows none.
const STREAMS: u16 = 100;
/// The IP packets that `MsQuic` sends: the fewest bytes fit QUIC's 1200 into IPv6.
const MTU: RangeInclusive<u16> = 1248..=1500;
/// The sizes of the headers of IP and UDP.
const HEADERS: [u16; 2] = [28, 48];
/// Stream windows are powers of two.
const WINDOW: RangeInclusive<u32> = 1..=1 << 31;

/// The configuration of the side that `setup` asks for.
pub fn configure(
    registration: &Registration,
    setup: &Setup,
    options: &mut Options,
) -> Result<Configuration, EndpointError> {
    let settings = settings(setup, options)?;
    let configuration = open(registration, &settings)
        .map_err(|status| EndpointError::Tls(format!("the settings: {status}")))?;
    configuration
        .load_credential(&credential(setup)?)
        .map_err(|status| EndpointError::Tls(format!("{}: {status}", setup.certs.display())))?;
    Ok(configuration)
}

fn credential(setup: &Setup) -> Result<CredentialConfig, EndpointError> {
    let file = |name| setup.certificate_file(name);
    Ok(match setup.role {
        Role::Client => CredentialConfig::new_client().set_ca_certificate_file(file("ca.pem")?),
        Role::Server => {
            let pair = CertificateFile::new(file("priv.key")?, file("cert.pem")?);
            CredentialConfig::new().set_credential(Credential::CertificateFile(pair))
        }
    })
}

/// The wrapper's `Settings` can switch nothing off.
#[expect(unsafe_code, reason = "the wrapper takes its own Settings alone")]
fn open(registration: &Registration, settings: &QUIC_SETTINGS) -> Result<Configuration, Status> {
    let alpn = BufferRef::from(ALPN);
    let size = u32::try_from(size_of::<QUIC_SETTINGS>()).expect("a small struct");
    let open = Api::get_ffi().ConfigurationOpen.expect("in every table");
    let mut handle = ptr::null_mut();
    // SAFETY: all that is pointed to outlives the call, which copies it.
    unsafe {
        let status = open(
            registration.as_raw(),
            &raw const alpn.0,
            1,
            settings,
            size,
            ptr::null_mut(),
            &raw mut handle,
        );
        Status::ok_from_raw(status)?;
        Ok(Configuration::from_raw(handle))
    }
}

#[expect(unsafe_code, reason = "which fields are set, C has in a union")]
fn settings(setup: &Setup, options: &mut Options) -> Result<QUIC_SETTINGS, EndpointError> {
    // SAFETY: numbers, which may all be 0: nothing is set.
    let mut all: QUIC_SETTINGS = unsafe { std::mem::zeroed() };
    // SAFETY: both fields of the union are the same 64 bits.
    let set = unsafe { &mut all.__bindgen_anon_1.IsSet };
    if setup.role == Role::Server {
        set.set_PeerBidiStreamCount(1);
        all.PeerBidiStreamCount = STREAMS;
        set.set_ServerResumptionLevel(1);
        let level: ffi::QUIC_SERVER_RESUMPTION_LEVEL =
            ServerResumptionLevel::ResumeAndZerortt.into();
        all.set_ServerResumptionLevel(u8::try_from(level).expect("0, 1 or 2"));
    }
    // SAFETY: as above.
    let set = unsafe { &mut all.__bindgen_anon_1.IsSet };
    if let Some(packets) = options.take_number("iw", 1..=u32::MAX)? {
        set.set_InitialWindowPackets(1);
        all.InitialWindowPackets = packets;
    }
    if let Some(window) = options.take_number("window", WINDOW)? {
        if !window.is_power_of_two() {
            let problem = "write a power of two";
            return Err(EndpointError::option(
                "window",
                &window.to_string(),
                problem,
            ));
        }
        set.set_StreamRecvWindowDefault(1);
        all.StreamRecvWindowDefault = window;
        set.set_ConnFlowControlWindow(1);
        all.ConnFlowControlWindow = window;
    }
    if let Some(mtu) = mtu(setup, options)? {
        set.set_MinimumMtu(1);
        all.MinimumMtu = mtu;
        set.set_MaximumMtu(1);
        all.MaximumMtu = mtu;
    }
    set_congestion_control(&mut all, options)?;
    Ok(all)
}

#[expect(unsafe_code, reason = "which fields are set, C has in a union")]
fn set_congestion_control(
    all: &mut QUIC_SETTINGS,
    options: &mut Options,
) -> Result<(), EndpointError> {
    // SAFETY: both fields of the union are the same 64 bits.
    let set = unsafe { &mut all.__bindgen_anon_1.IsSet };
    let cubic = ffi::QUIC_CONGESTION_CONTROL_ALGORITHM_QUIC_CONGESTION_CONTROL_ALGORITHM_CUBIC;
    let bbr = ffi::QUIC_CONGESTION_CONTROL_ALGORITHM_QUIC_CONGESTION_CONTROL_ALGORITHM_BBR;
    let algorithm = options.take_word("cc", &[("cubic", cubic), ("bbr", bbr)])?;
    let algorithm = algorithm.unwrap_or(cubic);
    set.set_CongestionControlAlgorithm(1);
    all.CongestionControlAlgorithm = u16::try_from(algorithm).expect("0 or 1");
    if algorithm == bbr
        && let Some(value) = options.take("ss")
    {
        let problem = "bbr has a start-up of its own";
        return Err(EndpointError::option("ss", &value, problem));
    }
    if let Some(on) = options.take_word("ss", &[("standard", 0), ("hystart++", 1)])? {
        set.set_HyStartEnabled(1);
        // SAFETY: both fields of this union are the same 64 bits, too.
        let flags = unsafe { &mut all.__bindgen_anon_2.__bindgen_anon_1 };
        flags.set_HyStartEnabled(on);
    }
    if let Some(on) = options.take_switch("pacing")? {
        set.set_PacingEnabled(1);
        all.set_PacingEnabled(on.into());
    }
    Ok(())
}

/// The size of IP packets, which `MsQuic` counts in.
fn mtu(setup: &Setup, options: &mut Options) -> Result<Option<u16>, EndpointError> {
    let address = setup.remote.unwrap_or(setup.local);
    let headers = HEADERS[usize::from(address.is_ipv6())];
    let payload = (MTU.start() - headers)..=(MTU.end() - headers);
    let found = options.take_number("mtu", payload)?;
    Ok(found.map(|bytes| bytes + headers))
}
