//! Values as linear forms over atoms, modulo 2^64.
//!
//! The address that an indirect jump takes is a short computation: loads, sums, small multiples,
//! extensions. A [`Linear`] is that computation in a normal form, so that "the same value" is
//! "equal", whichever of the equivalent instruction sequences a compiler chose.

/// `constant` plus every atom times its factor, modulo 2^64.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Linear {
    /// Atoms with nonzero factors, ascending, without duplicates.
    pub(crate) terms: Vec<(Atom, u64)>,
    /// What is added.
    pub(crate) constant: u64,
}

/// A value that is not a sum of others.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Atom {
    /// The content of a general-purpose register (0 is `rax`, 4 `rsp`, 5 `rbp`).
    Register(u8),
    /// `size` bytes of memory at `address`, zero-extended.
    Load {
        /// Where.
        address: Linear,
        /// How many bytes.
        size: u8,
        /// Whether something may have written there since: then no guard speaks of it, and it is
        /// known only if the address turns out to be in memory that never changes.
        stale: bool,
    },
    /// The low `bits` bits, zero-extended.
    Zero(u8, Linear),
    /// The low `bits` bits, sign-extended.
    Sign(u8, Linear),
    /// Masked.
    And(Linear, u64),
    /// Shifted right by so many bits, zeros coming in.
    Shift(Linear, u8),
    /// The index of the table, once it has been told from the rest.
    Index,
    /// Something unknown, equal only to itself.
    Opaque(u64),
}

/// Terms and nesting beyond which a value is given up.
const LARGEST: usize = 24;

impl Linear {
    /// A known number.
    pub(crate) fn constant(constant: u64) -> Self {
        Self {
            terms: Vec::new(),
            constant,
        }
    }

    /// An atom alone.
    pub(crate) fn atom(atom: Atom) -> Self {
        Self {
            terms: vec![(atom, 1)],
            constant: 0,
        }
    }

    /// A register's content.
    pub(crate) fn register(number: u8) -> Self {
        Self::atom(Atom::Register(number))
    }

    /// The number, if it is known.
    pub(crate) fn as_constant(&self) -> Option<u64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The atom, if it is nothing but that.
    pub(crate) fn as_atom(&self) -> Option<&Atom> {
        match &self.terms[..] {
            [(atom, 1)] if self.constant == 0 => Some(atom),
            _ => None,
        }
    }

    /// Without its constant.
    pub(crate) fn without_constant(&self) -> Self {
        Self {
            terms: self.terms.clone(),
            constant: 0,
        }
    }

    /// `self + factor * other`.
    pub(crate) fn plus(mut self, other: &Self, factor: u64) -> Self {
        self.add(other, factor);
        self
    }

    fn add(&mut self, other: &Self, factor: u64) {
        self.constant = self
            .constant
            .wrapping_add(other.constant.wrapping_mul(factor));
        for (atom, times) in &other.terms {
            self.add_term(atom, times.wrapping_mul(factor));
        }
    }

    /// `self + number`.
    pub(crate) fn plus_constant(mut self, number: u64) -> Self {
        self.constant = self.constant.wrapping_add(number);
        self
    }

    /// `self * factor`.
    pub(crate) fn times(&self, factor: u64) -> Self {
        Self::default().plus(self, factor)
    }

    fn add_term(&mut self, atom: &Atom, factor: u64) {
        if factor == 0 {
            return;
        }
        match self.terms.binary_search_by(|(other, _)| other.cmp(atom)) {
            Ok(at) => {
                self.terms[at].1 = self.terms[at].1.wrapping_add(factor);
                if self.terms[at].1 == 0 {
                    self.terms.remove(at);
                }
            }
            Err(at) => self.terms.insert(at, (atom.clone(), factor)),
        }
    }

