//! Source text -> annotations, or diagnostics with places.
