//! What is stored can still be read: `schemas` holds what it may look like.

use webhook_handlers as _;

#[test]
fn stored_events_can_still_be_read() {
    outbox::schema::check("schemas");
}
