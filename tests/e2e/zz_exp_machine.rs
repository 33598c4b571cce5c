use e2e::{Machine, Object, Options, World};
#[tokio::test]
async fn exp() {
    let world = World::shared(Options { audit: true, ..Options::default() }).await;
    let ns = world.namespace("exp").await;
    for n in 0..40 {
        let m = ns.machine(&format!("m{n}")).create().await;
        ns.wait_machine(m.name(), |m| m.phase() == "Running").await;
        ns.delete::<Machine>(m.name()).await;
        ns.wait_gone::<Machine>(m.name()).await;
    }
    println!("{}", world.controllers_log());
    std::fs::copy(world.audit_log(), "/tmp/exp-audit.log").unwrap();
}
