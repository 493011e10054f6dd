//! Large tables, apart from what is small: each page that a start touches costs it a fault, so what every start touches
//! is to lie close together, and not in the gaps between tables that hardly any touches.

/// Defines statics that are all zeros at first, in a section of their own, which linkers put with those of other zeros as a
/// whole.
macro_rules! tables {
    ($($(#[$attribute:meta])* static $name:ident: $type:ty = $zeros:expr;)*) => {$(
        $(#[$attribute])*
        // SAFETY: memory that is zeros at first, like that of any other static; compilers refuse anything else under this
        // name.
        #[cfg_attr(feature = "carried", unsafe(link_section = ".bss.tables"))]
        static $name: $type = $zeros;
    )*};
}

pub(crate) use tables;
