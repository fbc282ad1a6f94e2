//! Which trials are run, in which order, and what they will take: pure, and lazy enough for millions.
