// SPDX-License-Identifier: MIT
//
// Built without debug information: names alone tell whose a function is.
use std::hint::black_box;

struct Own(Vec<u8>);

impl Clone for Own {
    #[inline(never)]
    fn clone(&self) -> Own {
        Own(vec![self.0[0]; 3000])
    }
}

#[inline(never)]
fn grow() -> Vec<u8> {
    vec![1u8; 1000]
}

#[inline(never)]
fn wide() -> Vec<u32> {
    vec![7u32; 5000]
}

fn main() {
    let own = Own(grow());
    black_box((wide(), own.clone()));
    std::mem::forget(own);
}
