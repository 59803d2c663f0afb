//! Checked options of the node.
