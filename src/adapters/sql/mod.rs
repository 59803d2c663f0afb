//! Every store port over a SQL database through sea-orm.
