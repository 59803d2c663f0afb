//! Every store port in memory, with fault hooks, for tests and simulation.
