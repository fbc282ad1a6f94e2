//! The one integration binary.

mod server_container;
mod server_external;
mod server_faults;
mod server_image;
