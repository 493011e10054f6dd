//! The words for what a function graph consists of: stable names for machines (kebab case, part
//! of the `tomo.function/1` and `tomo.map/1` formats) and sentences for people; and back from the
//! byte that the model file keeps.

use zerocopy::TryFromBytes as _;

use crate::{EdgeKind, Reason, Resolution, Status};

impl EdgeKind {
    /// Its name in machine-readable output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fallthrough => "fallthrough",
            Self::Taken => "taken",
            Self::NotTaken => "not-taken",
            Self::Jump => "jump",
            Self::JumpTable => "jump-table",
            Self::ComputedGoto => "computed-goto",
            Self::CallFallthrough => "call-fallthrough",
            Self::LandingPad => "landing-pad",
            Self::TailCall => "tail-call",
            Self::JumpInto => "jump-into",
        }
    }

    /// The kind with this number, if there is one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::try_read_from_bytes(&[code]).ok()
    }
}

impl Reason {
    /// Its name in machine-readable output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UnresolvedIndirectJump => "unresolved-indirect-jump",
            Self::InvalidInstruction => "invalid-instruction",
            Self::OverlappingInstructions => "overlapping-instructions",
            Self::RunsOffTheEnd => "runs-off-the-end",
            Self::EnteredInsideInstruction => "entered-inside-instruction",
            Self::BrokenExceptionTable => "broken-exception-table",
            Self::UnusualControlTransfer => "unusual-control-transfer",
            Self::UnreachedBytes => "unreached-bytes",
            Self::JumpOutsideText => "jump-outside-text",
            Self::NoBytes => "no-bytes",
            Self::Foreign => "foreign",
            Self::Restartable => "restartable-sequence",
            Self::MaybeData => "maybe-data",
            Self::HeldLabel => "held-label",
            Self::Template => "template",
            Self::OrphanedPart => "orphaned-part",
        }
    }

    /// The same for people.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::UnresolvedIndirectJump => "the targets of an indirect jump could not be proven",
            Self::InvalidInstruction => "bytes that are no instruction are reached",
            Self::OverlappingInstructions => "two ways of decoding its bytes overlap",
            Self::RunsOffTheEnd => "control runs over the end of its bytes",
            Self::EnteredInsideInstruction => "something jumps into the middle of an instruction",
            Self::BrokenExceptionTable => "its exception table could not be read",
            Self::UnusualControlTransfer => "it transfers control in an unusual way",
            Self::UnreachedBytes => "nothing known reaches some of its bytes",
            Self::JumpOutsideText => "a jump leads out of the program's code",
            Self::NoBytes => "it has no bytes in any executable section",
            Self::Foreign => "a compiler of another kind wrote it, and may enter it anywhere",
            Self::Restartable => "the kernel may have a sequence in it begin anew",
            Self::MaybeData => "nothing but an address leads there, so it may be data",
            Self::Template => "it is made to be copied, and runs elsewhere",
            Self::HeldLabel => "something unknown may jump to an address inside of it",
            Self::OrphanedPart => "it is not known whose part some code is, here or where it leads",
        }
    }

    /// The reason with this number, if there is one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::try_read_from_bytes(&[code]).ok()
    }
}

impl Resolution {
    /// Whether the jump may go where no edge of the function does, though edges of it may be all that is known.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Labels | Self::Unresolved)
    }

    /// Its name in machine-readable output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::GuardedTable => "guarded-table",
            Self::MeasuredTable => "measured-table",
            Self::Labels => "labels",
            Self::TailCall => "tail-call",
            Self::Unresolved => "unresolved",
        }
    }

    /// The resolution with this number, if there is one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::try_read_from_bytes(&[code]).ok()
    }
}

impl Status {
    /// Its name in machine-readable output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Partial(_) => "partial",
            Self::Opaque(_) => "opaque",
        }
    }

    /// Why it is not exact.
    #[must_use]
    pub fn reason(self) -> Option<Reason> {
        match self {
            Self::Exact => None,
            Self::Partial(reason) | Self::Opaque(reason) => Some(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every code is read back as what it stands for, and no two share a name.
    #[test]
    fn codes_and_names_are_one_to_one() {
        let kinds: Vec<_> = (0..=u8::MAX).filter_map(EdgeKind::from_code).collect();
        assert!(
            kinds
                .iter()
                .all(|kind| EdgeKind::from_code(*kind as u8) == Some(*kind))
        );
        assert_eq!(
            kinds.len(),
            kinds
                .iter()
                .map(|k| k.name())
                .collect::<BTreeSet<_>>()
                .len()
        );
        assert_eq!(kinds.len(), 10);
        let reasons: Vec<_> = (0..=u8::MAX).filter_map(Reason::from_code).collect();
        assert!(
            reasons
                .iter()
                .all(|reason| Reason::from_code(*reason as u8) == Some(*reason))
        );
        assert_eq!(
            reasons.len(),
            reasons
                .iter()
                .map(|r| r.name())
                .collect::<BTreeSet<_>>()
                .len()
        );
        assert!(Reason::from_code(0).is_none(), "0 is kept for exact");
        assert_eq!(Resolution::from_code(5), Some(Resolution::Unresolved));
        assert!(Resolution::from_code(0).is_none());
    }
}
