//! The language as its users meet it: texts accepted and refused, trees that survive printing,
//! hostile texts, and other people's opinion of the same texts. One program, so that it links once.

mod cases;
mod corpus;
mod duration;
mod grammar;
mod limits;
mod neighbour;
mod pattern;
mod pretty;
mod random;
mod series;
mod shape;
mod support;
