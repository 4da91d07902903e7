//! A program that names the crate of its handlers, which is all that it takes.

use outbox_ui_handlers as _;

fn main() {
    for handler in outbox::Registry::linked().handlers() {
        println!("{handler}");
    }
}
