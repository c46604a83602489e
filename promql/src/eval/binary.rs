//! Operators between two operands.
