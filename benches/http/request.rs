//! The `request` handler beside the `http` handler, one item a call, against the same server. Goal: ≥ 0.9 of its rate.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::runtime::Runtime;

use windrow_core::business::request::RequestSpec;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{Handler, HandlerFactory};
use windrow_handlers::http::{HttpHandlerFactory, HttpOptions};
use windrow_handlers::request::{RequestHandlerFactory, RequestOptions};
use windrow_host::clock::SystemClock;

use super::{Case, context, run_windrow};

pub(super) fn compare(runtime: &Runtime, address: SocketAddr, case: Case, rounds: usize) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let url = format!("http://{address}{}", case.path);
    let http = HttpHandlerFactory::new(HttpOptions::new(&url), clock.clone());
    let spec = RequestSpec {
        call: format!("POST {url}?user={{user_id}}"),
        headers: [("x-attempt".to_owned(), "{attempt}".to_owned())].into(),
        json: Some(r#"{"user": {user_id}, "locale": {locale}, "n": {index}}"#.to_owned()),
        ..RequestSpec::default()
    };
    let request = RequestHandlerFactory::sharing(RequestOptions::new(spec), clock.clone(), Arc::default());
    let handlers: [Arc<dyn Handler>; 2] = [
        http.open(context()).expect("opens"),
        request.open(context()).expect("opens"),
    ];
    let mut rates: [Vec<f64>; 2] = Default::default();
    let mut ratios = Vec::new();
    for round in 0..=rounds {
        let mut measured = [0.0; 2];
        for step in 0..2 {
            let which = (step + round) % 2;
            measured[which] = runtime.block_on(run_windrow(&handlers[which], &clock, case));
        }
        // The first round warms up.
        if round > 0 {
            rates
                .iter_mut()
                .zip(measured)
                .for_each(|(all, rate)| all.push(rate));
            ratios.push(measured[1] / measured[0]);
        }
    }
    let median = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        (sorted[0], sorted[sorted.len() / 2], sorted[sorted.len() - 1])
    };
    let (least, middle, most) = median(&ratios);
    println!(
        "{:<40} {:>10.0} {:>10.0} {:>10}  request ÷ http: {least:.2} / {middle:.2} / {most:.2}",
        "request, one item, beside http",
        median(&rates[1]).1,
        median(&rates[0]).1,
        "",
    );
}
