//! Where workers are found, as people write it: `static:a:9470,b:9470`, `dns:workers.local:9470`,
//! `kubernetes:namespace/service:port`, `ecs:cluster/service:port`.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use core_workcoord::id::{BadId, Endpoint};
use serde::{Deserialize, Serialize};

/// Where workers are found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Place {
    /// At these addresses.
    Fixed(Vec<Endpoint>),
    /// At every address of a name.
    Dns {
        /// The name.
        host: String,
        /// The port of the workers.
        port: u16,
    },
    /// Behind a Service, by its EndpointSlices.
    Kubernetes {
        /// The Service's namespace.
        namespace: String,
        /// Its name.
        service: String,
        /// Which of the workers' ports.
        port: PortChoice,
    },
    /// Among the tasks of an ECS service.
    Ecs {
        /// The cluster's name.
        cluster: String,
        /// The service's name.
        service: String,
        /// The port of the workers.
        port: u16,
    },
}

/// A port of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortChoice {
    /// By its number.
    Number(u16),
    /// By the name that the Service gives it.
    Named(String),
}

/// The text says no place where workers could be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPlace {
    /// Its first word is none of ours.
    #[error(
        "{text:?} is no discovery; write static:HOST:PORT,…, dns:HOST:PORT, \
         kubernetes:NAMESPACE/SERVICE:PORT or ecs:CLUSTER/SERVICE:PORT"
    )]
    Kind {
        /// What was written.
        text: String,
    },
    /// A part of it is missing or misspelt.
    #[error("{text:?} has no valid {part}; the form is {form}")]
    Part {
        /// What was written.
        text: String,
        /// Which part.
        part: &'static str,
        /// How it should be written.
        form: &'static str,
    },
    /// An address is none.
    #[error("{text:?} is no address of a worker: {source}")]
    Address {
        /// What was written.
        text: String,
        /// What is wrong with it.
        source: BadId,
    },
}

const FIXED_FORM: &str = "static:HOST:PORT,HOST:PORT,…";
const DNS_FORM: &str = "dns:HOST:PORT";
const KUBERNETES_FORM: &str = "kubernetes:NAMESPACE/SERVICE:PORT, the port a number or a name";
const ECS_FORM: &str = "ecs:CLUSTER/SERVICE:PORT";

/// Wrong parts of one text in one form.
struct Form<'a> {
    text: &'a str,
    form: &'static str,
}

impl Form<'_> {
    fn bad(&self, part: &'static str) -> BadPlace {
        BadPlace::Part { text: self.text.to_owned(), part, form: self.form }
    }

    fn port(&self, text: &str) -> Result<u16, BadPlace> {
        // `+1` and `01` are numbers to the standard library, and typing errors to us.
        let plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
        let port = plain.then(|| text.parse::<NonZeroU16>().ok()).flatten();
        port.map(NonZeroU16::get).ok_or_else(|| self.bad("port"))
    }

    fn name(&self, part: &'static str, text: &str, more: &str) -> Result<String, BadPlace> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
        let fits = !text.is_empty() && text.len() <= 253 && text.chars().all(allowed);
        if fits { Ok(text.to_owned()) } else { Err(self.bad(part)) }
    }

    /// Whatever comes before a slash, between it and the last colon, and after that.
    fn three<'t>(
        &self,
        rest: &'t str,
        first: &'static str,
    ) -> Result<(&'t str, &'t str, &'t str), BadPlace> {
        let (before, rest) = rest.split_once('/').ok_or_else(|| self.bad(first))?;
        let (between, after) = rest.rsplit_once(':').ok_or_else(|| self.bad("port"))?;
        Ok((before, between, after))
    }
}

impl FromStr for Place {
    type Err = BadPlace;

    fn from_str(text: &str) -> Result<Self, BadPlace> {
        let kind = || BadPlace::Kind { text: text.to_owned() };
        let (word, rest) = text.split_once(':').ok_or_else(kind)?;
        match word {
            "static" => fixed(rest),
            "dns" => {
                let form = Form { text, form: DNS_FORM };
                let (host, port) = rest.rsplit_once(':').ok_or_else(|| form.bad("port"))?;
                Ok(Self::Dns { host: form.name("host", host, ".-_")?, port: form.port(port)? })
            }
            "kubernetes" => {
                let form = Form { text, form: KUBERNETES_FORM };
                let (namespace, service, port) = form.three(rest, "namespace")?;
                let port = match form.port(port) {
                    Ok(number) => PortChoice::Number(number),
                    Err(bad) if port.bytes().all(|b| b.is_ascii_digit()) => return Err(bad),
                    Err(_) => PortChoice::Named(form.name("port", port, "-")?),
                };
                Ok(Self::Kubernetes {
                    namespace: form.name("namespace", namespace, "-")?,
                    service: form.name("service", service, "-.")?,
                    port,
                })
            }
            "ecs" => {
                let form = Form { text, form: ECS_FORM };
                let (cluster, service, port) = form.three(rest, "cluster")?;
                Ok(Self::Ecs {
                    cluster: form.name("cluster", cluster, "-_")?,
                    service: form.name("service", service, "-_")?,
                    port: form.port(port)?,
                })
            }
            _ => Err(kind()),
        }
    }
}

