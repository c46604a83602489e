//! Stories of an API node's coordinator under virtual time: one rule of the design each, in the
//! words of the domain. After every step of every story all promises are checked, and at its end
//! nothing may be left behind (`support`).

mod support;

mod scenario {
    mod artifacts;
    mod drain;
    mod hedge;
    mod placement;
    mod queries;
    mod retry;
    mod streams;
    mod violations;
}
