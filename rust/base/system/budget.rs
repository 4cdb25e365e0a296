//! The memory that this process may still take.

use super::memory_left;

/// 80 % of the memory that the operating system leaves this process. If it does not tell, there is no limit,
/// and it refuses an allocation itself.
pub fn available() -> u64 {
    of(memory_left())
}

fn of(left: Option<u64>) -> u64 {
    left.map_or(u64::MAX, |bytes| bytes / 5 * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_fifths_of_what_is_left_are_available() {
        assert_eq!([of(Some(1001)), of(Some(0)), of(None)], [800, 0, u64::MAX]);
        assert!(available() > 1 << 20);
    }
}
