//! The memory that this process may still take.

use super::system::memory_left;

/// 80 % of what the operating system leaves this process. A system that does not tell refuses an allocation
/// itself.
pub fn available() -> u64 {
    memory_left().map_or(u64::MAX, |bytes| bytes / 5 * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_is_available_and_less_than_is_left() {
        let bytes = available();
        assert!(bytes > 1 << 20);
        assert!(memory_left().is_none_or(|left| bytes < left + (left >> 3)));
    }
}
