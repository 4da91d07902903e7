async fn push() {}

fn main() {
    let _ = outbox::Registry::empty().with(outbox::handler!(push));
}
