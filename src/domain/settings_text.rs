//! How people write settings: `500/s`, `1s..60s x2 jitter 20%`, `10/s 1%`.
