//! The generated types of `control.proto` and the two generated services. Private: `decode` and
//! `encode` are the only doors between these and the rest of the house.
#![allow(unreachable_pub, unused_qualifications, clippy::all, clippy::wildcard_imports)]

tonic::include_proto!("tributary.workcoord.v1");

include!(concat!(env!("OUT_DIR"), "/tributary.workcoord.v1.WorkControl.rs"));

/// Specs of work items.
pub mod work {
    tonic::include_proto!("tributary.work.v1");
}

/// KEDA's scaler protocol.
pub mod externalscaler {
    tonic::include_proto!("externalscaler");
}
