//! Bytes to and from an API server: one request a connection, which is all that tests and a proxy in front of it need.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    sync::Arc,
    time::Duration,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use serde_json::Value;

/// Longer than the API server takes for anything but a watch.
const PATIENCE: Duration = Duration::from_secs(120);

/// A way to an API server, for many connections.
#[derive(Clone)]
pub(crate) struct Wire {
    address: String,
    config: Arc<ClientConfig>,
}

impl Wire {
    /// Leads to a server at `127.0.0.1:PORT` that the certificates vouch for.
    pub(crate) fn new(address: String, ca: &str) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(ca.as_bytes()).flatten());
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            address,
            config: Arc::new(config),
        }
    }

    /// A connection of its own.
    pub(crate) fn connect(&self) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let name = ServerName::try_from("127.0.0.1").expect("an address");
        let client = ClientConnection::new(Arc::clone(&self.config), name);
        Ok(StreamOwned::new(client.map_err(io::Error::other)?, stream))
    }

    /// Sends a request: the status code and the body of the answer. The content is its type and its text; without a text,
    /// the type is what is asked for.
    pub(crate) fn send(
        &self,
        token: &str,
        (method, path): (&str, &str),
        (content_type, body): (&str, &str),
    ) -> io::Result<(u16, Value)> {
        let mut stream = self.connect()?;
        let accept = match body {
            "" => content_type,
            _ => "application/json",
        };
        // To a client of HTTP/1.0 the body comes as it is, up to the end of the connection.
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nAccept: {accept}\r\n\
             Content-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len(),
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let mut answer = vec![];
        stream.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        Ok((
            status(head).ok_or_else(|| io::Error::other("no answer of HTTP"))?,
            serde_json::from_str(body)
                .map_err(|error| io::Error::other(format!("{error} in {body}")))?,
        ))
    }
}

/// The status code in the head of an answer.
pub(crate) fn status(head: &str) -> Option<u16> {
    head.split(' ').nth(1)?.parse().ok()
}
