//! Bodies of requests: bounded in bytes and in time, each by itself; and where anybody may send them, in bytes together.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::Denial;

/// Bytes of a body that a second gives it more time: who sends fewer holds memory and a connection for nothing.
const LEAST_A_SECOND: u32 = 4 << 10;
/// How much more than is taken is read and forgotten: who still sends when the connection ends does not hear why.
const HEARD_OUT: usize = 16;
/// Bytes of a body for which there is always room, as there are only so many connections: long bodies that come slowly do
/// not keep short ones out.
const ALWAYS: usize = 16 << 10;

/// All of a body. It may take as long as `patience` and what it has sent allow, however it is cut into frames. What it is
/// longer than [`ALWAYS`] has to find room, which it holds until the last of its bytes is gone.
pub(super) async fn gather(
    mut body: Body,
    most: usize,
    patience: Duration,
    room: Option<&Arc<Semaphore>>,
) -> Result<Bytes, Denial> {
    let begun = Instant::now();
    let mut held = Held::default();
    let (mut read, mut is_crowded) = (0usize, false);
    while read / HEARD_OUT <= most {
        let sent = Duration::from_secs(read as u64) / LEAST_A_SECOND;
        let until = (begun + patience + sent).min(Instant::now() + patience);
        let frame = timeout_at(until, body.frame()).await;
        let frame = frame.map_err(|_| {
            let status = StatusCode::REQUEST_TIMEOUT;
            Denial::new(status, "the body stopped coming", "send it without a pause")
        })?;
        let Some(frame) = frame else {
            break;
        };
        let frame = frame.map_err(|_| Denial::malformed("the body could not be read"))?;
        let data = frame.into_data().unwrap_or_default();
        read = read.saturating_add(data.len());
        is_crowded |= read <= most && !is_crowded && !held.add(&data, room);
        if is_crowded || read > most {
            held = Held::default();
        }
    }
    if read > most {
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        let error = format!("the body has more than {most} bytes");
        return Err(Denial::new(status, error, "send less at once"));
    }
    match is_crowded {
        true => Err(Denial::busy()),
        false => Ok(held.freeze()),
    }
}

/// What has come of a body, and the room that it takes.
#[derive(Default)]
struct Held {
    bytes: BytesMut,
    room: Option<OwnedSemaphorePermit>,
}

impl Held {
    /// Adds a frame; whether there was room for it.
    fn add(&mut self, data: &[u8], room: Option<&Arc<Semaphore>>) -> bool {
        let before = self.bytes.len().max(ALWAYS);
        let more = (self.bytes.len() + data.len()).saturating_sub(before);
        if let (Some(room), true) = (room, more > 0) {
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            let Ok(taken) = Arc::clone(room).try_acquire_many_owned(more) else {
                return false;
            };
            match &mut self.room {
                Some(held) => held.merge(taken),
                None => self.room = Some(taken),
            }
        }
        // Copied: a frame may be a single byte, and what holds it is larger.
        self.bytes.extend_from_slice(data);
        true
    }

    fn freeze(self) -> Bytes {
        match self.room {
            None => self.bytes.freeze(),
            Some(_) => Bytes::from_owner(self),
        }
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use axum::body::Body;
    use bytes::Bytes;
    use futures::stream;
    use tokio::sync::Semaphore;

    use super::{ALWAYS, gather};

    const PATIENCE: Duration = Duration::from_secs(30);

    /// So many frames of this size, the next one whenever so much time has passed.
    fn body(frames: usize, size: usize, pause: Duration) -> Body {
        let each = stream::unfold(0, move |sent| async move {
            tokio::time::timeout(pause, std::future::pending::<()>())
                .await
                .err()?;
            let frame = Bytes::from(vec![sent as u8; size]);
            (sent < frames).then_some((Ok::<_, std::io::Error>(frame), sent + 1))
        });
        Body::from_stream(each)
    }

    /// The clock stands still but where all wait for it.
    #[tokio::test(start_paused = true)]
    async fn a_body_may_not_trickle() {
        let short = Duration::from_secs(20);
        let trickling = gather(body(100, 1, short), 1 << 20, PATIENCE, None).await;
        assert!(trickling.is_err());
        let slow = gather(body(100, 1 << 19, short), 1 << 30, PATIENCE, None).await;
        assert_eq!(slow.expect("all of it").len(), 100 << 19);
        let stopping = gather(body(3, 1 << 20, PATIENCE * 2), 1 << 30, PATIENCE, None).await;
        assert!(stopping.is_err());
    }

    #[tokio::test]
    async fn frames_are_put_together_and_counted() {
        let cut = || body(300, 1, Duration::ZERO);
        let whole = gather(cut(), 300, PATIENCE, None).await;
        let is_whole = |whole: Bytes| whole.iter().copied().eq((0..300).map(|at| at as u8));
        assert!(is_whole(whole.expect("all of it")));
        assert!(gather(cut(), 299, PATIENCE, None).await.is_err());
    }

    #[tokio::test]
    async fn bodies_hold_so_much_together_and_no_more() {
        let room = Arc::new(Semaphore::new(3 * ALWAYS));
        let sent = |frames| {
            gather(
                body(frames, ALWAYS, Duration::ZERO),
                8 * ALWAYS,
                PATIENCE,
                Some(&room),
            )
        };
        let first = sent(3).await.expect("there is room");
        assert_eq!(first.len(), 3 * ALWAYS);
        assert_eq!(room.available_permits(), ALWAYS);
        let refused = sent(4).await.expect_err("there is not");
        assert_eq!(
            (refused.status.as_u16(), refused.retry_after),
            (503, Some(5))
        );
        assert_eq!(
            room.available_permits(),
            ALWAYS,
            "what was refused holds nothing"
        );
        sent(1).await.expect("a short one always finds room");
        // As long as a part of it is there all of it is.
        let part = first.slice(5..6);
        drop(first);
        sent(4).await.expect_err("there is still none");
        drop(part);
        sent(4).await.expect("there is room again");
        assert_eq!(room.available_permits(), 3 * ALWAYS);
    }

    #[tokio::test]
    async fn a_body_that_is_too_long_is_told_so_whatever_room_there_is() {
        let room = Arc::new(Semaphore::new(0));
        let long = body(4, ALWAYS, Duration::ZERO);
        let refused = gather(long, 2 * ALWAYS, PATIENCE, Some(&room)).await;
        assert_eq!(refused.expect_err("too long").status.as_u16(), 413);
    }
}
