//! Messages of protocol buffers, and the fields of pprof's (`profile.proto`, github.com/google/pprof).

/// A message of protocol buffers (its encoding: protobuf.dev/programming-guides/encoding).
#[derive(Debug, Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(crate) fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    pub(crate) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    pub(crate) fn packed(&mut self, field: u64, values: impl Iterator<Item = u64>) {
        let mut packed = Self::default();
        values.for_each(|value| packed.varint(value));
        self.bytes(field, &packed.0);
    }
}

/// Fields of `Profile`.
pub(crate) mod profile {
    pub(crate) const SAMPLE_TYPE: u64 = 1;
    pub(crate) const SAMPLE: u64 = 2;
    pub(crate) const MAPPING: u64 = 3;
    pub(crate) const LOCATION: u64 = 4;
    pub(crate) const FUNCTION: u64 = 5;
    pub(crate) const STRING: u64 = 6;

    /// The system name of a function with this name, whose symbol is this; empty if it has none. Of a name that is the system name, too,
    /// pprof takes what C++ would have as arguments or parameters away, and functions that differ in these would be one.
    pub(crate) fn system_name<'s>(name: &str, symbol: &'s str) -> &'s str {
        let is_cut = symbol == name && name.contains(['<', '(', '[', ':']);
        if is_cut { "" } else { symbol }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::profile::system_name;

    #[test]
    fn no_name_that_would_be_cut_is_a_system_name() {
        for (name, symbol, expected) in [
            ("main", "main", "main"),
            ("work<int>(int)", "_Z4workIiEvT_", "_Z4workIiEvT_"),
            ("<m::A as m::Tr>::go", "<m::A as m::Tr>::go", ""),
            ("sub_1000", "", ""),
        ] {
            assert_eq!(system_name(name, symbol), expected);
        }
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = bytes.split_first().expect("more");
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }

    /// The fields of a message: numbers as they are, the rest as bytes.
    pub(crate) fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let value = varint(&mut bytes);
            let mut inner = Vec::new();
            if key & 7 == 2 {
                let (here, rest) = bytes.split_at(value as usize);
                (inner, bytes) = (here.to_vec(), rest);
            }
            fields.push((key >> 3, value, inner));
        }
        fields
    }

    pub(crate) fn numbers(mut packed: &[u8]) -> Vec<u64> {
        let mut all = Vec::new();
        while !packed.is_empty() {
            all.push(varint(&mut packed));
        }
        all
    }
}
