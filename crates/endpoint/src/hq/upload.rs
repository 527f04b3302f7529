//! A file that a server is sent: `PUT /path\r\n` and its bytes.

use std::path::Path;

use crate::error::EndpointError;

use super::LONGEST_QUESTION;
use crate::files::Download;

/// An upload that a server receives, from the first byte of its PUT.
#[derive(Debug)]
pub enum Upload {
    /// The first line is not complete yet.
    Line(Vec<u8>),
    /// The file for the bytes that follow.
    File(Download),
    /// The path is none, or leads out of the folder.
    Refused,
}

impl Upload {
    /// Takes the bytes that came next.
    pub fn take(&mut self, folder: &Path, bytes: &[u8]) -> Result<(), EndpointError> {
        match self {
            Self::Refused => Ok(()),
            Self::File(download) => download.write(bytes),
            Self::Line(line) => {
                line.extend_from_slice(bytes);
                let Some(end) = line.iter().position(|byte| *byte == b'\n') else {
                    if line.len() > LONGEST_QUESTION {
                        *self = Self::Refused;
                    }
                    return Ok(());
                };
                let body = line.split_off(end + 1);
                *self = begin(folder, line).map_or(Self::Refused, Self::File);
                self.take(folder, &body)
            }
        }
    }

    /// Completes the upload; true if a file has come.
    pub fn complete(&mut self) -> Result<bool, EndpointError> {
        let Self::File(download) = self else {
            return Ok(false);
        };
        download.complete().map(|()| true)
    }
}

/// The file that the line asks for, made; `None` if it can't be.
fn begin(folder: &Path, line: &[u8]) -> Option<Download> {
    let path = std::str::from_utf8(line).ok()?.strip_prefix("PUT /")?;
    let mut download = Download::new(folder, path.trim_end_matches(['\r', '\n']))?;
    download.open().ok()?;
    Some(download)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_comes_however_it_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let whole = b"PUT /deep/a\r\nline\nline\n";
        for cut in 0..=whole.len() {
            let mut upload = Upload::Line(Vec::new());
            upload.take(folder.path(), &whole[..cut]).unwrap();
            upload.take(folder.path(), &whole[cut..]).unwrap();
            assert!(upload.complete().unwrap());
            let stored = fs::read(folder.path().join("deep/a")).unwrap();
            assert_eq!(stored, b"line\nline\n", "cut at {cut}");
            fs::remove_file(folder.path().join("deep/a")).unwrap();
        }
    }

    #[test]
    fn what_is_no_put_or_leads_out_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("downloads");
        fs::create_dir_all(folder.join("inner")).unwrap();
        let long = [b'x'; LONGEST_QUESTION + 1];
        for wrong in [
            &b"PUT /../a\r\nbytes"[..],
            b"PUT //etc/a\r\nbytes",
            b"PUT /inner\r\nbytes",
            b"PUT /\r\nbytes",
            b"GET /a\r\n",
            b"PUT /\xff\r\n",
            &long,
        ] {
            let mut upload = Upload::Line(Vec::new());
            upload.take(&folder, wrong).unwrap();
            assert!(matches!(upload, Upload::Refused), "{wrong:?}");
            assert!(!upload.complete().unwrap());
        }
        assert!(!Upload::Line(b"PUT /a".to_vec()).complete().unwrap());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }
}
