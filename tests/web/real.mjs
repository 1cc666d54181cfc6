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
    let table: std::collections::HashMap<_, _> = words.iter().map(|w| (w.clone(), w.len())).collect();
    println!("{}", table.len());
}
`;

// Each: a name, and how to make a recording; null: not on this machine.
const PROGRAMS = [
    [
        'python3',
        () => ['python3', '-S', '-c', 'd = {i: [str(i)] * 20 for i in range(5000)}; print(len(d))'],
    ],
    [
        'rust',
        () => {
            fs.writeFileSync(file('words.rs'), RUST);
            return run('rustc', ['-g', '-o', file('words'), file('words.rs')]).ok
                ? [file('words')]
                : null;
        },
    ],
    [
        'redis',
        () =>
            run('redis-server', ['--version']).ok
                ? [
                      'sh',
                      '-c',
                      'echo "dbsize" | redis-server --version; exec redis-server --port 0 --save "" --check-system',
                  ]
                : null,
    ],
    [
        'cc1',
        () => {
            const cc1 = run('gcc', ['-print-prog-name=cc1']).out.trim();
            fs.writeFileSync(
                file('unit.c'),
                '#include <stdio.h>\nint main(void) { return puts("x"); }\n',
            );
            return fs.existsSync(cc1)
                ? [cc1, '-quiet', file('unit.c'), '-o', file('unit.s')]
                : null;
        },
    ],
];

function has_massif() {
    const result = muninn(
        '--tool=massif',
        `--massif-out-file=${file('massif.out.true')}`,
        '/bin/true',
    );
    return result.ok && fs.existsSync(file('massif.out.true'));
}

export async function real_tests(browser) {
    const can = has_massif();
    for (const [name, words] of PROGRAMS) {
        await test(`a recording of ${name} shows the numbers of muninn heap`, async () => {
            if (!can) throw new Skip('this build has no tool massif');
            const command = words();
            if (!command) throw new Skip(`no ${name} here`);
            const recording = file(`muninn.heap.${name}`);
            fs.rmSync(recording, { force: true });
            const made = muninn(
                '--tool=massif',
                '-q',
                `--massif-out-file=${file(`massif.out.${name}`)}`,
                `--heap-recording=${recording}`,
                ...command,
            );
            check(fs.existsSync(recording), `no recording: ${made.text.slice(0, 300)}`);
            await look_at(browser, name, recording);
        });
    }
}

async function look_at(browser, name, recording) {
    const server = await Server.start(recording);
    const page = await open_page(browser);
    try {
        await page.goto(server.url);
        await settled(page);
        for (const view of ['summary', 'flame', 'contexts', 'histograms', 'map', 'source']) {
            await go(page, `#/${view}`);
            equal(await page.locator('.message.is-error').allInnerTexts(), [], view);
            await shot(page, `${name}-${view}`);
        }
        await go(page, '#/summary');
        const peak = number_in(await page.locator('.card').first().getAttribute('title'));
        const told = muninn('heap', 'summary', '--json', recording);
        if (told.ok) equal(peak, find_peak(JSON.parse(told.out)), 'the peak');
        equal(page.complaints, [], 'complaints');
    } finally {
        server.stop();
        await page.context().close();
    }
}

function find_peak(summary) {
    return summary.peak?.heap ?? summary.peak?.bytes ?? summary.peak_heap;
}
