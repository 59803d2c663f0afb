//! Sources: ranges, inline lists, CSV and NDJSON.
