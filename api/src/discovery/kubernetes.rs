//! Workers behind a Kubernetes Service, as its EndpointSlices say. The slices are listed once and
//! then watched, so that a new pod is known as soon as the cluster knows it is ready.
//!
//! A pod that terminates and still serves stays listed: it drains, and says so itself. One that
//! leaves the slices while it drains keeps its control stream.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv6Addr, SocketAddr};

use core_workcoord::id::Endpoint;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use k8s_openapi::api::discovery::v1::{Endpoint as SliceEndpoint, EndpointSlice};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};

use super::{PortChoice, Source, SourceError, endpoint};

/// The label by which the slices of a Service are known.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

type Watch = BoxStream<'static, Result<Event<EndpointSlice>, watcher::Error>>;

/// The ready endpoints of one Service.
pub struct SliceSource {
    namespace: String,
    service: String,
    port: PortChoice,
    client: Option<Client>,
    watch: Option<Watch>,
    /// Slices by name, as far as the watch told.
    slices: BTreeMap<String, EndpointSlice>,
    /// Those of a list that is not complete yet.
    arriving: BTreeMap<String, EndpointSlice>,
}

impl SliceSource {
    /// The endpoints of a Service of the cluster that this process runs in, or that the user's
    /// kubeconfig names.
    pub fn new(namespace: &str, service: &str, port: PortChoice) -> Self {
        Self {
            namespace: namespace.to_owned(),
            service: service.to_owned(),
            port,
            client: None,
            watch: None,
            slices: BTreeMap::new(),
            arriving: BTreeMap::new(),
        }
    }

    /// The same, of the cluster that a client speaks to.
    pub fn with_client(self, client: Client) -> Self {
        Self { client: Some(client), ..self }
    }

    async fn open(&mut self) -> Result<Watch, SourceError> {
        let client = match &self.client {
            Some(client) => client.clone(),
            None => Client::try_default().await.map_err(remote)?,
        };
        let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), &self.namespace);
        self.client = Some(client);
        let wanted =
            watcher::Config::default().labels(&format!("{SERVICE_LABEL}={}", self.service));
        Ok(watcher(slices, wanted).boxed())
    }

    /// The workers that the slices name.
    fn endpoints(&self) -> Result<BTreeSet<Endpoint>, SourceError> {
        let mut found = BTreeSet::new();
        let mut pods = BTreeSet::new();
        let mut without_port = false;
        // With two families of addresses every pod is in two slices, and is one worker all the same.
        let mut slices: Vec<&EndpointSlice> = self.slices.values().collect();
        slices.sort_by_key(|slice| slice.address_type != "IPv4");
        for slice in slices {
            let listed = slice.endpoints.iter().flatten().filter(|listed| is_usable(listed));
            for listed in listed {
                let Some(port) = port_of(slice, &self.port) else {
                    without_port = true;
                    continue;
                };
                let Some(address) = listed.addresses.first() else { continue };
                let pod = listed.target_ref.as_ref().and_then(|target| target.uid.as_ref());
                if pod.is_none_or(|pod| pods.insert(pod)) {
                    found.insert(endpoint(&host_and_port(address, port))?);
                }
            }
        }
        if found.is_empty() && without_port {
            let message = format!("service {} has no port {}", self.service, self.port);
            return Err(SourceError::Remote(message.into()));
        }
        Ok(found)
    }
}

impl Source for SliceSource {
    async fn next(&mut self) -> Result<BTreeSet<Endpoint>, SourceError> {
        let mut watch = match self.watch.take() {
            Some(watch) => watch,
            None => self.open().await?,
        };
        // Kept while it can go on; after an error it starts over with a list.
        let outcome = loop {
            match watch.next().await {
                Some(Ok(Event::Init)) => self.arriving.clear(),
                Some(Ok(Event::InitApply(slice))) => {
                    self.arriving.insert(slice.name_any(), slice);
                }
                Some(Ok(Event::InitDone)) => {
                    self.slices = std::mem::take(&mut self.arriving);
                    break Ok(());
                }
                Some(Ok(Event::Apply(slice))) => {
                    self.slices.insert(slice.name_any(), slice);
                    break Ok(());
                }
                Some(Ok(Event::Delete(slice))) => {
                    self.slices.remove(&slice.name_any());
                    break Ok(());
                }
                Some(Err(error)) => break Err(remote(error)),
                None => return Err(remote(io::Error::from(io::ErrorKind::UnexpectedEof))),
            }
        };
        self.watch = Some(watch);
        outcome.and_then(|()| self.endpoints())
    }
}

/// Ready, or on its way out and still at its work. What is not said counts as Kubernetes says.
fn is_usable(listed: &SliceEndpoint) -> bool {
    let Some(conditions) = &listed.conditions else { return true };
    let is_serving = conditions.serving.unwrap_or(true);
    conditions.ready.unwrap_or(true) || (conditions.terminating.unwrap_or(false) && is_serving)
}

fn port_of(slice: &EndpointSlice, choice: &PortChoice) -> Option<u16> {
    match choice {
        PortChoice::Number(number) => Some(*number),
        PortChoice::Named(name) => {
            let mut ports = slice.ports.iter().flatten();
            let named = ports.find(|port| port.name.as_deref() == Some(name))?;
            u16::try_from(named.port?).ok()
        }
    }
}

fn host_and_port(address: &str, port: u16) -> String {
    match address.parse::<Ipv6Addr>() {
        Ok(address) => SocketAddr::from((address, port)).to_string(),
        Err(_) => format!("{address}:{port}"),
    }
}

fn remote(error: impl std::error::Error + Send + Sync + 'static) -> SourceError {
    SourceError::Remote(Box::new(error))
}
