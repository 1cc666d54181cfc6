// SPDX-License-Identifier: MIT
//
// Rust: what unsafe code can do wrong, and safe code, whose library makes no error of its own.

use std::alloc::{alloc, alloc_zeroed, dealloc, realloc, Layout};
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).unwrap()
}

#[inline(never)]
fn branch(value: u64) {
    if black_box(value) != 0 {
        black_box(1);
    }
}

// CASE read_behind
#[inline(never)]
fn read_behind() {
    unsafe {
        let p = black_box(alloc_zeroed(layout(24)));
        black_box(p.add(24).read_volatile());
        // EXPECT memcheck invalid-read size=1 block=after:0 of=24
        dealloc(p, layout(24));
    }
}

// CASE write_behind
#[inline(never)]
fn write_behind() {
    unsafe {
        let p = black_box(alloc(layout(24))) as *mut u64;
        p.add(3).write_volatile(1); // EXPECT memcheck invalid-write size=8 block=after:0 of=24
        dealloc(p as *mut u8, layout(24));
    }
}

// CASE write_inside
#[inline(never)]
fn write_inside() {
    unsafe {
        let p = black_box(alloc(layout(24))) as *mut u64;
        p.add(2).write_volatile(1);
        branch(p.add(2).read_volatile());
        dealloc(p as *mut u8, layout(24));
    }
}

// CASE use_after_drop
#[inline(never)]
fn use_after_drop() {
    let v = black_box(vec![1u32, 2, 3]);
    let p = v.as_ptr();
    drop(v);
    let x = unsafe { black_box(p).add(1).read_volatile() };
    // EXPECT memcheck invalid-read size=4 block=inside:4 of=12 state=freed
    black_box(x);
}

// CASE double_free
#[inline(never)]
fn double_free() {
    unsafe {
        let p = black_box(alloc(layout(24)));
        dealloc(p, layout(24));
        dealloc(black_box(p), layout(24));
        // EXPECT memcheck invalid-free block=inside:0 of=24 state=freed
    }
}

// CASE uninitialised
#[inline(never)]
fn uninitialised() {
    unsafe {
        let p = black_box(alloc(layout(8))) as *mut u64;
        if p.read_volatile() > 5 { // EXPECT memcheck uninit-branch origin=heap:-1
            black_box(1);
        }
        dealloc(p as *mut u8, layout(8));
    }
}

// CASE zeroed
#[inline(never)]
fn zeroed() {
    unsafe {
        let p = black_box(alloc_zeroed(layout(8))) as *mut u64;
        if p.read_volatile() > 5 {
            black_box(1);
        }
        dealloc(p as *mut u8, layout(8));
    }
}

// CASE maybe_uninit
#[inline(never)]
fn maybe_uninit() {
    let a: Box<MaybeUninit<[u64; 64]>> = black_box(Box::new_uninit());
    let p = a.as_ptr() as *const u64;
    unsafe {
        if p.add(5).read_volatile() == 77 { // EXPECT memcheck uninit-branch origin=heap:-3
            black_box(1);
        }
    }
}

// CASE realloc_tail
#[inline(never)]
fn realloc_tail() {
    unsafe {
        let p = black_box(alloc_zeroed(layout(8)));
        let q = black_box(realloc(p, layout(8), 4000));
        if q.add(7).read_volatile() == 1 {
            black_box(1);
        }
        if q.add(8).read_volatile() == 1 { // EXPECT memcheck uninit-branch origin=heap:-4
            black_box(1);
        }
        dealloc(q, layout(4000));
    }
}

// CASE slice_from_raw_too_long
#[inline(never)]
fn slice_from_raw_too_long() {
    let v = black_box(vec![1u16; 10]);
    let s = unsafe { std::slice::from_raw_parts(black_box(v.as_ptr()), 11) };
    let x = unsafe { std::ptr::read_volatile(&s[10]) };
    // EXPECT memcheck invalid-read size=2 block=after:0 of=20
    black_box(x);
}

