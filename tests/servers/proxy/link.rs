//! One connection of a proxy: two pumps that look at the weather before each piece.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::{Flow, Orders, Shared, Way, Weather};

/// Bytes of one piece.
const PIECE: usize = 16 * 1024;

pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        let shared = shared.clone();
        tokio::spawn(async move {
            shared.open.fetch_add(1, Ordering::SeqCst);
            carry(client, &shared).await;
            shared.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// Carries a connection to its end; one that ends against order is reset on both sides.
async fn carry(mut client: TcpStream, shared: &Shared) {
    let known = *shared.orders.borrow();
    // The proxy is gone when this fails, which is a reset too.
    let reset = told(shared, move |orders| orders.resets > known.resets);
    let stranded = told(shared, move |orders| orders.strandings > known.strandings);
    let mut server = None;
    let carried = async {
        tokio::select! {
            biased;
            () = stranded => std::future::pending().await,
            carried = connect_and_pump(&mut client, &mut server, shared) => carried,
        }
    };
    let in_order = tokio::select! {
        biased;
        () = reset => false,
        carried = carried => carried.is_ok(),
    };
    if !in_order {
        for stream in [Some(client), server].into_iter().flatten() {
            // A socket that is closed already can't be reset.
            stream.set_zero_linger().ok();
        }
    }
}

async fn told(shared: &Shared, which: impl FnMut(&Orders) -> bool) {
    shared.orders.subscribe().wait_for(which).await.ok();
}

async fn connect_and_pump(
    client: &mut TcpStream,
    server: &mut Option<TcpStream>,
    shared: &Shared,
) -> io::Result<()> {
    let mut weather = shared.weather.subscribe();
    let now = *weather
        .wait_for(|weather| weather.up == Flow::Open || weather.refuses)
        .await
        .map_err(gone)?;
    if now.refuses {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    let server = server.insert(TcpStream::connect(shared.target).await?);
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let asked = Asked {
        connection: shared.opened.fetch_add(1, Ordering::SeqCst),
        question: Mutex::default(),
    };
    let up = Pump::new(shared, &asked, Way::Up).run(from_client, to_server);
    let down = Pump::new(shared, &asked, Way::Down).run(from_server, to_client);
    tokio::try_join!(up, down)?;
    Ok(())
}

fn gone(_: watch::error::RecvError) -> io::Error {
    io::ErrorKind::ConnectionAborted.into()
}

/// The last bytes that went up on a connection, until some come down.
struct Asked {
    connection: u64,
    question: Mutex<Option<Vec<u8>>>,
}

/// One direction.
struct Pump<'a> {
    shared: &'a Shared,
    asked: &'a Asked,
    way: Way,
    weather: watch::Receiver<Weather>,
    orders: watch::Receiver<Orders>,
    half_closes: u64,
    /// Bytes of it have vanished.
    has_lost: bool,
}

impl<'a> Pump<'a> {
    fn new(shared: &'a Shared, asked: &'a Asked, way: Way) -> Pump<'a> {
        let (weather, orders) = (shared.weather.subscribe(), shared.orders.subscribe());
        let half_closes = orders.borrow().half_closes[way as usize];
        Pump {
            shared,
            asked,
            way,
            weather,
            orders,
            half_closes,
            has_lost: false,
        }
    }

    async fn run(mut self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        while let Some(count) = self.next(&mut from, &mut piece).await? {
            self.pass(&mut to, &piece[..count]).await?;
        }
        to.shutdown().await
    }

    /// Reads a piece; none at the end. While the direction is held nothing is read, so the sender feels it.
    async fn next(&mut self, from: &mut ReadHalf<'_>, piece: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            let flow = self.weather.borrow_and_update().flow(self.way);
            if flow == Flow::Open && self.has_lost {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            if self.orders.borrow_and_update().half_closes[self.way as usize] > self.half_closes {
                return Ok(None);
            }
            tokio::select! {
                changed = self.weather.changed() => changed.map_err(gone)?,
                changed = self.orders.changed() => changed.map_err(gone)?,
                read = from.read(piece), if flow != Flow::Hold => {
                    let count = read?;
                    return Ok((count > 0).then_some(count));
                }
            }
        }
    }

    async fn pass(&mut self, to: &mut WriteHalf<'_>, piece: &[u8]) -> io::Result<()> {
        let latency = self.weather.borrow().latency;
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        // What was read before the weather turned suffers it too.
        let way = self.way;
        let weather = *self
            .weather
            .wait_for(|weather| weather.flow(way) != Flow::Hold)
            .await
            .map_err(gone)?;
        if weather.flow(way) == Flow::Drop {
            self.has_lost = true;
            return Ok(());
        }
        match weather.rate {
            None => self.write(to, piece).await,
            Some(rate) => {
                // Twenty pieces a second, so that a slow link trickles instead of coming in lumps.
                for part in piece.chunks(usize::try_from(rate / 20).unwrap_or(usize::MAX).max(1)) {
                    let span = Duration::from_secs_f64(part.len() as f64 / rate as f64);
                    tokio::time::sleep(span).await;
                    self.write(to, part).await?;
                }
                Ok(())
            }
        }
    }

    fn listen(&self, piece: &[u8]) {
        let mut answered = self.shared.answered.lock().expect("not poisoned");
        let Some(answered) = answered.as_mut() else { return };
        let mut question = self.asked.question.lock().expect("not poisoned");
        match self.way {
            Way::Up => *question = Some(piece.to_vec()),
            Way::Down => {
                let question = question.take();
                answered.extend(question.map(|question| (self.asked.connection, question)));
            }
        }
    }

    async fn write(&self, to: &mut WriteHalf<'_>, piece: &[u8]) -> io::Result<()> {
        self.listen(piece);
        let at = self.way as usize;
        let size = i64::try_from(piece.len()).expect("small pieces");
        let left = &self.shared.left[at];
        if left.load(Ordering::SeqCst) == i64::MAX {
            to.write_all(piece).await?;
        } else {
            let left = left.fetch_sub(size, Ordering::SeqCst);
            let passes = usize::try_from(left.clamp(0, size)).expect("within the piece");
            to.write_all(&piece[..passes]).await?;
            if left <= size {
                self.shared.left[at].store(i64::MAX, Ordering::SeqCst);
                self.shared.orders.send_modify(|orders| orders.resets += 1);
                return Err(io::ErrorKind::ConnectionReset.into());
            }
        }
        self.shared.carried[at].fetch_add(piece.len() as u64, Ordering::SeqCst);
        Ok(())
    }
}