    /// The low `bits` bits, zero-extended.
    pub(crate) fn zero_extended(&self, bits: u8) -> Self {
        if bits >= 64 {
            return self.clone();
        }
        let low = self.modulo(bits);
        match low.as_constant() {
            Some(number) => Self::constant(number),
            None if low.as_atom().is_some_and(|atom| atom.width() <= bits) => low,
            None => Self::atom(Atom::Zero(bits, low)),
        }
    }

    /// The low `bits` bits, sign-extended.
    pub(crate) fn sign_extended(&self, bits: u8) -> Self {
        if bits >= 64 {
            return self.clone();
        }
        let low = self.modulo(bits);
        match low.as_constant() {
            Some(number) => Self::constant(sign_extend(number, bits)),
            None if low.as_atom().is_some_and(|atom| atom.width() < bits) => low,
            None => Self::atom(Atom::Sign(bits, low)),
        }
    }

    /// A form that is equal modulo 2^bits and as simple as possible.
    fn modulo(&self, bits: u8) -> Self {
        let mask = low_mask(bits);
        let mut low = Self::constant(self.constant & mask);
        for (atom, factor) in &self.terms {
            match atom {
                // What the inner extension does to higher bits does not matter down here.
                Atom::Zero(inner, value) | Atom::Sign(inner, value) if *inner >= bits => {
                    low = low.plus(&value.modulo(bits), factor & mask);
                }
                _ => low.add_term(atom, factor & mask),
            }
        }
        low.constant &= mask;
        low.terms.retain_mut(|(_, factor)| {
            *factor &= mask;
            *factor != 0
        });
        low
    }

    /// Masked with `mask`.
    pub(crate) fn masked(&self, mask: u64) -> Self {
        match self.as_constant() {
            Some(number) => Self::constant(number & mask),
            None if mask == u64::MAX => self.clone(),
            None if mask == 0 => Self::constant(0),
            None if (mask + 1).is_power_of_two() => {
                self.zero_extended(u8::try_from(mask.trailing_ones()).unwrap_or(64))
            }
            None => Self::atom(Atom::And(self.clone(), mask)),
        }
    }

    /// Shifted right by `count`, zeros coming in.
    pub(crate) fn shifted_right(&self, count: u8) -> Self {
        match self.as_constant() {
            Some(number) => Self::constant(number >> count),
            None if count == 0 => self.clone(),
            None => Self::atom(Atom::Shift(self.clone(), count)),
        }
    }

    /// The value with every atom replaced by what `replace` says of it, from the inside out;
    /// `None` from it keeps an atom. `None` if that changes nothing.
    pub(crate) fn map(&self, replace: &mut dyn FnMut(&Atom) -> Option<Linear>) -> Option<Self> {
        let mut result: Option<Self> = None;
        for (index, (atom, factor)) in self.terms.iter().enumerate() {
            match (atom.map(replace), &mut result) {
                (None, None) => {}
                (None, Some(result)) => result.add_term(atom, *factor),
                (Some(new), Some(result)) => result.add(&new, *factor),
                (Some(new), None) => {
                    let mut first = Self {
                        terms: self.terms[..index].to_vec(),
                        constant: self.constant,
                    };
                    first.add(&new, *factor);
                    result = Some(first);
                }
            }
        }
        result
    }

    /// Whether `test` holds of any atom in it, however deep.
    pub(crate) fn any(&self, test: &mut dyn FnMut(&Atom) -> bool) -> bool {
        self.terms
            .iter()
            .any(|(atom, _)| test(atom) || atom.inner().is_some_and(|inner| inner.any(test)))
    }

    /// Whether it has grown beyond use.
    pub(crate) fn is_too_large(&self) -> bool {
        let mut atoms = 0;
        self.any(&mut |_| {
            atoms += 1;
            atoms > LARGEST
        })
    }
}

impl Atom {
    /// How many low bits can be set.
    pub(crate) fn width(&self) -> u8 {
        match self {
            Self::Load { size, .. } => size.saturating_mul(8),
            Self::Zero(bits, _) => *bits,
            Self::And(_, mask) => u8::try_from(64 - mask.leading_zeros()).unwrap_or(64),
            Self::Shift(value, count) => {
                let width = value.as_atom().map_or(64, Atom::width);
                width.saturating_sub(*count)
            }
            Self::Register(_) | Self::Sign(..) | Self::Index | Self::Opaque(_) => 64,
        }
    }

