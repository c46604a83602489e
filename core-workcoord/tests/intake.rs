//! Stories of a worker's intake under virtual time: one rule each. What the intake wants is
//! compared in order and in full; after every step all promises are checked, and at the end of
//! every story no run, no slot and no artifact may be left behind (`support`).

mod support;

mod intake {
    mod artifacts;
    mod leaving;
    mod runs;
    mod sessions;
}
