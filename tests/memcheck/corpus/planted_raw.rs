// SPDX-License-Identifier: MIT
//
// Rust with raw pointers: a list, a ring and an arena as people write them, each with one mistake
// and without it; memory that is forgotten; what threads do to each other. Names are demangled.
// OPTIONS --leak-check=full

use std::alloc::{alloc, dealloc, Layout};
use std::cell::RefCell;
use std::ffi::{c_char, CStr, CString};
use std::hint::black_box;
use std::mem::{forget, size_of, MaybeUninit};
use std::ptr::null_mut;
use std::rc::{Rc, Weak};
use std::sync::{Arc, Barrier};
use std::thread;

#[inline(never)]
fn decide(value: u64) -> u64 {
    black_box(value)
}

// ---------------------------------------------------------------- a list

struct Node<T> {
    value: T,
    next: *mut Node<T>,
}

struct List<T> {
    head: *mut Node<T>,
}

impl<T: Copy> List<T> {
    fn of(values: &[T]) -> Self {
        let mut list = List { head: null_mut() };
        for v in values {
            list.head = Box::into_raw(Box::new(Node { value: *v, next: list.head }));
        }
        list
    }

    #[inline(never)]
    fn pop(&mut self) -> Option<T> {
        if self.head.is_null() {
            return None;
        }
        let node = unsafe { Box::from_raw(self.head) };
        self.head = node.next;
        Some(node.value)
    }
}

impl<T> Drop for List<T> {
    fn drop(&mut self) {
        while !self.head.is_null() {
            self.head = unsafe { Box::from_raw(self.head) }.next;
        }
    }
}

// CASE list_cursor_outlives_its_node
impl<T: Copy> List<T> {
    #[inline(never)]
    unsafe fn value_at(cursor: *const Node<T>) -> T {
        std::ptr::read_volatile(std::ptr::addr_of!((*cursor).value))
        // EXPECT-O0 memcheck invalid-read size=8 block=inside:0 of=16 via=planted_raw::List<T>::value_at
        // EXPECT-O2-MUNINN memcheck invalid-read size=8 via=planted_raw::List<T>::value_at why=short-functions
    }
}

#[inline(never)]
fn list_cursor_outlives_its_node() {
    let mut list = black_box(List::of(&[1u64, 2, 3]));
    let cursor = list.head;
    black_box(list.pop());
    black_box(unsafe { List::<u64>::value_at(cursor) });
    // EXPECT-O2-VALGRIND memcheck invalid-read size=8 why=short-functions
}

// CASE list_cursor
#[inline(never)]
fn list_cursor() {
    let mut list = black_box(List::of(&[1u64, 2, 3]));
    black_box(list.pop());
    assert_eq!(unsafe { (*list.head).value }, 2);
}

// CASE list_node_freed_twice
#[inline(never)]
fn list_node_freed_twice() {
    let mut list = black_box(List::of(&[1u64]));
    let node = list.head;
    black_box(list.pop());
    unsafe { dealloc(black_box(node) as *mut u8, Layout::new::<Node<u64>>()) };
    // EXPECT memcheck invalid-free block=inside:0 of=16 state=freed
}

// ---------------------------------------------------------------- a ring of MaybeUninit

struct Ring<const N: usize> {
    slots: Vec<MaybeUninit<u64>>,
    head: usize,
    count: usize,
}

impl<const N: usize> Ring<N> {
    #[inline(never)]
    fn new() -> Self {
        let mut slots = Vec::with_capacity(N);
        unsafe { slots.set_len(N) };
        Ring { slots, head: 0, count: 0 }
    }

    fn push(&mut self, value: u64) {
        self.slots[(self.head + self.count) % N].write(value);
        self.count += 1;
    }

    unsafe fn get(&self, i: usize) -> u64 {
        self.slots[(self.head + i) % N].as_ptr().read_volatile()
    }
}

// CASE ring_slot_never_written
#[inline(never)]
fn ring_slot_never_written() {
    let mut ring = black_box(Ring::<16>::new());
    ring.push(7);
    if unsafe { ring.get(1) } == 7 { // EXPECT memcheck uninit-branch origin=heap
        black_box(1);
    }
}

// CASE ring_slots
#[inline(never)]
fn ring_slots() {
    let mut ring = black_box(Ring::<16>::new());
    for i in 0..16 {
        ring.push(i);
    }
    assert_eq!((0..16).map(|i| unsafe { ring.get(i) }).sum::<u64>(), 120);
}

