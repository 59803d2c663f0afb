//! The proxy itself: each kind of weather does what it says, and nothing else.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::proxy::{Flow, Proxy, Way, Weather};

const PATIENCE: Duration = Duration::from_secs(30);

/// What a connection gave before it was silent, and how it ended.
#[derive(Debug, PartialEq)]
enum Heard {
    Text(String),
    End,
    Reset,
    Nothing,
}

/// A server that answers each piece with the same in capitals.
async fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut piece = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut piece).await {
                    let answer = piece[..count].to_ascii_uppercase();
                    if stream.write_all(&answer).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

async fn connect(proxy: &Proxy) -> TcpStream {
    TcpStream::connect(("127.0.0.1", proxy.port()))
        .await
        .expect("it listens")
}

/// Reads once.
async fn hear(stream: &mut TcpStream, within: Duration) -> Heard {
    let mut piece = [0; 4096];
    match tokio::time::timeout(within, stream.read(&mut piece)).await {
        Err(_) => Heard::Nothing,
        Ok(Ok(0)) => Heard::End,
        Ok(Ok(count)) => Heard::Text(String::from_utf8_lossy(&piece[..count]).into_owned()),
        Ok(Err(_)) => Heard::Reset,
    }
}

async fn ask(stream: &mut TcpStream, text: &str) -> Heard {
    stream.write_all(text.as_bytes()).await.expect("sent");
    hear(stream, PATIENCE).await
}

fn text(text: &str) -> Heard {
    Heard::Text(text.to_owned())
}

const SHORT: Duration = Duration::from_millis(150);

#[tokio::test]
async fn what_is_held_arrives_later_and_what_is_dropped_never() {
    let proxy = Proxy::start(echo().await).await;
    let mut stream = connect(&proxy).await;
    assert_eq!(ask(&mut stream, "one").await, text("ONE"));
    proxy.set(Weather::held());
    stream.write_all(b"two").await.expect("sent");
    assert_eq!(hear(&mut stream, SHORT).await, Heard::Nothing);
    proxy.heal();
    assert_eq!(hear(&mut stream, PATIENCE).await, text("TWO"));
    proxy.set(Weather::blackhole());
    stream.write_all(b"three").await.expect("sent");
    assert_eq!(hear(&mut stream, SHORT).await, Heard::Nothing);
    proxy.heal();
    assert_eq!(
        hear(&mut stream, PATIENCE).await,
        Heard::Reset,
        "its bytes are lost"
    );
    assert_eq!(ask(&mut connect(&proxy).await, "four").await, text("FOUR"));
}

#[tokio::test]
async fn a_lost_reply_was_obeyed() {
    let proxy = Proxy::start(echo().await).await;
    let mut stream = connect(&proxy).await;
    assert_eq!(ask(&mut stream, "one").await, text("ONE"));
    proxy.set(Weather::lost_replies());
    stream.write_all(b"two").await.expect("sent");
    while proxy.carried(Way::Up) < 6 {
        tokio::task::yield_now().await;
    }
    assert_eq!(hear(&mut stream, SHORT).await, Heard::Nothing);
    assert_eq!(proxy.carried(Way::Down), 3);
}

#[tokio::test]
async fn a_reset_reaches_both_ends_and_a_refusal_newcomers_only() {
    let proxy = Proxy::start(echo().await).await;
    let mut old = connect(&proxy).await;
    assert_eq!(ask(&mut old, "one").await, text("ONE"));
    proxy.set(Weather {
        refuses: true,
        ..Weather::default()
    });
    assert_eq!(ask(&mut old, "two").await, text("TWO"));
    assert_eq!(hear(&mut connect(&proxy).await, PATIENCE).await, Heard::Reset);
    proxy.reset();
    assert_eq!(hear(&mut old, PATIENCE).await, Heard::Reset);
    while proxy.open() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_stranded_connection_says_nothing_more_and_a_new_one_works() {
    let proxy = Proxy::start(echo().await).await;
    let mut old = connect(&proxy).await;
    assert_eq!(ask(&mut old, "one").await, text("ONE"));
    proxy.strand();
    assert_eq!(ask(&mut connect(&proxy).await, "two").await, text("TWO"));
    old.write_all(b"three").await.expect("sent");
    assert_eq!(hear(&mut old, SHORT).await, Heard::Nothing);
    proxy.reset();
    assert_eq!(hear(&mut old, PATIENCE).await, Heard::Reset);
}

#[tokio::test]
async fn a_half_closed_connection_still_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let proxy = Proxy::start(listener.local_addr().expect("bound").port()).await;
    let mut client = connect(&proxy).await;
    let (mut server, _) = listener.accept().await.expect("connected");
    assert_eq!(ask_one_way(&mut client, &mut server, b"one").await, text("one"));
    proxy.half_close(Way::Up);
    assert_eq!(hear(&mut server, PATIENCE).await, Heard::End);
    assert_eq!(ask_one_way(&mut server, &mut client, b"two").await, text("two"));
}

async fn ask_one_way(from: &mut TcpStream, to: &mut TcpStream, bytes: &[u8]) -> Heard {
    from.write_all(bytes).await.expect("sent");
    hear(to, PATIENCE).await
}

#[tokio::test]
async fn a_cut_comes_after_exactly_so_many_bytes() {
    let proxy = Proxy::start(echo().await).await;
    let mut stream = connect(&proxy).await;
    assert_eq!(ask(&mut stream, "one").await, text("ONE"));
    proxy.cut_after(Way::Up, 2);
    assert!(matches!(
        ask(&mut stream, "three").await,
        Heard::Reset | Heard::End
    ));
    assert_eq!(ask(&mut connect(&proxy).await, "again").await, text("AGAIN"));
}

#[tokio::test]
async fn latency_and_rate_slow_it_down_and_one_way_weather_leaves_the_other_way_alone() {
    let proxy = Proxy::start(echo().await).await;
    let mut stream = connect(&proxy).await;
    let begun = Instant::now();
    proxy.set(Weather {
        latency: Duration::from_millis(100),
        ..Weather::default()
    });
    assert_eq!(ask(&mut stream, "one").await, text("ONE"));
    assert!(begun.elapsed() >= Duration::from_millis(200), "there and back");
    proxy.set(Weather {
        rate: Some(20),
        ..Weather::default()
    });
    let begun = Instant::now();
    stream.write_all(b"ten bytes!").await.expect("sent");
    let mut all = String::new();
    while let Heard::Text(more) = hear(&mut stream, PATIENCE).await {
        all.push_str(&more);
        if all.len() == 10 {
            break;
        }
    }
    assert_eq!(all, "TEN BYTES!");
    assert!(
        begun.elapsed() >= Duration::from_millis(500),
        "at 20 bytes a second"
    );
    proxy.set(Weather {
        up: Flow::Hold,
        ..Weather::default()
    });
    stream.write_all(b"held").await.expect("sent");
    assert_eq!(hear(&mut stream, SHORT).await, Heard::Nothing);
}