// CASE in_a_thread
#[inline(never)]
fn in_a_thread() {
    let p = unsafe { black_box(alloc_zeroed(layout(24))) } as usize;
    std::thread::spawn(move || unsafe {
        let x = (p as *const u8).add(24).read_volatile();
        // EXPECT-O0 memcheck invalid-read size=1 block=after:0 of=24
        // EXPECT-MUNINN-O2 memcheck invalid-read size=1 block=after:0 of=24 why=short-functions
        // EXPECT-VALGRIND-O2 memcheck invalid-read size=1 block=after:0 of=24 line=any why=short-functions
        black_box(x);
    })
    .join()
    .unwrap();
}

// CASE collections
#[inline(never)]
fn collections() {
    let mut map = HashMap::new();
    let mut tree = BTreeMap::new();
    for i in 0..500u64 {
        map.insert(i, i.to_string());
        tree.insert(i * 7919 % 1000, vec![i; (i % 7) as usize]);
    }
    assert_eq!(map[&77], "77");
    assert_eq!(tree.len(), 500);
    let text: String = map.values().map(|s| s.as_str()).collect::<Vec<_>>().join(",");
    assert!(text.len() > 1000);
}

// CASE threads_and_channels
#[inline(never)]
fn threads_and_channels() {
    let total = Arc::new(Mutex::new(0u64));
    let (send, receive) = mpsc::channel();
    let threads: Vec<_> = (0..2)
        .map(|n| {
            let (total, send) = (total.clone(), send.clone());
            std::thread::spawn(move || {
                for i in 0..50 {
                    *total.lock().unwrap() += i;
                    send.send(vec![n; i as usize]).unwrap();
                }
            })
        })
        .collect();
    drop(send);
    let count = receive.iter().count();
    for t in threads {
        t.join().unwrap();
    }
    assert_eq!(count, 100);
    assert_eq!(*total.lock().unwrap(), 2450);
}

// CASE panic_caught
#[inline(never)]
fn panic_caught() {
    std::panic::set_hook(Box::new(|_| {}));
    let result = std::panic::catch_unwind(|| {
        let v: Vec<u32> = black_box(Vec::new());
        v[black_box(3)]
    });
    assert!(result.is_err());
}

// CASE enums_and_options
#[inline(never)]
fn enums_and_options() {
    #[derive(Clone, PartialEq)]
    enum Shape {
        Nothing,
        Text(String),
        Pair(u8, u64),
    }
    let shapes = black_box(vec![Shape::Nothing, Shape::Text("x".repeat(30)), Shape::Pair(1, 2)]);
    let copy = shapes.clone();
    assert!(copy == shapes);
    let sorted: Vec<Option<u8>> = black_box(vec![Some(3), None, Some(1)]);
    assert_eq!(sorted.iter().flatten().count(), 2);
}

// CASE strings_and_formatting
#[inline(never)]
fn strings_and_formatting() {
    let mut s = String::new();
    for i in 0..100 {
        s.push_str(&format!("{i:>4}|{:08.3}|", i as f64 / 3.0));
    }
    assert_eq!(s.len(), 1400);
    assert_eq!(s.split('|').filter(|p| p.trim() == "7").count(), 1);
    let n: u32 = black_box("12345").parse().unwrap();
    assert_eq!(n, 12345);
}

fn main() {
    let cases: &[(&str, fn())] = &[
        ("read_behind", read_behind), ("write_behind", write_behind), ("write_inside", write_inside),
        ("use_after_drop", use_after_drop), ("double_free", double_free),
        ("uninitialised", uninitialised), ("zeroed", zeroed), ("maybe_uninit", maybe_uninit),
        ("realloc_tail", realloc_tail), ("slice_from_raw_too_long", slice_from_raw_too_long),
        ("in_a_thread", in_a_thread), ("collections", collections),
        ("threads_and_channels", threads_and_channels), ("panic_caught", panic_caught),
        ("enums_and_options", enums_and_options), ("strings_and_formatting", strings_and_formatting),
    ];
    let name = std::env::args().nth(1).unwrap();
    let times = std::env::args().nth(2).map_or(1, |n| n.parse().unwrap());
    let case = cases.iter().find(|c| c.0 == name).expect("a case of that name");
    for _ in 0..times {
        case.1();
    }
}