// CASE uninit_on_stack
#[inline(never)]
fn uninit_on_stack() {
    let mut slots = MaybeUninit::<[u64; 8]>::uninit();
    let p = black_box(slots.as_mut_ptr()) as *const u64;
    if unsafe { p.add(3).read_volatile() } == 7 { // EXPECT memcheck uninit-branch origin=stack
        black_box(1);
    }
}

// CASE set_len_before_it_is_filled
#[inline(never)]
fn set_len_before_it_is_filled() {
    let mut v: Vec<u8> = Vec::with_capacity(black_box(32));
    unsafe { v.set_len(32) };
    v[..16].fill(1);
    let sum = black_box(&v).iter().map(|b| *b as u64).sum::<u64>();
    if black_box(sum) == 16 { // EXPECT memcheck uninit-branch origin=heap
        black_box(1);
    }
}

// CASE spare_capacity_is_filled
#[inline(never)]
fn spare_capacity_is_filled() {
    let mut v: Vec<u8> = Vec::with_capacity(black_box(32));
    for slot in v.spare_capacity_mut() {
        slot.write(1);
    }
    unsafe { v.set_len(32) };
    assert_eq!(black_box(&v).iter().map(|b| *b as u64).sum::<u64>(), 32);
}

// ---------------------------------------------------------------- bounds

// CASE get_unchecked_behind
#[inline(never)]
fn get_unchecked_behind() {
    let v: Vec<u32> = black_box((0..10).collect());
    let x = unsafe { v.get_unchecked(black_box(10)) };
    decide(unsafe { std::ptr::read_volatile(x) } as u64);
    // EXPECT memcheck invalid-read size=4 block=after:0 of=40
}

// CASE get_unchecked_inside
#[inline(never)]
fn get_unchecked_inside() {
    let v: Vec<u32> = black_box((0..10).collect());
    assert_eq!(unsafe { *v.get_unchecked(black_box(9)) }, 9);
}

// CASE get_unchecked_mut_before
#[inline(never)]
fn get_unchecked_mut_before() {
    let mut v: Vec<u16> = black_box(vec![0; 10]);
    let p = unsafe { v.as_mut_ptr().offset(black_box(-1)) };
    unsafe { p.write_volatile(5) }; // EXPECT memcheck invalid-write size=2 block=before:2 of=20
}

// CASE copy_longer_than_its_target
#[inline(never)]
fn copy_longer_than_its_target() {
    let source = black_box(vec![1u8; 100]);
    let mut target = black_box(vec![0u8; 60]);
    unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), target.as_mut_ptr(), black_box(61)) };
    // EXPECT memcheck invalid-write block=after:0 of=60
    decide(target[0] as u64);
}

// CASE copy_overlapping
#[inline(never)]
fn copy_overlapping() {
    let mut v = black_box(vec![1u8; 100]);
    v.copy_within(0..50, 10);
    assert_eq!(black_box(&v)[20], 1);
}

// CASE text_without_an_end
#[inline(never)]
fn text_without_an_end() {
    let bytes = black_box(vec![b'x'; 20]);
    let text = unsafe { CStr::from_ptr(bytes.as_ptr() as *const c_char) };
    // EXPECT memcheck invalid-read size=1 block=after:0 of=20
    decide(text.to_bytes().len() as u64);
}

// CASE text_with_an_end
#[inline(never)]
fn text_with_an_end() {
    let text = black_box(CString::new("twenty characters...").unwrap());
    let seen = unsafe { CStr::from_ptr(text.as_ptr()) };
    assert_eq!(black_box(seen).to_bytes().len(), 20);
}

// CASE padding_is_copied
#[inline(never)]
fn padding_is_copied() {
    #[derive(Clone, Copy)]
    struct Padded(u8, u64, u16);
    let a: Vec<Padded> = black_box((0..50).map(|i| Padded(i, i as u64, 1)).collect());
    let b = black_box(a.clone());
    let sum = b.iter().map(|p| p.0 as u64 + p.1 + p.2 as u64).sum::<u64>();
    assert_eq!(sum, 2 * 49 * 25 + 50);
}

// ---------------------------------------------------------------- an arena

struct Arena {
    base: *mut u8,
    used: usize,
}

impl Arena {
    const BYTES: usize = 256;

    fn new() -> Self {
        Arena { base: unsafe { alloc(Layout::from_size_align(Self::BYTES, 16).unwrap()) }, used: 0 }
    }

