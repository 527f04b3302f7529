//! The names of what a worker waits for.

use bentpipe_connections::poller;

/// The name of something that a worker waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    Inbox,
    /// The socket of a listening address.
    Client(usize),
    /// The socket of a family of addresses.
    Server(usize),
    /// The socket of a flow that is forwarded untouched.
    Bypass(u64),
}

impl poller::Token for Token {
    fn number(self) -> u64 {
        match self {
            Self::Inbox => 0,
            Self::Client(index) => 1 + 4 * index as u64,
            Self::Server(index) => 2 + 4 * index as u64,
            Self::Bypass(flow) => 3 + 4 * flow,
        }
    }

    fn of(number: u64) -> Self {
        let index = || usize::try_from(number / 4).expect("it was a usize");
        match number % 4 {
            0 => Self::Inbox,
            1 => Self::Client(index()),
            2 => Self::Server(index()),
            _ => Self::Bypass(number / 4),
        }
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_connections::poller::Token as _;

    use super::*;

    #[test]
    fn tokens_keep_their_numbers() {
        for token in [
            Token::Inbox,
            Token::Client(0),
            Token::Client(7),
            Token::Server(0),
            Token::Server(1),
            Token::Bypass(0),
            Token::Bypass(u64::MAX / 8),
        ] {
            assert_eq!(Token::of(token.number()), token);
        }
    }
}
