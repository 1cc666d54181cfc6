// SPDX-License-Identifier: MIT
//
// The views of a recording: what each asks of the server, and that what it shows is what it was
// told.
import { check, equal, go, number_in, settled, shot, test } from './harness.mjs';

const cells = (page, row) => page.locator('.table-row').nth(row).locator('[role=gridcell]');

// The exact number behind one that is shown rounded.
async function exact(locator) {
    return number_in(await locator.locator('[title]').first().getAttribute('title'));
}

async function shows_summary(page, server) {
    const info = await server.get('/api/info');
    const cards = page.locator('.card');
    equal(number_in(await cards.nth(0).getAttribute('title')), info.peak.heap, 'peak heap');
    equal(number_in(await cards.nth(2).getAttribute('title')), info.totals.leaked, 'leaked');
    equal(
        number_in(await cards.nth(4).getAttribute('title')),
        info.totals.allocations,
        'allocations',
    );
}

async function shows_flame(page, server) {
    const tree = await server.get(`/api/tree?by_function=1&metric=peak`);
    const status = page.locator('.flame-status');
    equal(
        number_in(await status.locator('.num').first().getAttribute('title')),
        tree.total,
        'total',
    );
    await page.locator('.flame canvas').focus();
    await page.keyboard.press('ArrowDown');
    equal(await status.locator('b').innerText(), tree.names[tree.name[1]], 'the first frame');
    equal(
        number_in(await status.locator('.num').first().getAttribute('title')),
        tree.value[1],
        'its bytes',
    );
    const painted = await page.locator('.flame canvas').evaluate((canvas) => {
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, 60);
        return data.some((byte) => byte !== 0);
    });
    check(painted, 'the canvas is empty');
}

async function shows_tree(page, server) {
    const tree = await server.get(`/api/tree?by_function=1&metric=peak`);
    equal(await exact(cells(page, 0).nth(1)), tree.value[1], 'the first row');
}

async function shows_contexts(page, server) {
    const { rows, rows_total } = await server.get(`/api/contexts?sort=peak`);
    equal(Number(await page.locator('.table').getAttribute('aria-rowcount')), rows_total, 'rows');
    for (const i of [0, 1]) {
        check(
            (await cells(page, i).nth(0).innerText()).startsWith(rows[i].function.slice(0, 12)),
            'the name',
        );
        equal(await exact(cells(page, i).nth(2)), rows[i].live, 'live bytes');
        equal(await exact(cells(page, i).nth(3)), rows[i].peak, 'at the peak');
    }
}

async function shows_callers(page, server) {
    const { rows } = await server.get(`/api/functions?metric=peak`);
    equal(await exact(cells(page, 0).nth(1)), rows[0].total, 'total of the first function');
}

async function shows_histograms(page, server) {
    const { sizes, lifetimes } = await server.get('/api/histogram');
    const read = (name) =>
        page
            .getByRole('table', { name })
            .locator('.hist-bar')
            .evaluateAll((bars) => bars.map((bar) => Number(bar.title.replace(/,/g, ''))));
    equal(
        await read('Sizes'),
        sizes.map((bucket) => bucket.count),
        'sizes',
    );
    equal(
        await read('Lifetimes'),
        lifetimes.map((bucket) => bucket.count),
        'lifetimes',
    );
}

async function shows_map(page, server) {
    const map = await server.get('/api/map');
    equal(await page.locator('.region').count(), map.regions.length, 'regions');
    check(
        (await page.locator('.region').first().innerText()).includes(map.regions[0].start),
        'the address',
    );
    const blocks = number_in(
        /in ([\d,]+) block/.exec(await page.locator('.view .bar').first().innerText())?.[1],
    );
    equal(blocks, map.blocks, 'blocks');
}

async function shows_threads(page, server) {
    const { rows } = await server.get('/api/threads');
    equal(
        Number(await page.locator('.table').getAttribute('aria-rowcount')),
        rows.length,
        'threads',
    );
    const first = rows.find((row) => row.number === 1);
    equal(await exact(cells(page, 0).nth(5)), first.live, 'live bytes of thread 1');
}

async function shows_source(page, server) {
    const { rows } = await server.get('/api/sources');
    equal(
        Number(await page.locator('.table').first().getAttribute('aria-rowcount')),
        rows.length,
        'files',
    );
    check(
        (await page.locator('.split > div').last().innerText()).length > 20,
        'nothing is shown of the file',
    );
}

async function shows_diff(page, server) {
    const tree = await server.get('/api/tree?by_function=1&base_at=peak');
    equal(
        number_in(await page.locator('.flame-status .num').first().getAttribute('title')),
        tree.total,
        'the change',
    );
}

async function shows_query(page, server) {
    const answer = await server.get(`/api/sql?q=${encodeURIComponent('SELECT 3 AS a, 4 AS b')}`);
    equal(await cells(page, 0).allInnerTexts(), answer.rows[0].map(String), 'the row');
}