    #[inline(never)]
    fn make<T>(&mut self, value: T) -> *mut T {
        let at = unsafe { self.base.add(self.used) } as *mut T;
        self.used += size_of::<T>();
        unsafe { at.write(value) };
        at
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        unsafe { dealloc(self.base, Layout::from_size_align(Self::BYTES, 16).unwrap()) };
    }
}

// CASE arena_outlived
#[inline(never)]
fn arena_outlived() {
    let p = {
        let mut arena = black_box(Arena::new());
        arena.make(1u32);
        arena.make([5u32; 4])
    };
    let x = unsafe { black_box(p).cast::<u32>().add(1).read_volatile() };
    // EXPECT memcheck invalid-read size=4 block=inside:8 of=256 state=freed
    decide(x as u64);
}

// CASE arena_read_ahead
#[inline(never)]
fn arena_read_ahead() {
    let mut arena = black_box(Arena::new());
    let p = arena.make(1u32);
    if unsafe { p.add(1).read_volatile() } == 7 { // EXPECT memcheck uninit-branch origin=heap
        black_box(1);
    }
}

// CASE arena_used_well
#[inline(never)]
fn arena_used_well() {
    let mut arena = black_box(Arena::new());
    let (a, b) = (arena.make(1u64), arena.make([5u64; 4]));
    assert_eq!(unsafe { *a + (*b).iter().sum::<u64>() }, 21);
}

// ---------------------------------------------------------------- forgotten

// CASE forgotten_vector
#[inline(never)]
fn forgotten_vector() {
    let v = black_box(vec![1u64; 11]); // EXPECT memcheck leak-definite bytes=88 blocks=1
    forget(v);
}

// CASE vector_put_back_together
#[inline(never)]
fn vector_put_back_together() {
    let mut v = black_box(vec![1u64; 11]);
    let (p, length, capacity) = (v.as_mut_ptr(), v.len(), v.capacity());
    forget(v);
    drop(unsafe { Vec::from_raw_parts(black_box(p), length, capacity) });
}

struct Person {
    name: [u64; 6],
    friend: RefCell<Option<Rc<Person>>>,
    boss: RefCell<Weak<Person>>,
}

#[inline(never)]
fn person(name: u64) -> Rc<Person> {
    Rc::new(Person { name: [name; 6], friend: RefCell::new(None), boss: RefCell::new(Weak::new()) })
}

// CASE friends_for_ever
#[inline(never)]
fn befriend(first: u64) -> u64 {
    let a = Rc::new(Person { // EXPECT memcheck leak-definite bytes=192 blocks=1 indirect=96
        name: [first; 6],
        friend: RefCell::new(None),
        boss: RefCell::new(Weak::new()),
    });
    let b = person(first + 1);
    *a.friend.borrow_mut() = Some(b.clone());
    *b.friend.borrow_mut() = Some(a.clone());
    a.name[0] + b.name[0]
}

#[inline(never)]
fn friends_for_ever() {
    assert_eq!(befriend(black_box(1)), 3);
    decide(scribble(black_box(3)));
}

// CASE boss_and_worker
#[inline(never)]
fn employ(first: u64) -> u64 {
    let (a, b) = (person(first), person(first + 1));
    *a.friend.borrow_mut() = Some(b.clone());
    *b.boss.borrow_mut() = Rc::downgrade(&a);
    let boss = b.boss.borrow().upgrade().unwrap();
    a.name[0] + boss.name[0]
}

#[inline(never)]
fn boss_and_worker() {
    assert_eq!(employ(black_box(1)), 2);
}

// CASE raw_text_not_taken_back
#[inline(never)]
fn raw_text_not_taken_back() {
    let text = black_box(vec![b'a'; 30]);
    let raw = CString::new(text).unwrap().into_raw(); // EXPECT memcheck leak-definite blocks=1
    decide(unsafe { *raw } as u64);
}

// CASE raw_text_taken_back
#[inline(never)]
fn raw_text_taken_back() {
    let raw = CString::new(black_box(vec![b'a'; 30])).unwrap().into_raw();
    decide(unsafe { *raw } as u64);
    drop(unsafe { CString::from_raw(raw) });
}

// What was on the stack before is no longer.
#[inline(never)]
fn scribble(value: u64) -> u64 {
    let array = black_box([value; 500]);
    array.iter().sum()
}

// ---------------------------------------------------------------- threads

// CASE freed_by_another_thread
#[inline(never)]
fn freed_by_another_thread() {
    let p = Box::into_raw(Box::new(5u64)) as usize;
    thread::spawn(move || drop(unsafe { Box::from_raw(p as *mut u64) })).join().unwrap();
    decide(unsafe { (p as *const u64).read_volatile() });
    // EXPECT memcheck invalid-read size=8 block=inside:0 of=8 state=freed
}

