//! Turns the `.proto` files into Rust, without an installed `protoc`. What the types mean is
//! left to `decode` and `encode`.

use std::error::Error;

use tonic_prost_build::{FileDescriptorSet, configure, manual};

const CONTROL: &str = "control.proto";
const SCALER: &str = "externalscaler.proto";
const SPEC: &str = "spec.proto";

fn main() -> Result<(), Box<dyn Error>> {
    for file in [CONTROL, SCALER, SPEC] {
        println!("cargo:rerun-if-changed={file}");
    }
    let control = protox::compile([CONTROL], ["."])?;
    byte_services(&control);
    configure()
        .build_client(false)
        .build_server(false)
        .bytes(".tributary.workcoord.v1.AssignWork.spec")
        .compile_fds(control)?;
    configure()
        .btree_map(".externalscaler.ScaledObjectRef")
        .compile_fds(protox::compile([SCALER], ["."])?)?;
    configure().compile_fds(protox::compile([SPEC], ["."])?)?;
    Ok(())
}

/// The control service carries bytes, so that bytes which are no message are refused by `decode`,
/// as a value with a name, and not by the transport, as one status among many.
fn byte_services(descriptors: &FileDescriptorSet) {
    for file in &descriptors.file {
        for service in &file.service {
            let mut built = manual::Service::builder().name(service.name()).package(file.package());
            for method in &service.method {
                let rust_name = method.name().to_lowercase();
                let mut route = manual::Method::builder()
                    .name(rust_name)
                    .route_name(method.name())
                    .input_type("bytes::Bytes")
                    .output_type("bytes::Bytes")
                    .codec_path("crate::codec::BytesCodec");
                if method.client_streaming() {
                    route = route.client_streaming();
                }
                if method.server_streaming() {
                    route = route.server_streaming();
                }
                built = built.method(route.build());
            }
            manual::Builder::new().compile(&[built.build()]);
        }
    }
}
