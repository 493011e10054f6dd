//! Flow graphs and their classic analyses.
