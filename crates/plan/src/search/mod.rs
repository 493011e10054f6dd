//! Adaptive search for predicates that foretell failure.
//!
//! Source: ABI §4, Procedure 1, as a search of the interprocedural control dependence graph ([`Icdg`]):
//! watch a few sites; when the data suffice, take the best branch predicate not explored yet, and
//! watch the sites in its vicinity next. Forward (ABI §4.1) begins with what always runs and goes to
//! what depends on the best predicate. Backward (ABI §4.2) begins with the branches that decide about
//! the blocks in which runs crashed, and also goes to those that decide about the best predicate's
//! own block. Scores and the rule when data suffice are no part of the search; it takes whatever
//! chooses among candidates. [`breadth_first`], [`at_random`] and [`Oracle`] need no data.
//!
//! **Complete**: every site is watched sooner or later (ABI §4.4 has it for sites that the entry
//! reaches). What no predicate's vicinity holds, since a call was not known or the graph lacks an
//! edge, comes last, routine by routine. Where a printed step would end with an empty vicinity we go
//! on to the next best at once, and predicates with nothing in their vicinity are no candidates. ABI's
//! backward search reaches what only the entry decides about if the entry counts as an ancestor: it
//! does here, and its vicinity is the forward search's beginning.
//!
//! **Resumable**: a [`State`] is plain data and says all. **Open to a person**: [`Search::explore`]
//! chooses for the procedure, [`Search::watch`] and [`Search::put_off`] change the plan at hand, and
//! [`Search::limited`] bounds what is watched at once.
//!
//! **Surveyed**, if somebody knows in which runs routines are entered ([`Search::surveyed`], not the paper's): that is a
//! predicate of each, whose vicinity is what the routine always runs, and which may be explored from the beginning; and other vicinities
//! end where such a routine begins, since it has its turn by a score of its own. Where it is said which routines only failing runs
//! enter ([`Search::doomed`]) the vicinity of such an entry is not what is in there, but what leads there.
//!
//! A step looks at each candidate once, and at the vicinity of the one that it takes; if that holds
//! nothing new, at those of all, once for good where they hold nothing either: O(predicates) as a rule,
//! and as much as the program is large searching backward. So nobody is asked more than twice.

mod above;
mod choose;
mod doomed;
mod icdg;
mod procedure;
mod state;
mod vicinity;

pub use choose::{Oracle, at_random, breadth_first};
pub use icdg::{Icdg, IcdgError, PredicateId, Routine, SiteId, SiteKind};
pub use procedure::{Search, Step};
pub use state::{Direction, State, StateError};