impl Place {
    /// One worker at a known address, as `host:port`.
    pub fn worker(address: &str) -> Result<Self, BadPlace> {
        fixed(address)
    }
}

fn fixed(list: &str) -> Result<Place, BadPlace> {
    let one = |address: &str| {
        let form = Form { text: address, form: FIXED_FORM };
        let (host, port) = address.rsplit_once(':').ok_or_else(|| form.bad("port"))?;
        form.port(port)?;
        // A bare colon in a host can only be of an IPv6 address that lacks its brackets.
        let is_bracketed = host.starts_with('[') && host.ends_with(']');
        if host.is_empty() || (host.contains(':') && !is_bracketed) {
            return Err(form.bad("host"));
        }
        Endpoint::new(address)
            .map_err(|source| BadPlace::Address { text: address.to_owned(), source })
    };
    Ok(Place::Fixed(list.split(',').map(|address| one(address.trim())).collect::<Result<_, _>>()?))
}

impl fmt::Display for PortChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(endpoints) => {
                f.write_str("static:")?;
                for (number, endpoint) in endpoints.iter().enumerate() {
                    let comma = if number == 0 { "" } else { "," };
                    write!(f, "{comma}{endpoint}")?;
                }
                Ok(())
            }
            Self::Dns { host, port } => write!(f, "dns:{host}:{port}"),
            Self::Kubernetes { namespace, service, port } => {
                write!(f, "kubernetes:{namespace}/{service}:{port}")
            }
            Self::Ecs { cluster, service, port } => write!(f, "ecs:{cluster}/{service}:{port}"),
        }
    }
}

impl TryFrom<String> for Place {
    type Error = BadPlace;

    fn try_from(text: String) -> Result<Self, BadPlace> {
        text.parse()
    }
}

impl From<Place> for String {
    fn from(place: Place) -> Self {
        place.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_read_back_what_they_print() {
        for text in [
            "static:a:1",
            "static:a:1,[::1]:9470,10.0.0.1:2",
            "dns:workers.local:9470",
            "kubernetes:prod/tributary-workers:9470",
            "kubernetes:prod/tributary-workers:grpc",
            "ecs:main/workers_1:9470",
        ] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        assert_eq!("static:a:1, b:2".parse::<Place>().unwrap().to_string(), "static:a:1,b:2");
    }

    #[test]
    fn what_is_no_place_says_what_is_wrong_with_it() {
        for (text, reason) in [
            ("", "is no discovery"),
            ("a:1", "is no discovery"),
            ("consul:a:1", "is no discovery"),
            ("static:", "no valid port"),
            ("static:a", "no valid port"),
            ("static:a:0", "no valid port"),
            ("static:a:1,", "no valid port"),
            ("static::1", "no valid host"),
            ("static:::1:9470", "no valid host"),
            ("static:a b:1", "is no address"),
            ("dns:a", "no valid port"),
            ("dns:a:+1", "no valid port"),
            ("dns:a:01", "no valid port"),
            ("dns:a:65536", "no valid port"),
            ("dns::1", "no valid host"),
            ("dns:a/b:1", "no valid host"),
            ("kubernetes:workers:1", "no valid namespace"),
            ("kubernetes:/workers:1", "no valid namespace"),
            ("kubernetes:prod/workers", "no valid port"),
            ("kubernetes:prod/workers:", "no valid port"),
            ("kubernetes:prod/workers:0", "no valid port"),
            ("kubernetes:prod/workers:a,b", "no valid port"),
            ("kubernetes:prod/:1", "no valid service"),
            ("ecs:main/workers:http", "no valid port"),
            ("ecs:main:1", "no valid cluster"),
            ("ecs:main/a/b:1", "no valid service"),
        ] {
            let error = text.parse::<Place>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text:?}: {error}");
        }
    }
}
