//! Health checks on a real control plane.
