// SPDX-License-Identifier: MIT
//
// A small server: every connection is a thread, every line is kept. It ends when it is told.
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

type Store = Arc<Mutex<HashMap<u64, Vec<u8>>>>;

#[inline(never)]
fn keep_line(store: &Store, number: u64, text: &str) -> usize {
    let mut block = Vec::with_capacity(5000);
    block.extend_from_slice(text.as_bytes());
    let mut store = store.lock().unwrap();
    store.insert(number, block);
    store.len()
}

fn serve(stream: TcpStream, store: Store, base: u64) {
    let mut out = stream.try_clone().unwrap();
    for (i, line) in BufReader::new(stream).lines().enumerate() {
        let count = keep_line(&store, base + i as u64, &line.unwrap());
        writeln!(out, "{count}").unwrap();
    }
}

fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    let store: Store = Arc::default();
    let connections: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let threads: Vec<_> = (0..connections)
        .map(|n| {
            let (stream, _) = listener.accept().unwrap();
            let store = store.clone();
            std::thread::spawn(move || serve(stream, store, n << 32))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    println!("{}", store.lock().unwrap().len());
}
