// SPDX-License-Identifier: MIT
//
// Memcheck's findings, from a real run.
import fs from 'node:fs';
import {
    check,
    compile,
    equal,
    file,
    go,
    muninn,
    open_page,
    Server,
    settled,
    shot,
    Skip,
    test,
} from './harness.mjs';

async function make_reports() {
    await compile('faulty', 'tests/web/faulty.c');
    const result = await muninn(
        '--tool=memcheck',
        '--leak-check=full',
        '--show-leak-kinds=all',
        '-q',
        `--json-file=${file('faulty.json')}`,
        file('faulty'),
    );
    if (!fs.existsSync(file('faulty.json'))) throw new Error(result.text);
    const report = JSON.parse(fs.readFileSync(file('faulty.json'), 'utf8'));
    // A baseline without the first finding, and with one that is not found any more.
    const [first, ...others] = report.findings;
    const gone = {
        ...first,
        fingerprint: '00000000deadbeef',
        what: 'Invalid read of size 2',
        id: 99,
    };
    fs.writeFileSync(file('base.json'), JSON.stringify({ ...report, findings: [...others, gone] }));
    return report;
}

export async function findings_tests(browser) {
    let server = null;
    let page = null;
    let report = null;

    await test('findings stand by their source line, with excerpt and stacks', async () => {
        report = await make_reports();
        server = await Server.start('faulty.json', 'base.json');
        page = await open_page(browser);
        await page.goto(server.url);
        await settled(page);
        const answer = await server.get('/api/findings');
        equal(await page.locator('.finding-group').count(), answer.groups.length, 'groups');
        equal(await page.locator('.finding').count(), report.findings.length, 'findings');
        const text = await page.locator('.finding-group').first().innerText();
        check(text.includes(answer.groups[0].findings[0].what), text.slice(0, 200));
        check((await page.locator('.finding-group .excerpt .is-marked').count()) > 0, 'no excerpt');
        await shot(page, 'findings');
    });

    await test('findings are filtered by kind and searched', async () => {
        check(page, 'no page');
        const { kinds } = await server.get('/api/findings');
        await page.locator('.facet label', { hasText: kinds[0].title }).first().click();
        await settled(page);
        check(page.url().includes(`find.kind=${kinds[0].id}`), page.url());
        equal(await page.locator('.finding').count(), kinds[0].findings, 'findings of this kind');
        await go(page, '#/findings?find.q=no_such_thing');
        check(
            (await page.locator('main').innerText()).includes('Nothing matches'),
            'no empty state',
        );
    });

    await test('a finding is copied as a suppression', async () => {
        check(page, 'no page');
        await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
        await go(page, '#/findings');
        const button = page.getByRole('button', { name: 'Copy as suppression' }).first();
        if ((await button.count()) === 0) throw new Skip('the first finding has no suppression');
        await button.click();
        const text = await page.evaluate(() => navigator.clipboard.readText());
        check(/^\{\n[^]*Memcheck:[^]*\}/.test(text), text);
    });

    await test('a baseline tells what is new, known and fixed', async () => {
        check(page, 'no page');
        await go(page, '#/findings?find.base=1');
        const { baseline } = await server.get('/api/findings?base_f=1');
        equal(baseline, { new: 1, known: report.findings.length - 1, fixed: 1 }, 'baseline');
        await go(page, '#/findings?find.base=1&find.status=new');
        equal(await page.locator('.finding').count(), 1, 'new findings');
        await shot(page, 'findings-baseline');
    });

    await test('leaks are a tree', async () => {
        check(page, 'no page');
        await go(page, '#/leaks');
        const tree = await server.get('/api/leaks');
        check(tree.total > 0, 'no leak in the report');
        check(tree.names.includes('make_list'), tree.names.join());
        const rows = await page.locator('.table-row').allInnerTexts();
        check(rows.join('\n').includes('main'), rows.join('\n'));
        await shot(page, 'leaks');
        await go(page, '#/leaks?leak.by=holder');
        await page.locator('.table-row', { hasText: 'variable kept (faulty)' }).waitFor();
        await page.locator('.table-row', { hasText: 'nothing points to these' }).waitFor();
        const held = await server.get('/api/leaks?by=holder');
        equal(held.total, tree.total, 'all bytes, once');
        await shot(page, 'leaks-by-holder');
        await go(page, '#/leaks?leak.kind=leak-reachable');
        check(/main/.test(await page.locator('.table').innerText()), 'the kind leaves nothing');
        equal(page.complaints, [], 'complaints');
    });

    await test('what is open in the findings is in the address', async () => {
        check(page, 'no page');
        await go(page, '#/findings');
        const second = page.locator('.finding').nth(1);
        const id = await second.getAttribute('data-id');
        await second.locator('summary').click();
        await settled(page);
        check(page.url().includes(`find.open=${id}`), page.url());
        await page.locator('.finding-head h2 button').first().click();
        await page.locator('.source-text .is-marked, .source .is-marked').first().waitFor();
        const other = await open_page(browser);
        await other.goto(`${server.url}${new URL(page.url()).hash}`);
        await settled(other);
        await other.getByRole('button', { name: 'Back' }).click();
        await settled(other);
        check(
            await other.locator(`.finding[data-id="${id}"]`).evaluate((box) => box.open),
            'closed',
        );
        await other.context().close();
    });

    server?.stop();
    await page?.context().close();
}
