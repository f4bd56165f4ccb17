//! cubin bytes -> resources and SASS.
