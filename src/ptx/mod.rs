//! PTX as text: its entries, their parameters and performance directives, and their instructions by line.
