//! Zeroed arrays of any size, without a system call for each small one.
//!
//! The coarse levels make thousands of arrays of a few hundred items; with a [`Buffer`] for each, small graphs spent
//! more than half of their time in the kernel.

use std::ops::{Deref, DerefMut};

use bytemuck::Zeroable;

use super::buffer::{Buffer, reserved};
use super::error::Result;

/// Bytes from which on an array is a [`Buffer`].
const LARGE: usize = 1 << 20;

/// `len` values of `T`, zero at first.
#[derive(Debug)]
pub enum Array<T> {
    /// On the heap.
    Small(Vec<T>),
    /// A map of its own.
    Large(Buffer<T>),
}

impl<T: Zeroable + Clone> Array<T> {
    /// Allocates `len` zeros; `what` names the array in the error.
    pub fn zeroed(len: usize, what: &str) -> Result<Self> {
        if len.saturating_mul(size_of::<T>()) >= LARGE {
            return Ok(Self::Large(Buffer::zeroed(len, what)?));
        }
        let mut items = reserved(len, what)?;
        items.resize(len, T::zeroed());
        Ok(Self::Small(items))
    }
}

impl<T: Zeroable> Deref for Array<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        match self {
            Self::Small(items) => items,
            Self::Large(items) => items,
        }
    }
}

impl<T: Zeroable> DerefMut for Array<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Small(items) => items,
            Self::Large(items) => items,
        }
    }
}
