//! A 64-bit fingerprint of bytes, the same on every machine. It detects accidental differences; it is no signature.

/// Applies the finaliser of SplitMix64 (Steele, Lea & Flood 2014), in which every bit of x affects every bit of the
/// result.
#[inline(always)]
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns the fingerprint of some bytes, which it reads eight at a time.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain(std::iter::once(&last));
    words
        .fold(mix(bytes.len() as u64 ^ GOLDEN), |hash, word| mix(hash.wrapping_add(GOLDEN) ^ u64::from_le_bytes(*word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_byte_and_every_length_counts() {
        let bytes: Vec<u8> = (0..40).collect();
        let mut seen: HashSet<u64> = (0..=40).map(|len| fingerprint(&bytes[..len])).collect();
        for i in 0..40 {
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[i] ^= 1 << bit;
                seen.insert(fingerprint(&other));
            }
        }
        assert_eq!(seen.len(), 41 + 40 * 8);
        assert_ne!(fingerprint(&[0]), fingerprint(&[0, 0]));
    }
}
