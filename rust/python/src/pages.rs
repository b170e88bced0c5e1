//! A Parquet file whose pages are compared with their headers. The decoder compares the size of a page with its header
//! after decompression. Where nothing is compressed it compares nothing, so the equality is checked here:
//!
//!     uncompressed_page_size = compressed_page_size
//!
//! Where a file has checksums of pages, the decoder verifies them.

use std::fs::File;
use std::ops::Range;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, Length};

/// The most bytes that the beginning of a page header takes: the type of the page and its two sizes.
const OPENING: u64 = 24;
/// The byte that opens a 32-bit field whose id is one more than that of the field before, in Thrift's compact protocol.
const NEXT_I32: u8 = 0x15;

/// A file, and the ranges of its pages that are not compressed.
pub struct Pages {
    file: File,
    plain: Vec<Range<u64>>,
}

impl Pages {
    /// Wraps a file with this metadata.
    pub fn new(file: File, metadata: &ParquetMetaData, groups: &[usize]) -> Self {
        let chunks = groups.iter().filter_map(|&group| metadata.row_groups().get(group)).flat_map(|g| g.columns());
        let plain = chunks.filter(|chunk| chunk.compression() == Compression::UNCOMPRESSED).map(|chunk| {
            let (start, length) = chunk.byte_range();
            start..start.saturating_add(length)
        });
        Self { plain: plain.collect(), file }
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Pages {
    type T = <File as ChunkReader>::T;

    /// Returns a reader. The decoder asks for one where it expects the header of a page, so the page is checked here.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        if self.plain.iter().any(|range| range.contains(&start)) {
            let length = OPENING.min(self.len().saturating_sub(start));
            let opening = self.file.get_bytes(start, length as usize)?;
            if let Some((whole, stored)) = sizes(&opening).filter(|(whole, stored)| whole != stored) {
                return Err(ParquetError::General(format!(
                    "a page that is not compressed has {stored} bytes, and its header says {whole}"
                )));
            }
        }
        self.file.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.file.get_bytes(start, length)
    }
}

/// Returns the size of a page before and after compression, where these bytes are the beginning of its header.
fn sizes(mut header: &[u8]) -> Option<(u64, u64)> {
    let mut fields = [0; 3];
    for field in &mut fields {
        let (&opening, rest) = header.split_first()?;
        (header, *field) = (rest, 0);
        for shift in (0..35).step_by(7) {
            let (&byte, rest) = header.split_first()?;
            header = rest;
            *field |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        if opening != NEXT_I32 {
            return None;
        }
    }
    let [_, whole, stored] = fields;
    Some((whole >> 1, stored >> 1)) // zigzag
}
