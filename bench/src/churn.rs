// SPDX-License-Identifier: MIT
//
// Rust allocation churn: boxed trees, vectors of strings, B-tree and hash maps and reference
// counted nodes, born and dying in a random order. The argument is the number of rounds; the
// checksum printed at the end depends on every object.
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

// The default hasher is seeded by the kernel: this one makes every run do the same work.
#[derive(Default)]
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100000001b3);
        }
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

enum Tree {
    Leaf(u64),
    Node(Box<Tree>, Box<Tree>),
}

fn grow(depth: u32, random: &mut Random) -> Tree {
    if depth == 0 || random.next() % 16 == 0 {
        return Tree::Leaf(random.next());
    }
    Tree::Node(Box::new(grow(depth - 1, random)), Box::new(grow(depth - 1, random)))
}

fn fold(tree: &Tree) -> u64 {
    match tree {
        Tree::Leaf(value) => *value,
        Tree::Node(left, right) => fold(left).rotate_left(5) ^ fold(right),
    }
}

fn churn_strings(random: &mut Random) -> u64 {
    let mut sorted: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut counted: HashMap<String, u64, BuildHasherDefault<Fnv>> = HashMap::default();
    for _ in 0..1500 {
        let key = format!("key-{}", random.next() % 700);
        let grown = (random.next() % 30) as usize;
        sorted.entry(key.clone()).or_default().extend(std::iter::repeat(b'x').take(grown));
        *counted.entry(key.clone()).or_insert(0) += grown as u64;
        if random.next() % 8 == 0 {
            sorted.remove(&key);
        }
    }
    sorted.iter().map(|(key, value)| key.len() as u64 * value.len() as u64 + counted[key]).sum()
}

fn main() {
    let rounds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10);
    let mut random = Random(0x9e3779b97f4a7c15);
    let mut shared: Vec<Option<Rc<Vec<u64>>>> = vec![None; 512];
    let mut sum = 0u64;
    for _ in 0..rounds {
        sum = sum.rotate_left(7) ^ fold(&grow(11, &mut random));
        sum = sum.wrapping_add(churn_strings(&mut random));
        for _ in 0..1000 {
            let (from, to) = (random.next() as usize % 512, random.next() as usize % 512);
            shared[to] = match &shared[from] {
                Some(kept) if random.next() % 2 == 0 => Some(Rc::clone(kept)),
                _ => Some(Rc::new((0..random.next() % 24).collect())),
            };
            sum = sum.wrapping_add(shared[to].as_ref().map_or(0, |kept| kept.iter().sum()));
        }
    }
    println!("{sum:016x}");
}
