// SPDX-License-Identifier: MIT
//
// Node guest: code hot enough for every tier of V8, deoptimisation, workers, buffers, files,
// regular expressions (their own JIT), WebAssembly, child processes and promises.
'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const zlib = require('zlib');

function hot(limit) {
    let sum = 0;
    for (let i = 0; i < limit; i++)
        sum = (sum * 31 + (i ^ (i >> 3))) | 0;
    return sum;
}

if (!isMainThread) {
    parentPort.postMessage({ seed: workerData, sum: hot(200000 + workerData) });
} else {
    main().catch((error) => {
        console.error(error.message);
        process.exit(1);
    });
}

function add(left, right) {
    return left + right;
}

function deoptimise() {
    let sum = 0;
    for (let i = 0; i < 100000; i++)
        sum = add(sum, i);
    const text = add('now ', 'strings');
    let doubles = 0;
    for (let i = 0; i < 100000; i++)
        doubles = add(doubles, i + 0.5);
    console.log('deopt', sum, text, doubles);
}

function objects() {
    let root = null, seed = 7;
    for (let i = 0; i < 20000; i++) {
        seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
        const added = { left: null, right: null, value: seed >> 8 };
        let node = root, parent = null;
        while (node !== null) {
            parent = node;
            node = added.value < node.value ? node.left : node.right;
        }
        if (parent === null)
            root = added;
        else if (added.value < parent.value)
            parent.left = added;
        else
            parent.right = added;
    }
    const depth = (node) => node ? 1 + Math.max(depth(node.left), depth(node.right)) : 0;
    console.log('tree', depth(root));
}

function buffers() {
    const buffer = Buffer.alloc(100000);
    for (let i = 0; i < buffer.length; i++)
        buffer[i] = (i * 7) & 0xff;
    const packed = zlib.deflateSync(buffer);
    console.log('zlib', zlib.inflateSync(packed).equals(buffer));
    console.log('sha256', crypto.createHash('sha256').update(buffer).digest('hex'));
    const file = path.join(process.cwd(), 'node.tmp');
    fs.writeFileSync(file, buffer);
    console.log('file', fs.readFileSync(file).equals(buffer), fs.statSync(file).size);
    fs.unlinkSync(file);
}

function regexes() {
    const text = 'key1=value1; key22=value22; '.repeat(500);
    let count = 0;
    for (const match of text.matchAll(/(\w+?)(\d+)=(?:value)\2/g))
        count += match[2].length;
    console.log('regex', count);
}

// (module (func (export "fac") (param i32) (result i32) ...)) as bytes: n! by recursion.
function wasm() {
    const bytes = Uint8Array.from([
        0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, 0x01, 0x06, 0x01, 0x60, 0x01, 0x7f,
        0x01, 0x7f, 0x03, 0x02, 0x01, 0x00, 0x07, 0x07, 0x01, 0x03, 0x66, 0x61, 0x63, 0x00,
        0x00, 0x0a, 0x17, 0x01, 0x15, 0x00, 0x20, 0x00, 0x45, 0x04, 0x7f, 0x41, 0x01, 0x05,
        0x20, 0x00, 0x20, 0x00, 0x41, 0x01, 0x6b, 0x10, 0x00, 0x6c, 0x0b, 0x0b,
    ]);
    const { fac } = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports;
    let sum = 0;
    for (let i = 0; i < 5000; i++)
        sum = (sum + fac(i % 13)) | 0;
    console.log('wasm', fac(10), sum);
}

function worker(seed) {
    return new Promise((resolve, reject) => {
        const thread = new Worker(__filename, { workerData: seed });
        thread.once('message', resolve);
        thread.once('error', reject);
    });
}

async function main() {
    console.log('hot', hot(3000000));
    deoptimise();
    objects();
    buffers();
    regexes();
    wasm();
    const answers = await Promise.all([1, 2, 3].map(worker));
    for (const answer of answers)
        console.log('worker', answer.seed, answer.sum);
    const { execFileSync } = require('child_process');
    console.log('child', execFileSync('echo', ['from echo']).toString().trim());
    try {
        null.field;
    } catch (error) {
        console.log('caught', error.message);
    }
    const deep = (n) => n + deep(n + 1);
    try {
        deep(0);
    } catch (error) {
        console.log('caught', error.constructor.name);
    }
    process.exitCode = 6;
}
