//! Clients that are slow, too many, or gone; the end of the server under load; TLS.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use tomo_collector::{Identity, Limits, Options, Store, TlsError};
use tomo_protocol::{
    Answer, Bound, Client, ClientError, Health, Profile, Role, Settings, What, paths,
};

use crate::fleet::{Fleet, Word, client, request_for, serve, serve_as, token};

fn fleet(limits: Limits) -> (tempfile::TempDir, Fleet) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::local(&folder.path().join("store")).expect("a store");
    let options = Options {
        limits,
        ..Options::default()
    };
    let fleet = Fleet::with(
        store,
        folder.path(),
        options,
        request_for(100, 1, Bound::None),
    );
    (folder, fleet)
}

/// What the server says to this, until it closes the connection.
fn said(fleet: &Fleet, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(&fleet.url["http://".len()..]).expect("a connection");
    stream.write_all(bytes).expect("sent");
    let mut said = String::new();
    // A server that closes on us mid-way may reset the connection; what it said before counts.
    let _ = stream.read_to_string(&mut said);
    said
}

#[test]
fn clients_that_stop_sending_are_given_up() {
    let (_folder, fleet) = fleet(Limits {
        patience: Duration::from_millis(100),
        ..Limits::default()
    });
    let instance = token(&fleet.admin, fleet.campaign.id, Role::Instance);
    // Each of these would wait for ever if the server did.
    said(&fleet, b"");
    said(
        &fleet,
        b"POST /v1/reports HTTP/1.1\r\nhost: x\r\nauthorization: Bear",
    );
    let head = format!(
        "POST /v1/reports HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {instance}\r\n\
         content-length: 100\r\n\r\nTOMO"
    );
    let answer = said(&fleet, head.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("stopped coming"), "{answer}");
}

/// Its answers would fill whatever is between us, so that no more is read of what it asks.
#[test]
fn clients_that_do_not_read_are_given_up() {
    let (_folder, fleet) = fleet(Limits {
        patience: Duration::from_millis(100),
        ..Limits::default()
    });
    let mut stream = TcpStream::connect(&fleet.url["http://".len()..]).expect("a connection");
    let asked = b"GET /v1/health HTTP/1.1\r\nhost: x\r\n\r\n".repeat(1000);
    while stream.write_all(&asked).is_ok() {}
}

#[test]
fn connections_beyond_the_limit_are_turned_away_and_others_go_on() {
    let (_folder, fleet) = fleet(Limits {
        connections: 8,
        ..Limits::default()
    });
    let address = &fleet.url["http://".len()..];
    let held: Vec<TcpStream> = (0..20)
        .map(|_| TcpStream::connect(address).expect("a connection"))
        .collect();
    let mut closed = 0;
    for mut stream in held {
        // Ask on each; those that were turned away are at their end.
        let asked =
            stream.write_all(b"GET /v1/health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let mut said = String::new();
        let read = asked.and_then(|()| stream.read_to_string(&mut said));
        closed += usize::from(read.is_err() || said.is_empty());
    }
    assert!((1..20).contains(&closed), "{closed}");
    let body = Word::of(1, 1, &[1]).report(&fleet.campaign);
    assert_eq!(fleet.send(&body).verdicts[0].what, What::Stored);
}

#[test]
fn garbage_instead_of_http_is_answered_or_closed() {
    let (_folder, fleet) = fleet(Limits {
        patience: Duration::from_secs(5),
        ..Limits::default()
    });
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..],
        b"\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
    ] {
        let answer = said(&fleet, garbage);
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 400"),
            "{answer}"
        );
    }
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(1 << 20));
    let answer = said(&fleet, long.as_bytes());
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
        "{answer}"
    );
    let status = client(&fleet.url, None).get::<tomo_protocol::Health>(paths::HEALTH);
    assert!(status.is_ok());
}

