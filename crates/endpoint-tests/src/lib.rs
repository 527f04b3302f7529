//! The tests of the endpoint contract that programs of this workspace pass, and the coordinator
//! that carries them out: `endpoints/*/tests` name the [`Subject`], and [`contract_tests!`] makes a
//! test of each.

#![expect(missing_docs, reason = "the names of tests say what they hold")]
#![expect(
    clippy::must_use_candidate,
    reason = "tests call all of this for what it returns"
)]

pub mod coordinator;
pub mod impaired_path;
pub mod packets;
pub mod pairs;
pub mod reading;
pub mod sockets;
pub mod test_cases;
pub mod transfer;

/// An endpoint program under test.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// Its path.
    pub program: &'static str,
    /// Every congestion control that it has, since each may draw random values.
    pub controls: &'static [&'static str],
}

/// Makes a test of every case that any program is to pass.
#[macro_export]
macro_rules! contract_tests {
    ($subject:expr) => {
        $crate::tests! {
            $subject;
            transfer: a_file_arrives_whole_and_the_report_is_right,
                the_same_seed_gives_the_same_bytes_whatever_the_congestion_control,
                another_seed_gives_other_bytes,
                an_initial_window_shortens_the_transfer,
                a_flow_control_window_lengthens_the_transfer,
                full_packets_have_the_size_that_is_asked_for,
                a_server_that_asks_for_fewer_acks_gets_fewer,
                several_replies_come_at_once_and_a_missing_one_hides_no_other,
                logs_are_complete_and_in_virtual_time,
                what_is_not_supported_is_127_before_ready,
                a_program_whose_coordinator_goes_away_exits,
                a_missing_certificate_is_named;
            test_cases: a_resumed_connection_takes_two_round_trips_and_no_certificate,
                early_data_save_a_round_trip,
                files_are_uploaded,
                early_data_that_a_restarted_server_rejects_are_sent_again,
                every_test_case_repeats,
                one_request_is_enough_for_two_connections,
                two_thousand_requests_share_one_connection,
                a_narrow_window_slows_an_upload_and_loses_nothing,
                a_put_that_leads_out_of_the_folder_is_refused,
                a_put_in_another_test_case_is_refused;
            sockets: every_test_case_crosses_real_sockets,
                socket_mode_refuses_with_127_too;
        }
    };
}

/// Makes a test of each case that is named, module by module.
#[macro_export]
macro_rules! tests {
    ($subject:expr; $($module:ident: $($case:ident),+;)+) => {
        $($(
            #[test]
            fn $case() {
                $crate::$module::$case(&$subject);
            }
        )+)+
    };
}

#[cfg(test)]
mod tests {
    /// A case that nobody names is one that nobody runs.
    #[test]
    fn every_case_is_named() {
        let (named, _) = include_str!("lib.rs").split_once("#[cfg(test)]").unwrap();
        for source in [
            include_str!("transfer.rs"),
            include_str!("test_cases.rs"),
            include_str!("sockets.rs"),
        ] {
            let cases = source.split("\npub fn ").skip(1);
            let cases = cases.filter_map(|text| text.split_once("(subject:"));
            let cases: Vec<_> = cases
                .map(|(name, _)| name)
                .filter(|name| !name.contains('('))
                .collect();
            assert!(!cases.is_empty());
            for case in cases {
                assert!(named.contains(case), "{case} is not in contract_tests!");
            }
        }
    }
}
