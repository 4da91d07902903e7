//! Which names a schema may have. Quotes, spaces and upper case are fine: names are quoted wherever they stand.

/// Checks a schema's name before any statement is made with it.
pub(crate) fn check(schema: &str) -> Result<(), &'static str> {
    // PostgreSQL cuts longer names silently, and two tenants would meet in one schema.
    const MAX_BYTES: usize = 63;
    if schema.is_empty() {
        Err("is empty")
    } else if schema.len() > MAX_BYTES {
        Err("is longer than 63 bytes, which databases cut")
    } else if schema.contains('\0') {
        Err("holds the character NUL")
    } else {
        Ok(())
    }
}
