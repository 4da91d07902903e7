//! Errors that `main` may return. Rust prints those by their `Debug`, so that `fn main() -> Result<(), RunError>` would
//! say `Error: NoUrl` to a person who wants to know what to do: their `Debug` is their message.

macro_rules! readable {
    ($error:ty) => {
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}
pub(crate) use readable;
