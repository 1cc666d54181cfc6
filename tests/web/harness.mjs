// SPDX-License-Identifier: MIT
//
// What the tests of the page stand on: verdict lines, files to look at, a server, a browser that
// notices every complaint.
import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

export const ROOT = path.resolve(
    import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname),
    '../..',
);
export const BUILD = process.env.BUILD;
export const OUT = path.join(BUILD, 'tests', 'web');
const MUNINN = process.env.MUNINN;
const { chromium } = createRequire(path.join(ROOT, 'web/package.json'))('playwright-core');

let passed = 0;
let failed = 0;
let skipped = 0;
const wanted = process.argv.slice(2);

// Runs one test; what it throws is the reason it failed.
export async function test(name, work) {
    if (wanted.length && !wanted.some((word) => name.includes(word))) return;
    try {
        await work();
        console.log(`ok - ${name}`);
        passed++;
    } catch (error) {
        const reason = String(error.message ?? error)
            .split('\n')
            .slice(0, 6)
            .join(' | ');
        console.log(
            error instanceof Skip ? `skip - ${name}: ${reason}` : `not ok - ${name}: ${reason}`,
        );
        if (error instanceof Skip) skipped++;
        else failed++;
    }
}

export class Skip extends Error {}

export function finish() {
    console.log(`${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`);
    process.exitCode = failed ? 1 : 0;
}

export function equal(seen, expected, what) {
    const [a, b] = [JSON.stringify(seen), JSON.stringify(expected)];
    if (a !== b) throw new Error(`${what}: ${a?.slice(0, 300)} is not ${b?.slice(0, 300)}`);
}

export function check(condition, what) {
    if (!condition) throw new Error(what);
}

// Only what never comes takes that long, on whatever machine.
const PATIENCE_MS = 120_000;

// Tries until `work` does not throw.
export async function eventually(work) {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
        try {
            return await work();
        } catch (error) {
            if (Date.now() > deadline) throw error;
            await new Promise((done) => setTimeout(done, 60));
        }
    }
}

// ---------------------------------------------------------------------- files

export function file(name) {
    return path.join(OUT, name);
}

// Runs a program to its end; tests go on meanwhile.
export function run(program, words, options = {}) {
    return new Promise((done) => {
        const limits = { timeout: 5 * PATIENCE_MS, maxBuffer: 1 << 28, cwd: OUT, ...options };
        execFile(program, words, limits, (error, out, errors) =>
            done({ ok: error === null, out, text: `${out}${errors}` }),
        );
    });
}

export function muninn(...words) {
    return run(MUNINN, words);
}

export async function compile(output, ...words) {
    const result = await run('gcc', ['-g', '-O1', '-o', file(output), ...words], { cwd: ROOT });
    if (!result.ok) throw new Error(`cannot build ${output}: ${result.text}`);
}

// As any producer of the format writes it.
const snapshot = (number, time, bytes, tree) => `#-----------
snapshot=${number}
#-----------
time=${time}
mem_heap_B=${bytes}
mem_heap_extra_B=0
mem_stacks_B=0
heap_tree=${tree}
`;
const MASSIF_OUT = `desc: (none)
cmd: ./old --load "<b>x</b>"
time_unit: ms
${snapshot(0, 0, 0, 'empty')}${snapshot(1, 50, 400, 'empty')}${snapshot(2, 100, 1000, 'peak')}\
n2: 1000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 n1: 700 0x401136: load<int> (old.c:12)
  n0: 700 0x401200: main (old.c:50)
 n0: 300 0x401156: parse (old.c:30)
${snapshot(3, 200, 600, 'empty')}`.replace('\\\n', '');

