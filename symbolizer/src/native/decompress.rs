//! Decompression with bounded output.

use std::io::Read;

use super::limits;

/// Failed decompression.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecompressError {
    /// The output exceeds the stated or the plausible size.
    #[error("too large after decompression (more than {limit} bytes)")]
    TooLarge {
        /// The exceeded bound.
        limit: u64,
    },
    /// The output is shorter than stated.
    #[error("{actual} bytes after decompression instead of {expected}")]
    TooShort {
        /// Real size.
        actual: u64,
        /// Stated size.
        expected: u64,
    },
    /// A damaged stream.
    #[error("damaged compressed data")]
    Damaged(#[source] std::io::Error),
    /// An unknown `ELFCOMPRESS_*` (gABI, section compression).
    #[error("unknown compression {0}")]
    UnknownKind(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Zlib,
    Zstd,
}

/// Maximum plausible output, at most `limit`.
fn plausible(compressed: usize, limit: u64) -> u64 {
    (compressed as u64)
        .saturating_mul(limits::COMPRESSION_RATIO)
        .saturating_add(limits::COMPRESSION_FREE_BYTES)
        .min(limit)
}

/// Decompresses a section with a stated size of `expected` bytes.
pub(crate) fn section(
    kind: Compression,
    compressed: &[u8],
    expected: u64,
    limit: u64,
) -> Result<Vec<u8>, DecompressError> {
    let limit = plausible(compressed.len(), limit);
    if expected > limit {
        return Err(DecompressError::TooLarge { limit });
    }
    let bytes = match kind {
        Compression::Zlib => read_bounded(flate2::read::ZlibDecoder::new(compressed), expected)?,
        Compression::Zstd => {
            let mut decoder =
                zstd::stream::read::Decoder::new(compressed).map_err(DecompressError::Damaged)?;
            decoder
                .window_log_max(limits::ZSTD_WINDOW_LOG)
                .map_err(DecompressError::Damaged)?;
            read_bounded(decoder, expected)?
        }
    };
    let actual = bytes.len() as u64;
    if actual < expected {
        return Err(DecompressError::TooShort { actual, expected });
    }
    Ok(bytes)
}

/// Decompresses an xz stream (`.gnu_debugdata`).
pub(crate) fn xz(compressed: &[u8]) -> Result<Vec<u8>, DecompressError> {
    let limit = plausible(compressed.len(), limits::MINI_DEBUG_BYTES as u64);
    // `objcopy --add-section` may append padding: read one stream only.
    let reader = lzma_rust2::XzReader::new_mem_limit(compressed, false, limits::XZ_MEMORY_KIB);
    read_bounded(reader, limit)
}

/// Reads at most `limit` bytes; fails if more follow.
fn read_bounded(reader: impl Read, limit: u64) -> Result<Vec<u8>, DecompressError> {
    let mut bytes = Vec::new();
    reader
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(DecompressError::Damaged)?;
    if bytes.len() as u64 > limit {
        return Err(DecompressError::TooLarge { limit });
    }
    Ok(bytes)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests say what went wrong by failing")]
mod tests {
    use std::io::Write;

    use super::*;

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder =
            flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn sections_come_back() {
        let plain = b"hello ".repeat(100);
        for (kind, packed) in [
            (Compression::Zlib, zlib(&plain)),
            (Compression::Zstd, zstd::encode_all(&plain[..], 3).unwrap()),
        ] {
            let back = section(kind, &packed, plain.len() as u64, 1 << 20).unwrap();
            assert_eq!(back, plain);
            let short = section(kind, &packed, plain.len() as u64 + 1, 1 << 20);
            assert!(matches!(short, Err(DecompressError::TooShort { .. })));
            let long = section(kind, &packed, plain.len() as u64 - 1, 1 << 20);
            assert!(matches!(long, Err(DecompressError::TooLarge { .. })));
        }
    }

    #[test]
    fn bombs_are_refused() {
        let plain = vec![0; 64 << 20];
        let packed = zlib(&plain);
        assert!(packed.len() < 100 << 10);
        let bomb = section(Compression::Zlib, &packed, plain.len() as u64, 1 << 40);
        assert!(matches!(bomb, Err(DecompressError::TooLarge { .. })));
        let packed = zstd::encode_all(&plain[..], 3).unwrap();
        let bomb = section(Compression::Zstd, &packed, plain.len() as u64, 1 << 40);
        assert!(matches!(bomb, Err(DecompressError::TooLarge { .. })));
    }

    #[test]
    fn garbage_is_an_error() {
        assert!(matches!(xz(b"not xz"), Err(DecompressError::Damaged(_))));
        for kind in [Compression::Zlib, Compression::Zstd] {
            assert!(section(kind, b"garbage", 10, 100).is_err());
        }
    }
}
