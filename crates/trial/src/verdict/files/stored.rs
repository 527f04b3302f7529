//! Whether the client got what was served: each reply is compared with its file, byte by byte.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::schema::Outcome;

const CHUNK: usize = 1 << 18;

/// The outcome and its detail if a file below `downloads` is missing or wrong.
pub fn verify(
    requests: &[String],
    www: &Path,
    downloads: &Path,
) -> io::Result<Option<(Outcome, String)>> {
    for request in requests {
        let name = request.trim_start_matches('/');
        let served = File::open(www.join(name))?;
        let wanted = served.metadata()?.len();
        // A program may have left anything there; opening a named pipe would wait for ever.
        let stored = downloads.join(name);
        if fs::symlink_metadata(&stored).is_ok_and(|it| !it.is_file()) {
            let what = format!("{request}: what was stored is not a file");
            return Ok(Some((Outcome::MissingFile, what)));
        }
        let received = match File::open(stored) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Some((
                    Outcome::MissingFile,
                    format!("{request}: nothing was stored"),
                )));
            }
            Err(error) => return Err(error),
        };
        let size = received.metadata()?.len();
        if let Some(offset) = first_difference(served, received)? {
            let what = format!("{request}: byte {offset} is not the one served");
            return Ok(Some((Outcome::CorruptFile, what)));
        }
        if size < wanted {
            return Ok(Some((
                Outcome::MissingFile,
                format!("{request}: {size} of {wanted} bytes"),
            )));
        }
        if size > wanted {
            let what = format!("{request}: {size} bytes, but {wanted} were served");
            return Ok(Some((Outcome::CorruptFile, what)));
        }
    }
    Ok(None)
}

/// The offset of the first byte that differs within the length that both have.
fn first_difference(one: impl Read, other: impl Read) -> io::Result<Option<usize>> {
    let mut readers = (
        BufReader::with_capacity(CHUNK, one),
        BufReader::with_capacity(CHUNK, other),
    );
    let (mut left, mut right) = (vec![0; CHUNK], vec![0; CHUNK]);
    let mut offset = 0;
    loop {
        let count =
            read_full(&mut readers.0, &mut left)?.min(read_full(&mut readers.1, &mut right)?);
        if left[..count] != right[..count] {
            let at = left.iter().zip(&right).position(|(a, b)| a != b);
            return Ok(at.map(|at| offset + at));
        }
        if count < CHUNK {
            return Ok(None);
        }
        offset += count;
    }
}

fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(served: &[u8], received: Option<&[u8]>) -> Option<(Outcome, String)> {
        let folder = tempfile::tempdir().unwrap();
        let (www, downloads) = (folder.path().join("www"), folder.path().join("downloads"));
        std::fs::create_dir(&www).unwrap();
        std::fs::create_dir(&downloads).unwrap();
        std::fs::write(www.join("file"), served).unwrap();
        if let Some(received) = received {
            std::fs::write(downloads.join("file"), received).unwrap();
        }
        verify(&["/file".to_owned()], &www, &downloads).unwrap()
    }

    #[test]
    fn every_kind_of_wrong_file_is_told_apart() {
        let served: Vec<u8> = (0..CHUNK + 1000)
            .map(|i| u8::try_from(i % 251).unwrap())
            .collect();
        assert_eq!(check(&served, Some(&served)), None);
        assert_eq!(check(&[], Some(&[])), None);
        let (outcome, detail) = check(&served, None).unwrap();
        assert_eq!(
            (outcome, &*detail),
            (Outcome::MissingFile, "/file: nothing was stored")
        );
        let (outcome, detail) = check(&served, Some(&served[..CHUNK])).unwrap();
        assert_eq!(
            (outcome, &*detail),
            (Outcome::MissingFile, "/file: 262144 of 263144 bytes")
        );
        let longer = [&served[..], b"x"].concat();
        assert_eq!(
            check(&served, Some(&longer)).unwrap().0,
            Outcome::CorruptFile
        );
        for at in [0, 1, CHUNK - 1, CHUNK, served.len() - 1] {
            let mut wrong = served.clone();
            wrong[at] ^= 1;
            let (outcome, detail) = check(&served, Some(&wrong)).unwrap();
            assert_eq!(outcome, Outcome::CorruptFile);
            assert_eq!(detail, format!("/file: byte {at} is not the one served"));
        }
    }
}