// CASE used_before_it_is_freed
#[inline(never)]
fn used_before_it_is_freed() {
    let p = Box::into_raw(Box::new(5u64)) as usize;
    thread::spawn(move || unsafe { (p as *mut u64).write_volatile(6) }).join().unwrap();
    assert_eq!(unsafe { *Box::from_raw(p as *mut u64) }, 6);
}

// CASE undefined_from_another_thread
#[inline(never)]
fn undefined_from_another_thread() {
    let p = unsafe { alloc(Layout::new::<[u64; 4]>()) } as usize;
    let value = thread::spawn(move || unsafe { (p as *const u64).add(2).read_volatile() }).join();
    if value.unwrap() == 7 { // EXPECT memcheck uninit-branch origin=heap
        black_box(1);
    }
    unsafe { dealloc(p as *mut u8, Layout::new::<[u64; 4]>()) };
}

// CASE arc_counted_too_low
#[inline(never)]
fn arc_counted_too_low() {
    let a = Arc::new(black_box([7u64; 3]));
    let raw = Arc::into_raw(a);
    let p = raw as *const u64;
    drop(unsafe { Arc::from_raw(raw) });
    decide(unsafe { black_box(p).read_volatile() });
    // EXPECT memcheck invalid-read size=8 block=inside:16 of=40 state=freed
}

// CASE arc_among_threads
#[inline(never)]
fn arc_among_threads() {
    let a = Arc::new(black_box(vec![7u64; 300]));
    let barrier = Arc::new(Barrier::new(3));
    let threads: Vec<_> = (0..3)
        .map(|n| {
            let (a, barrier) = (a.clone(), barrier.clone());
            thread::spawn(move || {
                barrier.wait();
                a.iter().skip(n).sum::<u64>()
            })
        })
        .collect();
    let sum: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
    assert_eq!(sum, 7 * (300 + 299 + 298));
}

// CASE leaked_by_a_thread
#[inline(never)]
fn leaked_by_a_thread() {
    let t = thread::spawn(|| {
        let v = black_box(vec![1u64; 13]); // EXPECT memcheck leak-definite bytes=104 blocks=1
        let sum: u64 = v.iter().sum();
        forget(v);
        decide(scribble(sum))
    });
    t.join().unwrap();
}

fn main() {
    let cases: &[(&str, fn())] = &[
        ("list_cursor_outlives_its_node", list_cursor_outlives_its_node),
        ("list_cursor", list_cursor),
        ("list_node_freed_twice", list_node_freed_twice),
        ("ring_slot_never_written", ring_slot_never_written),
        ("ring_slots", ring_slots),
        ("uninit_on_stack", uninit_on_stack),
        ("set_len_before_it_is_filled", set_len_before_it_is_filled),
        ("spare_capacity_is_filled", spare_capacity_is_filled),
        ("get_unchecked_behind", get_unchecked_behind),
        ("get_unchecked_inside", get_unchecked_inside),
        ("get_unchecked_mut_before", get_unchecked_mut_before),
        ("copy_longer_than_its_target", copy_longer_than_its_target),
        ("copy_overlapping", copy_overlapping),
        ("text_without_an_end", text_without_an_end),
        ("text_with_an_end", text_with_an_end),
        ("padding_is_copied", padding_is_copied),
        ("arena_outlived", arena_outlived),
        ("arena_read_ahead", arena_read_ahead),
        ("arena_used_well", arena_used_well),
        ("forgotten_vector", forgotten_vector),
        ("vector_put_back_together", vector_put_back_together),
        ("friends_for_ever", friends_for_ever),
        ("boss_and_worker", boss_and_worker),
        ("raw_text_not_taken_back", raw_text_not_taken_back),
        ("raw_text_taken_back", raw_text_taken_back),
        ("freed_by_another_thread", freed_by_another_thread),
        ("used_before_it_is_freed", used_before_it_is_freed),
        ("undefined_from_another_thread", undefined_from_another_thread),
        ("arc_counted_too_low", arc_counted_too_low),
        ("arc_among_threads", arc_among_threads),
        ("leaked_by_a_thread", leaked_by_a_thread),
    ];
    let name = std::env::args().nth(1).unwrap();
    let times = std::env::args().nth(2).map_or(1, |n| n.parse().unwrap());
    let case = cases.iter().find(|c| c.0 == name).expect("a case of that name");
    for _ in 0..times {
        case.1();
    }
}
