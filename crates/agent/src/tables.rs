//! Large tables, apart from what is small: each page that a start touches costs it a fault, so what every start touches
//! is to lie close together, and not in the gaps between tables that hardly any touches.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::slice;
use core::sync::atomic::{AtomicUsize, Ordering};

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

/// A table that only grows, with room for so many elements, read without locks. All zeros it is empty.
#[repr(C)]
pub(crate) struct Grown<T, const MOST: usize> {
    /// In front of the elements, with the first of which it is touched.
    count: AtomicUsize,
    elements: UnsafeCell<[MaybeUninit<T>; MOST]>,
}

// SAFETY: an element is written once, before the count that covers it is published; after that it is only read.
unsafe impl<T: Sync, const MOST: usize> Sync for Grown<T, MOST> {}

impl<T, const MOST: usize> Grown<T, MOST> {
    pub(crate) const fn new() -> Self {
        Self {
            count: AtomicUsize::new(0),
            elements: UnsafeCell::new([const { MaybeUninit::uninit() }; MOST]),
        }
    }

    /// How many elements there are: the number of the one that is added next.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether `more` elements fit.
    pub(crate) fn has_room(&self, more: usize) -> bool {
        self.count() + more <= MOST
    }

    /// Adds an element, from now on seen by readers, if there is room.
    ///
    /// # Safety
    /// Nobody else adds one at the same time.
    pub(crate) unsafe fn add(&self, element: T) {
        let count = self.count();
        if count < MOST {
            let first: *mut MaybeUninit<T> = self.elements.get().cast();
            // SAFETY: inside the table, and not yet covered by the count, so that nobody reads it.
            unsafe { first.add(count).write(MaybeUninit::new(element)) };
            self.count.store(count + 1, Ordering::Release);
        }
    }

    /// All elements that were added so far.
    pub(crate) fn all(&self) -> &[T] {
        let count = self.count.load(Ordering::Acquire);
        // SAFETY: the first `count` elements were written before the count was, and never again.
        unsafe { slice::from_raw_parts(self.elements.get().cast(), count) }
    }
}
