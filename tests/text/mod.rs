//! Tests of what a person reads, as far as they need more than the phrases themselves.

mod fonts;