export const VIEWS = [
    {
        hash: '#/summary',
        asks: '/api/contexts',
        shows: shows_summary,
        follows: true,
        in_export: true,
    },
    { hash: '#/flame', asks: '/api/tree', shows: shows_flame, follows: true, in_export: true },
    { hash: '#/tree', asks: '/api/tree', shows: shows_tree, follows: true, in_export: true },
    {
        hash: '#/contexts',
        asks: '/api/contexts',
        shows: shows_contexts,
        follows: true,
        in_export: true,
    },
    {
        hash: '#/callers',
        asks: '/api/functions',
        shows: shows_callers,
        follows: true,
        in_export: true,
    },
    { hash: '#/diff', asks: '/api/tree', shows: shows_diff, follows: true },
    {
        hash: '#/histograms',
        asks: '/api/histogram',
        shows: shows_histograms,
        follows: true,
        in_export: true,
    },
    { hash: '#/map', asks: '/api/map', shows: shows_map, follows: true, in_export: true },
    {
        hash: '#/threads',
        asks: '/api/threads',
        shows: shows_threads,
        follows: true,
        in_export: true,
    },
    {
        hash: '#/source',
        asks: '/api/sources',
        shows: shows_source,
        follows: true,
        same_text: false,
    },
    {
        hash: '#/query?sql.q=SELECT%203%20AS%20a%2C%204%20AS%20b',
        asks: '/api/sql',
        shows: shows_query,
        follows: false,
    },
];

export async function view_tests(page, server) {
    for (const view of VIEWS) {
        await test(`${view.hash.split('?')[0]} shows what the interface says`, async () => {
            await go(page, view.hash);
            equal(await page.locator('.message.is-error').allInnerTexts(), [], 'errors');
            await view.shows(page, server);
            await shot(page, view.hash.split('?')[0].replace(/\W/g, ''));
        });
    }

    await test('the table sorts, filters and groups', async () => {
        await go(page, '#/contexts');
        await page.getByRole('columnheader', { name: 'Allocated' }).getByRole('button').click();
        await settled(page);
        const { rows } = await server.get('/api/contexts?sort=allocated');
        equal(await exact(cells(page, 0).nth(5)), rows[0].allocated, 'sorted');
        await page.getByRole('button', { name: 'Library' }).click();
        await settled(page);
        const by = await server.get('/api/contexts?group=library');
        equal(
            Number(await page.locator('.table').getAttribute('aria-rowcount')),
            by.rows_total,
            'libraries',
        );
        await go(page, '#/contexts');
        await page.keyboard.press('/');
        await page.keyboard.type('make_item');
        await page.waitForFunction(() => location.hash.includes('ctx.q=make_item'));
        await settled(page);
        equal(Number(await page.locator('.table').getAttribute('aria-rowcount')), 1, 'filtered');
        await page.locator('.table-row').first().click();
        await page.locator('.stack').first().waitFor();
        check((await page.locator('.stack').innerText()).includes('parse_items'), 'no stack');
    });

    await test('a caller leads to its callees', async () => {
        await go(page, '#/callers?fn.name=serve');
        const answer = await server.get('/api/function?name=serve');
        equal(answer.callees.length > 2, true, 'callees of serve');
        const callees = page.getByRole('grid', { name: 'Callees' });
        equal(
            Number(await callees.getAttribute('aria-rowcount')),
            answer.callees.length,
            'callees',
        );
        await page
            .getByRole('grid', { name: 'Callers' })
            .getByRole('button', { name: /^main/ })
            .click();
        await settled(page);
        check((await page.locator('.function-name').innerText()).startsWith('main'), 'not at main');
    });

    await test('a query completes, runs and says what is wrong', async () => {
        await go(page, '#/query');
        const { tables } = await server.get('/api/sql/tables');
        await page.locator('textarea').fill(`SELECT * FROM ${tables[0].name.slice(0, 3)}`);
        await page.locator('textarea').press('End');
        await page.keyboard.press('Control+Space');
        await page.locator('.completions li').first().waitFor();
        await page.keyboard.press('Tab');
        check(
            (await page.locator('textarea').inputValue()).includes(tables[0].name),
            'not completed',
        );
        await page.locator('textarea').fill('SELEC 1');
        await page.keyboard.press('Control+Enter');
        await page.locator('.message.is-error').waitFor();
        check(
            /syntax error/.test(await page.locator('.message.is-error').innerText()),
            'no message of SQLite',
        );
        page.complaints = page.complaints.filter((text) => !/400/.test(text));
    });

    await test('two recordings differ in red and blue', async () => {
        await go(page, '#/diff?diff.f=1');
        const tree = await server.get('/api/tree?by_function=1&metric=peak&base_f=1');
        equal(
            number_in(await page.locator('.flame-status .num').first().getAttribute('title')),
            tree.total,
            'the change',
        );
        await shot(page, 'diff-files');
    });

    await test('search in the flame graph counts what matches', async () => {
        await go(page, '#/flame?flame.q=store%3A%3A&metric=allocated');
        const text = await page.locator('.search-result').innerText();
        check(/^[1-9]\d* frames? match/.test(text), text);
        await page.locator('.flame canvas').click({ position: { x: 300, y: 50 } });
        await settled(page);
        check(page.url().includes('flame.zoom='), 'a click does not zoom');
        await shot(page, 'flame-search');
    });
}
