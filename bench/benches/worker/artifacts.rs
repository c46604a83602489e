//! Artifacts in megabytes a second: encoded beside a plain Parquet writer with the same columns,
//! and served beside a bare axum route that gives the same file.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use core_workcoord::id::SessionId;
use core_workcoord::moment::Moment;
use parquet::basic::Compression;
use parquet::data_type::{DoubleType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tributary_artifact_store::{DiskConfig, Facts, ReuseKey, WorkerDisk};
use tributary_catalog::Store;
use tributary_integration::worker_suite::api::Api;
use tributary_integration::worker_suite::field::Field;
use tributary_integration::worker_suite::http::head;
use tributary_leafwork::artifact;
use tributary_promql::leaf::PartTable;

use super::stage::Stage;

pub(super) fn compare(runtime: &Runtime, field: &Field, span: Duration) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = runtime.block_on(serve(field, folder.path(), span));
    encode(runtime, (&file, &field.large().spec(0)), folder.path(), span);
}

/// How fast a large artifact is served, and its bytes.
async fn serve(field: &Field, folder: &Path, span: Duration) -> Bytes {
    let stage = Stage::with_leaves(field, &folder.join("disk"));
    let mut api = Api::greeted(stage.worker().grpc(), "api-1", 1).await;
    let begun = Instant::now();
    api.start(0, field.large().spec(0)).await;
    let large = api.ready(0).await;
    let took = begun.elapsed();
    let size_bytes = large.size_bytes;
    println!(
        "an artifact of {} rows and {size_bytes} bytes: {took:.1?} from AssignWork to WorkReady",
        large.row_count
    );
    let file = api.fetch(&large).await.expect("it is served");
    let (_, path) = large.url.split_once("/artifacts/").expect("it is one");
    let path = format!("/artifacts/{path}");
    let bearer = format!("Authorization: Bearer {}", api.token());
    let copy = folder.join("copy");
    std::fs::write(&copy, &file).expect("the folder takes it");
    let bare = bare_route(copy).await;
    for (what, address, path, lines) in [
        ("served by a bare axum route that reads the file", bare, "/file", vec![]),
        ("served by the worker", stage.worker().http(), &*path, vec![&*bearer]),
    ] {
        let rate = fetch_rate(address, path, &lines, size_bytes, span).await;
        println!("{what}: {rate:.0} MB/s");
    }
    file
}

/// How fast a table becomes a file.
fn encode(runtime: &Runtime, (file, spec): (&Bytes, &[u8]), folder: &Path, span: Duration) {
    let table = artifact::read(file.clone(), spec, u64::MAX).expect("it is an artifact");
    let size_bytes = file.len() as u64;
    let tell = |what: &str, size_bytes: u64, rate: f64| {
        let rows = rate / megabytes(size_bytes) * megabytes(table.len() as u64);
        println!("{what}: {rate:.0} MB/s, {rows:.0} million rows/s");
    };
    let plain_bytes = write_plain(&table, io::sink());
    let plain = rate(span, || write_plain(&table, io::sink()));
    tell("a plain Parquet writer with ts, series and value", plain_bytes, plain);
    let memory = rate(span, || {
        artifact::write(&table, spec, io::sink()).expect("nothing refuses it");
        size_bytes
    });
    tell("encoded as an artifact", size_bytes, memory);
    let config = DiskConfig { folder: folder.join("spool"), ..DiskConfig::default() };
    let (disk, _lost) = WorkerDisk::open(&config, Store::in_memory()).expect("the folder is ours");
    let mut key = 0_u8;
    let spooled = rate(span, || {
        key = key.wrapping_add(1);
        let turn = runtime.block_on(disk.spool().turn(ReuseKey([key; 32])));
        let mut writer = turn.begin().expect("there is room");
        artifact::write(&table, spec, &mut writer).expect("the disk takes it");
        let facts = Facts { row_count: 0, min_ts: 0, max_ts: 0, parquet_schema_version: 1 };
        let spooled = writer.commit(SessionId(1), facts, Moment::ZERO).expect("it is committed");
        disk.spool().release(spooled.id);
        size_bytes
    });
    tell("encoded, hashed and committed to disk", size_bytes, spooled);
}

