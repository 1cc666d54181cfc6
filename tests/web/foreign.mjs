// SPDX-License-Identifier: MIT
//
// Files of other programs, made by these programs where they are installed, else by our exports:
// each opens in every view, with the numbers of its producer.
import fs from 'node:fs';
import {
    check,
    compile,
    equal,
    file,
    go,
    muninn,
    number_in,
    open_page,
    OUT,
    run,
    Server,
    settled,
    shot,
    Skip,
    test,
} from './harness.mjs';
import { VIEWS } from './views.mjs';

async function runs(program) {
    return (await run(program, ['--version'])).ok;
}

// The incumbent's massif.out: its own peak is in it.
async function make_massif() {
    if (!(await runs('valgrind'))) throw new Skip('no valgrind here');
    await compile('shapes', 'tests/web/shapes.c');
    const output = file('massif.out.theirs');
    await run('valgrind', [
        '--tool=massif',
        '-q',
        '--time-unit=B',
        `--massif-out-file=${output}`,
        file('shapes'),
    ]);
    const sizes = [...fs.readFileSync(output, 'utf8').matchAll(/^mem_heap_B=(\d+)$/gm)];
    return { output, format: 'massif', peak: Math.max(...sizes.map((size) => Number(size[1]))) };
}

async function make_heaptrack() {
    await compile('shapes', 'tests/web/shapes.c');
    const name = file('heaptrack.shapes');
    const peak = 400 * 4000;
    if (await runs('heaptrack'))
        await run('heaptrack', ['-o', name, file('shapes')], { stdio: 'ignore' });
    const output = fs
        .readdirSync(OUT)
        .map((entry) => file(entry))
        .find((entry) => entry.startsWith(`${name}.`));
    if (!output) throw new Skip('no heaptrack here');
    return { output, format: 'heaptrack', peak };
}

async function make_pprof() {
    const output = file('demo.pb.gz');
    const made = await muninn(
        'heap',
        'export',
        file('muninn.heap.demo'),
        '--format=pprof',
        '-o',
        output,
    );
    check(made.ok, made.text);
    const told = await muninn('heap', 'summary', file('muninn.heap.demo'), '--json');
    const { peaks } = JSON.parse(told.out);
    return { output, format: 'pprof', peak: peaks.find((peak) => peak.space === 'heap').bytes };
}

const MAKERS = { massif: make_massif, heaptrack: make_heaptrack, pprof: make_pprof };

async function opens_everywhere(page, name) {
    for (const { hash } of VIEWS) {
        await go(page, hash);
        const errors = await page.locator('.message.is-error h2').allInnerTexts();
        equal(
            errors.filter((title) => title !== 'Not recorded in that detail'),
            [],
            hash,
        );
        await shot(page, `foreign-${name}-${hash.replace(/\W+/g, '').slice(0, 12)}`);
    }
}

async function shows_file(browser, name, { output, format, peak }) {
    const server = await Server.start(output);
    const page = await open_page(browser);
    try {
        await page.goto(server.url);
        await settled(page);
        const { files } = await server.get('/api/files');
        equal([files[0].kind, files[0].format], ['heap', format], 'the file');
        await opens_everywhere(page, name);
        await go(page, '#/summary');
        const shown = number_in(await page.locator('.card').first().getAttribute('title'));
        check(shown >= peak && shown < peak * 1.05, `the peak is ${shown}, not ${peak}`);
        equal(page.complaints, [], 'complaints');
    } finally {
        server.stop();
        await page.context().close();
    }
}

export async function foreign_tests(browser) {
    for (const [name, make] of Object.entries(MAKERS)) {
        await test(`a profile of ${name} opens in every view`, async () => {
            await shows_file(browser, name, await make());
        });
    }
    await test("the incumbent's XML opens as findings", async () => {
        if (!(await runs('valgrind'))) throw new Skip('no valgrind here');
        await compile('theirs', 'tests/web/faulty.c');
        const xml = file('theirs.xml');
        await run('valgrind', [
            '--leak-check=full',
            '--show-leak-kinds=all',
            '--track-origins=yes',
            '-q',
            '--xml=yes',
            `--xml-file=${xml}`,
            file('theirs'),
        ]);
        const server = await Server.start(xml);
        const page = await open_page(browser);
        try {
            await page.goto(server.url);
            await settled(page);
            const errors = fs.readFileSync(xml, 'utf8').split('<error>').length - 1;
            equal(await page.locator('.finding').count(), errors, 'findings');
            check((await page.locator('.excerpt .is-marked').count()) > 0, 'no excerpt');
            await shot(page, 'foreign-xml-findings');
            await go(page, '#/leaks?leak.by=holder');
            check(/lost/.test(await page.locator('.table').innerText()), 'no leak');
            await shot(page, 'foreign-xml-leaks');
            equal(page.complaints, [], 'complaints');
        } finally {
            server.stop();
            await page.context().close();
        }
    });
}
