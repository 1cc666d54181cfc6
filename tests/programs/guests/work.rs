// SPDX-License-Identifier: MIT
//
// Rust guest: threads, channels, locks, scoped borrowing, panics that unwind through frames with
// destructors and are caught, a panic that ends a thread, processes, and an exit status.
use std::collections::BTreeMap;
use std::panic;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex, RwLock};
use std::thread;

struct Dropped(&'static str);

impl Drop for Dropped {
    fn drop(&mut self) {
        println!("dropped {}", self.0);
    }
}

fn unwinding(depth: u32) -> u32 {
    let _guard = Dropped(if depth == 0 { "innermost" } else { "outer" });
    if depth == 0 {
        panic!("from the depth");
    }
    unwinding(depth - 1) + 1
}

fn channels() {
    let (sender, receiver) = mpsc::sync_channel::<(u64, u64)>(4);
    let workers: Vec<_> = (0..4)
        .map(|id| {
            let sender = sender.clone();
            thread::spawn(move || {
                for step in 0..100 {
                    sender.send((id, step * id)).unwrap();
                }
            })
        })
        .collect();
    drop(sender);
    let mut sums = BTreeMap::new();
    for (id, value) in receiver {
        *sums.entry(id).or_insert(0) += value;
    }
    for worker in workers {
        worker.join().unwrap();
    }
    println!("channels {sums:?}");
}

fn locks() {
    let shared = Arc::new((Mutex::new(0u64), Condvar::new(), RwLock::new(Vec::new())));
    let barrier = Arc::new(Barrier::new(3));
    let spins = AtomicU64::new(0);
    thread::scope(|scope| {
        for id in 0..3u64 {
            let (shared, barrier, spins) = (Arc::clone(&shared), Arc::clone(&barrier), &spins);
            scope.spawn(move || {
                barrier.wait();
                for _ in 0..5000 {
                    spins.fetch_add(1, Ordering::Relaxed);
                }
                shared.2.write().unwrap().push(id);
                *shared.0.lock().unwrap() += 1;
                shared.1.notify_all();
            });
        }
        let mut finished = shared.0.lock().unwrap();
        while *finished < 3 {
            finished = shared.1.wait(finished).unwrap();
        }
    });
    let mut ids = shared.2.read().unwrap().clone();
    ids.sort_unstable();
    println!("locks {ids:?} {}", spins.load(Ordering::Relaxed));
}

fn main() {
    channels();
    locks();
    let caught = panic::catch_unwind(|| unwinding(3)).unwrap_err();
    println!("caught {:?}", caught.downcast_ref::<&str>());
    let ended = thread::Builder::new().name("doomed".into()).spawn(|| {
        let _guard = Dropped("in a thread");
        let empty: Vec<u32> = Vec::new();
        empty[std::env::args().count() + 6]
    });
    println!("thread {}", ended.unwrap().join().is_err());
    let output = Command::new("echo").arg("from a child").output().unwrap();
    println!("{:?} {}", String::from_utf8_lossy(&output.stdout), output.status);
    let status = Command::new("sh").args(["-c", "kill -9 $$"]).status().unwrap();
    println!("{status}");
    let text: String = (0..2000).map(|n| char::from(b'a' + (n * n % 26) as u8)).collect();
    let mut words: Vec<&str> = text.split('z').collect();
    words.sort_unstable();
    println!("{} {:.3}", words.len(), text.bytes().map(f64::from).sum::<f64>().sqrt());
    std::process::exit(9);
}
