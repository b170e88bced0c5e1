//! The form in which a state is sent to another process: a name, a version, a checksum and the content.
//!
//!     "offpol" 00 04 | crc32 of the rest | stamp | state        (postcard)
//!
//! Decoding runs no code and trusts no length; bytes that do not fit are an error. The checksum finds accidental
//! damage, the stamp finds states of another plan or pass, and [`crate::pass::fit`] checks that the parts of a state
//! are consistent. None of these is a signature: whoever can write states can forge one with other numbers in it.

use serde::{Serialize, de::DeserializeOwned};

use crate::pass::stamp::Stamp;

const MAGIC: &[u8; 7] = b"offpol\x00";
const VERSION: u8 = 4;

/// The reason why bytes are not a state that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAState(pub String);

impl NotAState {
    fn because(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// Encodes a value.
pub fn encode(value: &impl Serialize) -> Result<Vec<u8>, NotAState> {
    let head = [&MAGIC[..], &[VERSION], &[0; 4]].concat();
    let start = head.len();
    let encoded = postcard::to_extend(value, head);
    let mut bytes = encoded.map_err(|_| NotAState::because("the state cannot be encoded"))?;
    let checksum = crc32fast::hash(&bytes[start..]);
    bytes[start - 4..start].copy_from_slice(&checksum.to_le_bytes());
    Ok(bytes)
}

/// Decodes a value that `encode` made.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, NotAState> {
    whole(postcard::take_from_bytes(content(bytes)?))
}

/// Decodes a value that `encode` wrote after a stamp, and returns an error if the stamp is not the expected one.
pub fn decode_stamped<T: DeserializeOwned>(bytes: &[u8], expected: &Stamp) -> Result<T, NotAState> {
    let (stamp, rest): (Stamp, &[u8]) = postcard::take_from_bytes(content(bytes)?).map_err(|_| undecodable())?;
    expected.check(&stamp).map_err(|why| NotAState(format!("the state belongs elsewhere: {why}")))?;
    whole(postcard::take_from_bytes(rest))
}

fn content(bytes: &[u8]) -> Result<&[u8], NotAState> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(NotAState::because("these bytes are no state of offpolicy"))?;
    let (&version, rest) = rest.split_first().ok_or(NotAState::because("the state is cut short"))?;
    if version != VERSION {
        let why = format!("the state has the form of version {version}, and this version reads {VERSION}");
        return Err(NotAState(why));
    }
    let (checksum, content) = rest.split_at_checked(4).ok_or(NotAState::because("the state is cut short"))?;
    if checksum != crc32fast::hash(content).to_le_bytes() {
        return Err(NotAState::because("the state is damaged: its checksum does not match"));
    }
    Ok(content)
}

fn whole<T>(decoded: postcard::Result<(T, &[u8])>) -> Result<T, NotAState> {
    match decoded {
        Ok((value, [])) => Ok(value),
        _ => Err(undecodable()),
    }
}

fn undecodable() -> NotAState {
    NotAState::because("the state is damaged: it cannot be decoded")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::plan::Pass;

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

    #[test]
    fn what_follows_the_state_is_damage_too() {
        let content = postcard::to_stdvec(&(vec![1u64], 0u8)).unwrap();
        let mut bytes = [&MAGIC[..], &[VERSION], &crc32fast::hash(&content).to_le_bytes()].concat();
        bytes.extend(content);
        assert_eq!(decode::<Vec<u64>>(&bytes), Err(undecodable()));
    }

    #[test]
    fn a_state_with_another_stamp_is_not_decoded() {
        let (own, other) = (Stamp::new(1, Pass::First, None), Stamp::new(2, Pass::First, None));
        let bytes = encode(&(&own, 7u64)).unwrap();
        assert_eq!(decode_stamped(&bytes, &own), Ok(7u64));
        assert!(decode_stamped::<u64>(&bytes, &other).unwrap_err().0.contains("another plan"));
    }
}