#[test]
fn the_end_under_load_loses_nothing_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::local(&folder.path().join("store")).expect("a store");
    let fleet = Fleet::new(store.clone(), folder.path(), 100, 1, Bound::None);
    let id = fleet.campaign.id;
    let (told, heard) = std::sync::mpsc::channel();
    let senders: Vec<_> = (1..=4)
        .map(|instance| {
            let (client, campaign, told) = (
                fleet.instances.clone(),
                fleet.campaign.clone(),
                told.clone(),
            );
            std::thread::spawn(move || {
                let mut stored = 0;
                for run in 1.. {
                    let body = Word::of(instance, run, &[run as u32 % 100]).report(&campaign);
                    if client.post_bytes::<Answer>(paths::REPORTS, &body).is_err() {
                        break;
                    }
                    stored += 1;
                    let _ = told.send(());
                }
                stored
            })
        })
        .collect();
    assert_eq!(heard.iter().take(60).count(), 60);
    drop(fleet);
    let stored: u64 = senders
        .into_iter()
        .map(|sender| sender.join().expect("no panic"))
        .sum();
    let served = serve(
        store,
        Options::default(),
        &folder.path().join("admin.token"),
    );
    let admin = client(&served.url, Some(&served.admin));
    let told: Profile = admin
        .get(&paths::of_campaign(paths::PROFILE, id))
        .expect("a profile");
    // What was stored and not acknowledged, since the connection ended, is one a sender at most.
    assert!(
        (stored..=stored + 4).contains(&told.totals.runs),
        "{stored} {}",
        told.totals.runs
    );
    served.shutdown.end();
    served.thread.join().expect("an end");
}

#[test]
fn with_tls_only_clients_that_know_the_authority_come_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let (certificate, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()]).expect("a certificate");
    std::fs::write(&certificate, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let store = Store::local(&folder.path().join("store")).expect("a store");
    let identity = Identity::read(&certificate, &key).expect("an identity");
    let file = folder.path().join("admin.token");
    let served = serve_as(store, Options::default(), &file, Some(identity));
    let ask = |url: &str, authorities: &std::path::Path| {
        let client = Client::new(&Settings {
            url: url.into(),
            token: None,
            authorities: Some(authorities.into()),
            timeout: Duration::from_secs(60),
        });
        client.expect("a client").get::<Health>(paths::HEALTH)
    };
    assert!(ask(&served.url, &certificate).is_ok());
    let stranger = rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()]).expect("another");
    let other = folder.path().join("other.pem");
    std::fs::write(&other, stranger.cert.pem()).expect("written");
    let refused = ask(&served.url, &other);
    // Neither is for want of a network, nor is the other way round.
    let is_stranger = |told: &Result<Health, _>| matches!(told, Err(ClientError::Stranger { .. }));
    assert!(is_stranger(&refused), "{refused:?}");
    let plain = ask(&served.url.replace("https", "http"), &certificate);
    assert!(is_stranger(&plain), "{plain:?}");
    let (_folder, bare) = fleet(Limits::default());
    let secret = ask(&bare.url.replace("http", "https"), &certificate);
    assert!(is_stranger(&secret), "{secret:?}");
    served.shutdown.end();
    served.thread.join().expect("an end");
    // Files that are something else are named.
    let wrong = Identity::read(&key, &certificate).expect_err("swapped");
    assert!(matches!(wrong, TlsError::Pem(..)), "{wrong}");
    assert!(
        Identity::read(&other, &key).is_err(),
        "they do not belong together"
    );
}

/// Whoever sends more than is taken hears so, and not that the connection broke.
#[test]
fn a_body_that_is_too_large_is_refused_in_words() {
    let (_folder, fleet) = fleet(Limits::default());
    for megabytes in [9, 64] {
        let body = vec![0; megabytes << 20];
        let refused = fleet.instances.post_bytes::<Answer>(paths::REPORTS, &body);
        assert!(
            matches!(refused, Err(ClientError::Refused { status: 413, .. })),
            "{megabytes}: {refused:?}"
        );
    }
}
