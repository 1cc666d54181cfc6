// SPDX-License-Identifier: MIT
//
// Recordings of real programs: python3, one in Rust, redis, the C compiler. What is on the screen
// is what `muninn heap … --json` prints.
import fs from 'node:fs';
import {
    check,
    equal,
    file,
    go,
    muninn,
    number_in,
    open_page,
    run,
    Server,
    settled,
    shot,
    Skip,
    test,
} from './harness.mjs';

const RUST = `fn main() {
    let mut words: Vec<String> = (0..5000).map(|i| format!("word {}", i)).collect();
    words.sort();
    let table: std::collections::HashMap<_, _> = words.iter().map(|w| (w, w.len())).collect();
    println!("{}", table.len());
}
`;
const PYTHON = 'd = {i: [str(i)] * 20 for i in range(5000)}; print(len(d))';

// Fills a redis on a socket of its own, then ends it.
const REDIS = `s=$1; shift
"$@" redis-server --port 0 --unixsocket "$s" --save "" > redis.log 2>&1 &
for i in $(seq 1200); do redis-cli -s "$s" ping > redis.log 2>&1 && break; sleep 0.1; done
redis-benchmark -s "$s" -t set,lpush -n 2000 -d 100 -r 500 -q > redis.log 2>&1
redis-cli -s "$s" shutdown nosave > redis.log 2>&1
wait
`;

async function compile_rust() {
    fs.writeFileSync(file('words.rs'), RUST);
    const made = await run('rustc', ['-g', '-o', file('words'), file('words.rs')]);
    return made.ok ? [file('words')] : null;
}

async function find_cc1() {
    const cc1 = (await run('gcc', ['-print-prog-name=cc1'])).out.trim();
    fs.writeFileSync(file('unit.c'), 'int table[100];\nint main(void) { return table[7]; }\n');
    return fs.existsSync(cc1) ? [cc1, '-quiet', file('unit.c'), '-o', file('unit.s')] : null;
}

// Each: a name, and the command to record; null: not on this machine.
const PROGRAMS = {
    python3: () =>
        fs.existsSync('/usr/bin/python3') ? ['/usr/bin/python3', '-S', '-c', PYTHON] : null,
    rust: compile_rust,
    redis: async () => ((await run('redis-server', ['--version'])).ok ? 'redis' : null),
    cc1: find_cc1,
};

async function record(name, command) {
    const recording = file(`muninn.heap.${name}`);
    const words = [
        '--tool=massif',
        '-q',
        '--massif-out-file=/dev/null',
        `--recording-file=${recording}`,
    ];
    fs.rmSync(recording, { force: true });
    const made =
        command === 'redis'
            ? await run('sh', ['-c', REDIS, 'sh', file('redis.sock'), process.env.MUNINN, ...words])
            : await muninn(...words, ...command);
    check(fs.existsSync(recording), `no recording: ${made.text.slice(0, 300)}`);
    return recording;
}

export async function real_tests(browser) {
    const has_massif = /^ *massif\b/m.test((await muninn('--help')).text);
    for (const [name, find] of Object.entries(PROGRAMS)) {
        await test(`a recording of ${name} shows the numbers of muninn heap`, async () => {
            if (!has_massif) throw new Skip('this build has no tool massif');
            const command = await find();
            if (!command) throw new Skip(`no ${name} here`);
            await look_at(browser, name, await record(name, command));
        });
    }
}

async function look_at(browser, name, recording) {
    const server = await Server.start(recording);
    const page = await open_page(browser);
    try {
        await page.goto(server.url);
        await settled(page);
        for (const view of ['flame', 'histograms', 'map', 'source', 'threads', 'summary']) {
            await go(page, `#/${view}`);
            equal(await page.locator('.message.is-error').allInnerTexts(), [], view);
            await shot(page, `${name}-${view}`);
        }
        await compare_summary(page, recording);
        await go(page, '#/contexts');
        await shot(page, `${name}-contexts`);
        await compare_top(page, recording, 'stack');
        await go(page, '#/contexts?ctx.group=function');
        await compare_top(page, recording, 'function');
        equal(page.complaints, [], 'complaints');
    } finally {
        server.stop();
        await page.context().close();
    }
}

async function ask_heap(command, recording, ...options) {
    const told = await muninn('heap', command, recording, '--json', ...options);
    check(told.ok, told.text);
    return JSON.parse(told.out);
}

async function compare_summary(page, recording) {
    const told = await ask_heap('summary', recording);
    const card = async (label) =>
        number_in(await page.locator('.card', { hasText: label }).first().getAttribute('title'));
    equal(await card('Peak heap'), told.peaks.find((peak) => peak.space === 'heap').bytes, 'peak');
    equal(await card('Leaked'), told.live_bytes, 'live at the end');
    equal(await card('Allocations'), told.allocations, 'allocations');
    equal(await card('Temporary'), told.temporary, 'temporary');
}

async function compare_top(page, recording, by) {
    const { groups } = await ask_heap('top', recording, `--by=${by}`);
    const cell = page.locator('.table-row').first().locator('[role=gridcell]').nth(3);
    const title = await cell.locator('[title]').first().getAttribute('title');
    equal(number_in(title), groups[0].value, `the largest at the peak, by ${by}`);
}