/// The columns that carry something, as a Parquet writer puts them out by itself.
fn write_plain(table: &PartTable, mut out: impl Write + Send) -> u64 {
    let schema = "message m { required int64 ts; required int32 series; required double value; }";
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let properties = WriterProperties::builder().set_compression(Compression::UNCOMPRESSED);
    let properties = properties.set_dictionary_enabled(false).build();
    let mut writer = SerializedFileWriter::new(&mut out, schema, Arc::new(properties));
    let writer = writer.as_mut().expect("nothing refuses it");
    let mut group = writer.next_row_group().expect("nothing refuses it");
    #[expect(clippy::cast_possible_wrap, reason = "the bits of an unsigned number")]
    let numbers: Vec<i32> = table.series_of.iter().map(|series| *series as i32).collect();
    for number in 0..3 {
        let column = group.next_column().expect("nothing refuses it");
        let mut column = column.expect("there are three");
        let written = match number {
            0 => column.typed::<Int64Type>().write_batch(&table.ts, None, None),
            1 => column.typed::<Int32Type>().write_batch(&numbers, None, None),
            _ => column.typed::<DoubleType>().write_batch(&table.value, None, None),
        };
        written.expect("nothing refuses it");
        column.close().expect("nothing refuses it");
    }
    group.close().expect("nothing refuses it");
    writer.finish().expect("nothing refuses it");
    writer.bytes_written() as u64
}

/// Megabytes a second of something that gives how many bytes it made.
fn rate(span: Duration, mut make: impl FnMut() -> u64) -> f64 {
    let begun = Instant::now();
    let mut bytes = make();
    while begun.elapsed() < span {
        bytes += make();
    }
    megabytes(bytes) / begun.elapsed().as_secs_f64()
}

fn megabytes(bytes: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let bytes = bytes as f64;
    bytes / 1e6
}

async fn bare_route(file: PathBuf) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    listener.set_nonblocking(true).expect("a socket can do that");
    // As many threads as the worker's HTTP port has.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.expect("a runtime can be made").block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("it is bound");
            let give = || async move { tokio::fs::read(file).await.expect("it is there") };
            let routes = Router::new().route("/file", get(give));
            axum::serve(listener, routes).await.expect("it serves for ever");
        });
    });
    address
}

/// Fetches again and again over one connection, and throws away what comes.
async fn fetch_rate(
    address: SocketAddr,
    path: &str,
    lines: &[&str],
    size_bytes: u64,
    span: Duration,
) -> f64 {
    let mut stream = TcpStream::connect(address).await.expect("the port is open");
    let request = head(address, "GET", path, lines, "keep-alive");
    let mut buffer = vec![0; 256 << 10];
    let begun = Instant::now();
    let mut bytes = 0;
    while begun.elapsed() < span || bytes == 0 {
        stream.write_all(request.as_bytes()).await.expect("it is taken");
        let mut left = None;
        let mut seen = Vec::new();
        while left != Some(0) {
            let read = stream.read(&mut buffer).await.expect("it answers");
            assert!(read > 0, "it does not end in the middle");
            let Some(rest) = left else {
                seen.extend_from_slice(&buffer[..read]);
                if let Some(end) = seen.windows(4).position(|four| four == b"\r\n\r\n") {
                    assert!(seen.starts_with(b"HTTP/1.1 200"), "it is served");
                    left = Some(size_bytes - (seen.len() - end - 4) as u64);
                }
                continue;
            };
            left = Some(rest - read as u64);
        }
        bytes += size_bytes;
    }
    megabytes(bytes) / begun.elapsed().as_secs_f64()
}
