//! The control protocol and KEDA's scaler protocol, in domain types.