export async function make_recordings() {
    fs.mkdirSync(OUT, { recursive: true });
    await compile(
        'make_recording',
        '-std=gnu17',
        '-D_GNU_SOURCE',
        '-Isrc',
        '-Iinclude',
        'tests/web/make_recording.c',
        path.join(BUILD, 'libmonitor.a'),
        ...(/\/asan$/.test(BUILD) ? ['-fsanitize=address,undefined'] : []),
        '-ldw',
        '-lelf',
        '-liberty',
        '-lzstd',
        '-lz',
        '-lm',
        '-lpthread',
    );
    for (const kind of ['demo', 'later', 'hostile', 'wide']) {
        const result = await run(file('make_recording'), [kind, file(`muninn.heap.${kind}`)]);
        if (!result.ok) throw new Error(result.text);
    }
    fs.writeFileSync(
        file('muninn.heap.corrupt'),
        'this is not a recording <script>window.hacked = 1</script>\n',
    );
    fs.writeFileSync(file('massif.out.old'), MASSIF_OUT);
    const whole = fs.readFileSync(file('muninn.heap.demo'));
    fs.writeFileSync(file('muninn.heap.cut'), whole.subarray(0, Math.floor(whole.length * 0.6)));
}

// ---------------------------------------------------------------------- server

export class Server {
    static async start(...files) {
        const server = new Server();
        server.process = spawn(MUNINN, ['view', '--no-open', ...files], {
            cwd: OUT,
            stdio: ['ignore', 'pipe', 'pipe'],
        });
        server.text = '';
        const take = (chunk) => {
            server.text += chunk;
        };
        server.process.stdout.on('data', take);
        server.process.stderr.on('data', take);
        await eventually(() =>
            check(/http:\S+token=\w+/.test(server.text), `no address in: ${server.text}`),
        );
        server.url = /http:\S+token=\w+/.exec(server.text)[0];
        server.origin = new URL(server.url).origin;
        server.token = new URL(server.url).searchParams.get('token');
        return server;
    }

    async get(url) {
        for (;;) {
            const response = await fetch(this.origin + url, {
                headers: { 'X-Muninn-Token': this.token },
            });
            if (response.status !== 202) return await response.json();
            await response.text();
            await new Promise((done) => setTimeout(done, 100));
        }
    }

    stop() {
        this.process.kill('SIGINT');
    }
}

// ---------------------------------------------------------------------- browser

export async function open_browser() {
    const executablePath =
        process.env.CHROMIUM ??
        ['/usr/bin/chromium', '/usr/bin/google-chrome', '/usr/bin/chromium-browser'].find((p) =>
            fs.existsSync(p),
        );
    return await chromium.launch({
        executablePath,
        args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    });
}

// A page that remembers what it complained about, and which hosts it asked.
export async function open_page(browser, options = {}) {
    const context = await browser.newContext({
        viewport: { width: 1280, height: 720 },
        colorScheme: 'light',
        ...options,
    });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    page.complaints = [];
    page.asked = [];
    page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning')
            page.complaints.push(message.text());
    });
    page.on('pageerror', (error) => page.complaints.push(error.message));
    page.on('dialog', (dialog) => {
        page.complaints.push(`a dialog: ${dialog.message()}`);
        void dialog.dismiss();
    });
    page.on('request', (request) => page.asked.push(request.url()));
    return page;
}

// Goes to a state by its fragment and waits until nothing is loading.
export async function go(page, hash) {
    await page.evaluate((to) => {
        location.hash = to;
    }, hash);
    await settled(page);
}

// The view of the address is drawn and nothing is loading, or a message says what is wrong.
export async function settled(page) {
    await page.waitForTimeout(40);
    await page.waitForFunction(() => {
        const shown = document.querySelector('main')?.dataset.shown;
        if (document.querySelector('.is-loading, [data-busy]')) return false;
        return shown === undefined
            ? document.querySelector('.message') !== null
            : shown === location.hash;
    });
}

export async function shot(page, name) {
    await page.screenshot({ path: file(`${name}.png`) });
}

export function number_in(text) {
    const match = /[−-]?[\d,]+/.exec(text ?? '');
    return match ? Number(match[0].replace(/,/g, '').replace('−', '-')) : NaN;
}
