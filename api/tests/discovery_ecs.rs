//! Discovery among the tasks of an ECS service, against a small server that answers ListTasks and
//! DescribeTasks as the API of ECS does.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_ecs::config::{BehaviorVersion, Credentials, Region};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tributary_api::discovery::ecs::TaskSource;
use tributary_api::discovery::{Change, Discovery, Figures, Pace};

/// A task: its number, its state and how it is connected.
#[derive(Clone, Copy)]
struct Job(u32, &'static str, Net);

#[derive(Clone, Copy)]
enum Net {
    /// An interface of its own.
    Attached,
    /// One that only the container knows of.
    OfContainer,
    /// None.
    Host,
}

#[derive(Default)]
struct Account {
    jobs: Vec<Job>,
    is_down: bool,
    described: Vec<usize>,
}

type Shared = Arc<Mutex<Account>>;

/// How many tasks the server lists on one page.
const PAGE: usize = 100;

fn arn(number: u32) -> String {
    format!("arn:aws:ecs:eu-central-1:1:task/main/{number}")
}

fn address(number: u32) -> String {
    format!("10.0.{}.{}", number / 250, number % 250 + 1)
}

fn described(Job(number, status, net): Job) -> Value {
    let attachments = match net {
        Net::Attached => json!([{
            "id": "1", "type": "ElasticNetworkInterface", "status": "ATTACHED",
            "details": [
                {"name": "subnetId", "value": "subnet-1"},
                {"name": "privateIPv4Address", "value": address(number)},
            ],
        }]),
        Net::OfContainer | Net::Host => json!([]),
    };
    let interfaces = match net {
        Net::OfContainer => json!([{"attachmentId": "1", "privateIpv4Address": address(number)}]),
        Net::Attached | Net::Host => json!([]),
    };
    json!({
        "taskArn": arn(number), "lastStatus": status, "desiredStatus": "RUNNING",
        "attachments": attachments,
        "containers": [{"name": "worker", "networkInterfaces": interfaces}],
    })
}

async fn answer(State(account): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let mut account = account.lock().unwrap();
    let kind = [(header::CONTENT_TYPE, "application/x-amz-json-1.1")];
    if account.is_down {
        let error = json!({"__type": "ServerException", "message": "try again"});
        return (StatusCode::INTERNAL_SERVER_ERROR, kind, error.to_string()).into_response();
    }
    let asked: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(asked["cluster"], "main");
    assert!(headers["authorization"].to_str().unwrap().contains("/eu-central-1/ecs/"));
    let answer = match headers["x-amz-target"].to_str().unwrap() {
        "AmazonEC2ContainerServiceV20141113.ListTasks" => {
            assert_eq!(
                (&asked["serviceName"], &asked["desiredStatus"]),
                (&json!("workers"), &json!("RUNNING"))
            );
            let from: usize = asked["nextToken"].as_str().map_or(0, |token| token.parse().unwrap());
            let page = account.jobs.iter().skip(from).take(PAGE).map(|job| arn(job.0));
            let mut answer = json!({"taskArns": page.collect::<Vec<_>>()});
            if from + PAGE < account.jobs.len() {
                answer["nextToken"] = json!((from + PAGE).to_string());
            }
            answer
        }
        "AmazonEC2ContainerServiceV20141113.DescribeTasks" => {
            let wanted: Vec<&str> = asked["tasks"]
                .as_array()
                .unwrap()
                .iter()
                .map(|arn| arn.as_str().unwrap())
                .collect();
            account.described.push(wanted.len());
            let known = account.jobs.iter().filter(|job| wanted.contains(&arn(job.0).as_str()));
            json!({"tasks": known.map(|job| described(*job)).collect::<Vec<_>>(), "failures": []})
        }
        other => panic!("nobody should ask for {other}"),
    };
    (kind, answer.to_string()).into_response()
}

struct Story {
    account: Shared,
    _server: JoinSet<()>,
    _discovery: Discovery,
    figures: Figures,
    changes: mpsc::Receiver<Change>,
}

impl Story {
    async fn begin(jobs: Vec<Job>) -> Self {
        let account: Shared = Arc::new(Mutex::new(Account { jobs, ..Account::default() }));
        let routes = Router::new().route("/", post(answer)).with_state(account.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let config = aws_sdk_ecs::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-central-1"))
            .credentials_provider(Credentials::new("key", "secret", None, None, "test"))
            .retry_config(aws_sdk_ecs::config::retry::RetryConfig::disabled())
            .endpoint_url(url)
            .build();
        let pace = Pace {
            ecs_interval: Duration::from_millis(20),
            retry_base: Duration::from_millis(10),
            retry_max: Duration::from_millis(50),
            ..Pace::default()
        };
        let (mut discovery, changes) = Discovery::new(pace, 3);
        let client = aws_sdk_ecs::Client::from_conf(config);
        let source = TaskSource::new("main", "workers", 9470, &pace).with_client(client);
        discovery.add("ecs:main/workers:9470", source);
        let figures = discovery.figures();
        Self { account, _server: server, _discovery: discovery, figures, changes }
    }

    /// The next changes, in the order they are told.
    async fn told(&mut self, count: usize) -> Vec<String> {
        let mut told = Vec::new();
        for _ in 0..count {
            let change = timeout(Duration::from_secs(20), self.changes.recv()).await;
            told.push(match change.expect("something is told in time").unwrap() {
                Change::Appeared(endpoint) => format!("+{endpoint}"),
                Change::Gone(endpoint) => format!("-{endpoint}"),
            });
        }
        told
    }
}

#[tokio::test]
async fn running_tasks_are_workers_and_a_failing_account_costs_none() {
    let mut story = Story::begin(vec![
        Job(1, "RUNNING", Net::Attached),
        Job(2, "PENDING", Net::Attached),
        Job(3, "RUNNING", Net::OfContainer),
        Job(4, "RUNNING", Net::Host),
    ])
    .await;
    assert_eq!(story.told(2).await, ["+10.0.0.2:9470", "+10.0.0.4:9470"]);

    story.account.lock().unwrap().is_down = true;
    while story.figures.sources()[0].failures < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(story.figures.sources()[0].endpoints, 2, "what was known is kept");
    {
        let mut account = story.account.lock().unwrap();
        account.is_down = false;
        account.jobs = vec![Job(2, "RUNNING", Net::Attached), Job(3, "RUNNING", Net::Attached)];
    }
    assert_eq!(story.told(2).await, ["+10.0.0.3:9470", "-10.0.0.2:9470"]);
}

#[tokio::test]
async fn a_large_service_is_listed_page_by_page_and_described_in_bunches() {
    let jobs = (0..230).map(|number| Job(number, "RUNNING", Net::Attached)).collect();
    let mut story = Story::begin(jobs).await;
    let told = story.told(230).await;
    assert!(told.iter().all(|change| change.starts_with('+')), "{told:?}");
    assert_eq!(story.account.lock().unwrap().described[..3], [100, 100, 30]);
}
