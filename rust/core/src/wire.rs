//! The form in which partial results travel between processes: a name, a version, a checksum, the content.
//! Decoding runs no code and trusts no length: what does not fit is an error.

use serde::{Serialize, de::DeserializeOwned};

const MAGIC: &[u8; 8] = b"offpol\x00\x02";

/// Why bytes are not a state of this version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAState(pub &'static str);

/// Encodes a value.
pub fn encode(value: &impl Serialize) -> Result<Vec<u8>, NotAState> {
    let head = [&MAGIC[..], &[0; 4]].concat();
    let start = head.len();
    let mut bytes = postcard::to_extend(value, head).map_err(|_| NotAState("the state cannot be encoded"))?;
    let checksum = crc32fast::hash(&bytes[start..]);
    bytes[start - 4..start].copy_from_slice(&checksum.to_le_bytes());
    Ok(bytes)
}

/// Decodes a value that `encode` made.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, NotAState> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(NotAState("not a state of this version of offpolicy"))?;
    let (checksum, content) = rest.split_at_checked(4).ok_or(NotAState("the state is cut short"))?;
    if checksum != crc32fast::hash(content).to_le_bytes() {
        return Err(NotAState("the state is damaged: its checksum does not match"));
    }
    postcard::from_bytes(content).map_err(|_| NotAState("the state is damaged: it cannot be decoded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_found() {
        let bytes = encode(&vec![1u64, 2, 3]).unwrap();
        assert_eq!(decode::<Vec<u64>>(&bytes), Ok(vec![1, 2, 3]));
        for i in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[i] ^= 1;
            assert!(decode::<Vec<u64>>(&damaged).is_err(), "byte {i}");
            assert!(decode::<Vec<u64>>(&bytes[..i]).is_err(), "cut at {i}");
        }
    }
}
