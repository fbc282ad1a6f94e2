//! Tests of the encoders together.
