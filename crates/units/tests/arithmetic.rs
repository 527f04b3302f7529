//! Arithmetic of quantities.

use bentpipe_units::{Rate, Ratio, Size, Span, Time};

#[test]
fn never_stays_never() {
    assert_eq!(Time::NEVER + Span::from_nanos(1), Time::NEVER);
    assert_eq!(
        Time::from_nanos(u64::MAX - 1) + Span::from_nanos(1),
        Time::NEVER
    );
    assert!(Time::from_nanos(u64::MAX - 1) < Time::NEVER);
}

#[test]
fn differences_stop_at_zero() {
    let (early, late) = (Time::from_nanos(3), Time::from_nanos(10));
    assert_eq!(late - early, Span::from_nanos(7));
    assert_eq!(early - late, Span::ZERO);
    assert_eq!(early - Span::from_nanos(4), Time::ZERO);
    assert_eq!(late - Span::from_nanos(4), Time::from_nanos(6));
}

#[test]
fn spans_add_up_and_saturate() {
    let spans = [
        Span::from_millis(250),
        Span::from_millis(40),
        Span::from_nanos(1),
    ];
    assert_eq!(
        spans.into_iter().sum::<Span>(),
        Span::from_nanos(290_000_001)
    );
    assert_eq!(Span::from_millis(290) * 2, Span::from_millis(580));
    assert_eq!(Span::MAX + Span::from_nanos(1), Span::MAX);
    assert_eq!(Span::from_secs(u64::MAX), Span::MAX);
    assert_eq!(Span::from_secs(3) * u64::MAX, Span::MAX);
    let mut time = Time::ZERO;
    time += Span::from_secs(2);
    assert_eq!(time, Time::from_nanos(2_000_000_000));
}

#[test]
fn a_rate_turns_time_into_bytes_and_back() {
    let rate = Rate::from_bps(20_000_000);
    assert_eq!(
        rate.bytes_in(Span::from_millis(600)),
        Size::from_bytes(1_500_000)
    );
    // 2.5 bytes a microsecond: 399 ns are 0.9975 bytes, 400 ns are one.
    assert_eq!(rate.bytes_in(Span::from_nanos(399)), Size::ZERO);
    assert_eq!(rate.bytes_in(Span::from_nanos(400)), Size::from_bytes(1));
    assert_eq!(
        rate.time_for(Size::from_bytes(1500)),
        Span::from_nanos(600_000)
    );
    assert_eq!(
        Rate::from_bps(3).time_for(Size::from_bytes(1)),
        Span::from_nanos(2_666_666_667)
    );
    assert_eq!(Rate::from_bps(0).time_for(Size::from_bytes(1)), Span::MAX);
    assert_eq!(
        Rate::from_bps(u64::MAX).bytes_in(Span::MAX),
        Size::from_bytes(u64::MAX)
    );
}

#[test]
fn ratios_and_sizes_have_ends() {
    assert_eq!(Ratio::from_ppb(2_000_000_000), Ratio::ONE);
    assert_eq!(
        Size::from_bytes(u64::MAX) + Size::from_bytes(1),
        Size::from_bytes(u64::MAX)
    );
    assert_eq!(
        Size::from_bytes(2) + Size::from_bytes(3),
        Size::from_bytes(5)
    );
    assert!((Span::from_millis(5600).as_secs_f64() - 5.6).abs() < f64::EPSILON);
}
