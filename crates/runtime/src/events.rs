//! events
use std::sync::Arc;
use futures::future::BoxFuture;
use mapi_api::event::Event;
use crate::{clock::Clock, writes::Writer};
/// x
#[derive(Clone)]
pub struct Recorder;
impl Recorder {
    /// x
    pub fn new(_writer: Writer, _instance: String, _clock: Arc<dyn Clock>) -> (Self, BoxFuture<'static, ()>) { todo!() }
    /// x
    pub fn emit(&self, _reporter: &'static str, _event: Event) { todo!() }
    /// x
    pub async fn flush(&self) { todo!() }
}
