//! The one integration binary.

mod server_container;
