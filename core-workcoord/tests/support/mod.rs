//! What the stories are told with: names and builders (`words`), an API node's world (`scenario`,
//! `verbs`, `expect`) and a worker's world (`workshop`), both under virtual time. The stories
//! themselves are elsewhere.

#![allow(dead_code, reason = "every test program tells its stories with a part of this")]

mod expect;
pub mod scenario;
pub mod verbs;
pub mod words;
pub mod workshop;
