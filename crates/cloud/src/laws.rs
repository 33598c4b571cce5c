//! The laws of a cloud: what every provider must keep to, whatever the cloud behind it does.