    /// The value inside, if any.
    pub(crate) fn inner(&self) -> Option<&Linear> {
        match self {
            Self::Load { address: inner, .. }
            | Self::Zero(_, inner)
            | Self::Sign(_, inner)
            | Self::And(inner, _)
            | Self::Shift(inner, _) => Some(inner),
            Self::Register(_) | Self::Index | Self::Opaque(_) => None,
        }
    }

    fn map(&self, replace: &mut dyn FnMut(&Atom) -> Option<Linear>) -> Option<Linear> {
        let Some(new) = self.inner().and_then(|inner| inner.map(replace)) else {
            return replace(self);
        };
        let new = match self {
            Self::Load { size, stale, .. } => Linear::atom(Self::Load {
                address: new,
                size: *size,
                stale: *stale,
            }),
            Self::Zero(bits, _) => new.zero_extended(*bits),
            Self::Sign(bits, _) => new.sign_extended(*bits),
            Self::And(_, mask) => new.masked(*mask),
            Self::Shift(_, count) => new.shifted_right(*count),
            Self::Register(_) | Self::Index | Self::Opaque(_) => new,
        };
        let again = new.as_atom().and_then(replace);
        Some(again.unwrap_or(new))
    }
}

/// The mask of the low `bits` bits.
pub(crate) fn low_mask(bits: u8) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

/// The low `bits` bits of `number`, sign-extended.
pub(crate) fn sign_extend(number: u64, bits: u8) -> u64 {
    if bits >= 64 {
        return number;
    }
    let low = number & low_mask(bits);
    if low >> (bits - 1) & 1 == 1 {
        low | !low_mask(bits)
    } else {
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(number: u8) -> Linear {
        Linear::register(number)
    }

    #[test]
    fn nested_extensions_collapse() {
        let narrow = register(7).zero_extended(32);
        assert_eq!(narrow.zero_extended(32), narrow);
        assert_eq!(narrow.zero_extended(8), register(7).zero_extended(8));
        let biased = narrow.clone().plus_constant(5_u64.wrapping_neg());
        assert_eq!(
            biased.zero_extended(32),
            register(7)
                .plus_constant(5_u64.wrapping_neg())
                .zero_extended(32)
        );
        assert_eq!(narrow.sign_extended(64), narrow);
        assert_eq!(
            register(0).zero_extended(8).sign_extended(32),
            register(0).zero_extended(8)
        );
    }

    #[test]
    fn a_partial_write_leaves_the_low_bits_known() {
        // al := dl, seen as rax = 256 * unknown + zero8(rdx)
        let written = Linear::atom(Atom::Opaque(1))
            .times(256)
            .plus(&register(2).zero_extended(8), 1);
        assert_eq!(written.zero_extended(8), register(2).zero_extended(8));
    }

    #[test]
    fn terms_cancel() {
        let sum = register(1)
            .plus(&register(2), 4)
            .plus(&register(1), u64::MAX);
        assert_eq!(sum, register(2).times(4));
        assert_eq!(
            sum.plus(&register(2), 4_u64.wrapping_neg()).as_constant(),
            Some(0)
        );
    }

    #[test]
    fn replacing_reaches_inner_values() {
        let load = Linear::atom(Atom::Load {
            address: register(1).plus(&register(0), 8),
            size: 8,
            stale: false,
        });
        let replaced =
            load.map(&mut |atom| (*atom == Atom::Register(1)).then(|| Linear::constant(0x4000)));
        let expected = Linear::constant(0x4000).plus(&register(0), 8);
        assert_eq!(
            replaced.unwrap(),
            Linear::atom(Atom::Load {
                address: expected,
                size: 8,
                stale: false
            })
        );
    }
}
