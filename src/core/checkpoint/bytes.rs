//! Primitives of the checkpoint format: a reader that fails instead of panicking, and LEB128 numbers.

use super::Corrupt;

/// Bytes that are left to read.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Corrupt> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Corrupt::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn take_array<const N: usize>(&mut self) -> Result<[u8; N], Corrupt> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Corrupt::Truncated)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// Reads a number of 7 bits per byte, lowest first. Only the shortest form is legal, so each value has one
    /// encoding.
    pub(super) fn take_varint(&mut self) -> Result<u64, Corrupt> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take_array()?;
            let bits = u64::from(byte & 0x7F);
            let is_last = byte & 0x80 == 0;
            let is_padded = is_last && byte == 0 && shift > 0;
            if is_padded || bits << shift >> shift != bits {
                return Err(Corrupt::Varint);
            }
            number |= bits << shift;
            if is_last {
                return Ok(number);
            }
        }
        Err(Corrupt::Varint)
    }
}

/// Appends a number in the form that [`Reader::take_varint`] reads.
pub(super) fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        // The lowest 7 bits, and the mark that more follow.
        out.push((number & 0x7F) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_and_have_one_form() {
        for number in [
            0,
            1,
            127,
            128,
            300,
            1 << 20,
            u64::from(u32::MAX),
            u64::MAX - 1,
            u64::MAX,
        ] {
            let mut bytes = Vec::new();
            push_varint(&mut bytes, number);
            assert_eq!(Reader(&bytes).take_varint(), Ok(number));
        }
        assert_eq!(Reader(&[0x81, 0x00]).take_varint(), Err(Corrupt::Varint));
        assert_eq!(Reader(&[0xFF; 11]).take_varint(), Err(Corrupt::Varint));
        assert_eq!(Reader(&[0x80]).take_varint(), Err(Corrupt::Truncated));
        assert_eq!(Reader(&[]).take_varint(), Err(Corrupt::Truncated));
    }
}
