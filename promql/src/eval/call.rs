//! Functions of vectors and scalars.
