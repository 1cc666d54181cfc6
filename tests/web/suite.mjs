// SPDX-License-Identifier: MIT
//
// The tests of the page. Each drives the real thing: the server on a recording, Chromium, what is
// on the screen compared with what the interface and the command line say.
import fs from 'node:fs';
import {
    check,
    equal,
    eventually,
    file,
    finish,
    go,
    make_recordings,
    muninn,
    number_in,
    open_browser,
    open_page,
    Server,
    settled,
    shot,
    test,
} from './harness.mjs';
import { VIEWS, view_tests } from './views.mjs';
import { findings_tests } from './findings.mjs';
import { foreign_tests } from './foreign.mjs';
import { live_tests } from './live.mjs';
import { real_tests } from './real.mjs';

const HASHES = VIEWS.map((view) => view.hash);

await make_recordings();
const server = await Server.start(
    'muninn.heap.demo',
    'muninn.heap.later',
    'muninn.heap.hostile',
    'muninn.heap.corrupt',
    'muninn.heap.cut',
    'muninn.heap.wide',
    'massif.out.old',
);
const browser = await open_browser();
// Tests in pages of their own, which go on beside the others.
const beside = [
    findings_tests(browser),
    foreign_tests(browser),
    live_tests(browser),
    real_tests(browser),
];
const apart = (promise) => beside.push(promise);
const page = await open_page(browser);
await page.goto(server.url);
await settled(page);

await view_tests(page, server);

await test('a range dragged on the timeline changes every view', async () => {
    const was_asked = (path, wanted) =>
        page.asked.some((url) => {
            const { pathname, searchParams } = new URL(url);
            return (
                pathname === path &&
                Object.entries(wanted).every(
                    ([key, value]) => searchParams.get(key) === String(value),
                )
            );
        });
    await go(page, '#/summary');
    const box = await page.locator('.u-over').boundingBox();
    await page.mouse.move(box.x + box.width * 0.2, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.3, box.y + 45);
    await page.mouse.move(box.x + box.width * 0.4, box.y + 45);
    await page.mouse.up();
    await settled(page);
    const params = new URLSearchParams(page.url().split('?').at(-1));
    const [from, to] = [Number(params.get('from')), Number(params.get('to'))];
    const { duration_ns } = await server.get('/api/info');
    check(
        Math.abs(from / duration_ns - 0.2) < 0.02 && Math.abs(to / duration_ns - 0.4) < 0.02,
        `${from} ${to}`,
    );
    for (const view of VIEWS.filter((other) => other.follows)) {
        await go(page, `${view.hash}?from=${from}&to=${to}`);
        check(was_asked(view.asks, { from, to }), `${view.hash} did not ask for the range`);
        const in_range = await page.locator('.view').first().innerText();
        await go(page, `${view.hash}?at=peak`);
        check(was_asked(view.asks, { at: 'peak' }), `${view.hash} did not ask for the peak`);
        check(
            view.same_text || in_range !== (await page.locator('.view').first().innerText()),
            `${view.hash} shows the same for a range and for the peak`,
        );
    }
});

await test('a click selects a moment, Shift and a click the difference to it', async () => {
    await go(page, '#/flame');
    const box = await page.locator('.u-over').boundingBox();
    await page.mouse.click(box.x + box.width * 0.25, box.y + 50);
    await settled(page);
    check(/[?&]at=\d+/.test(page.url()), page.url());
    check(
        (await page.locator('.selection-words').innerText()).startsWith('Moment'),
        'no moment in words',
    );
    await page.keyboard.down('Shift');
    await page.mouse.click(box.x + box.width * 0.75, box.y + 50);
    await page.keyboard.up('Shift');
    await settled(page);
    check(/[?&]a=\d+&b=\d+/.test(page.url()) && page.url().includes('metric=growth'), page.url());
    const [a, b] = ['a', 'b'].map((key) =>
        new URLSearchParams(page.url().split('?').at(-1)).get(key),
    );
    const tree = await server.get(`/api/tree?from=${a}&to=${b}&metric=growth&by_function=1`);
    const shown = await page.locator('.flame-status .num').first().getAttribute('title');
    equal(number_in(shown), tree.total, 'growth on screen');
});

await test('Escape selects the whole run, p the peak, t hides the timeline', async () => {
    await go(page, '#/tree?from=1&to=99999999');
    await page.locator('body').click({ position: { x: 60, y: 600 } });
    await page.keyboard.press('p');
    await settled(page);
    check(page.url().includes('at=peak'), page.url());
    await page.keyboard.press('Escape');
    await settled(page);
    check(!page.url().includes('at='), page.url());
    await page.keyboard.press('t');
    await settled(page);
    check(await page.locator('.timeline-main').isHidden(), 'the timeline is still there');
    await page.keyboard.press('t');
});

apart(
    test('a deep link restores what was on the screen', async () => {
        const first = await open_page(browser);
        await first.goto(server.url);
        await settled(first);
        for (const hash of [
            '#/contexts?at=peak&ctx.group=function&ctx.sort=allocated&ctx.q=r',
            '#/flame?flame.dir=up&flame.q=make&metric=peak&flame.below=1',
            '#/callers?fn.name=serve&metric=allocated&from=200000000&to=900000000',
            '#/diff?diff.as=table&diff.f=1',
            '#/histograms?hist.by=bytes&thread=2',
            '#/map?at=400000000',
            '#/source?metric=allocated&src.q=c',
            '#/threads?thr.sort=allocated',
            '#/summary?timeline=0&tl.group=library&space=all',
            '#/tree?tl.from=300000000&tl.to=700000000&flame.dir=up&flame.lines=1',
            '#/query?sql.as=bars&sql.q=SELECT%201%20AS%20a%2C%202%20AS%20b',
        ]) {
            await go(first, hash);
            const before = await first.locator('.content').innerText();
            const other = await open_page(browser);
            await other.goto(`${server.url}${hash}`);
            await settled(other);
            equal(
                (await other.locator('.content').innerText()).replace(/\d+\.\d ms/, ''),
                before.replace(/\d+\.\d ms/, ''),
                hash,
            );
            await other.context().close();
        }
        await first.context().close();
    }),
);

apart(
    test('a row of the tree is in the address', async () => {
        const first = await open_page(browser);
        await first.goto(`${server.url}#/tree?f=5`);
        await settled(first);
        await first.locator('.table').focus();
        for (const key of ['ArrowDown', 'ArrowRight', 'ArrowDown', 'ArrowRight', 'ArrowDown'])
            await first.keyboard.press(key);
        await settled(first);
        const chosen = '.table-row[aria-selected=true]';
        const name = await first.locator(chosen).innerText();
        const other = await open_page(browser);
        await other.goto(`${server.url}${new URL(first.url()).hash}`);
        await settled(other);
        equal(await other.locator(chosen).innerText(), name, 'the chosen row');
        await first.context().close();
        await other.context().close();
    }),
);

await test('back and forward walk through what was selected', async () => {
    await go(page, '#/contexts');
    await page.getByRole('button', { name: 'Peak', exact: true }).click();
    await settled(page);
    await page.goBack();
    await settled(page);
    check(!page.url().includes('at=peak'), page.url());
    await page.goForward();
    await settled(page);
    check(page.url().includes('at=peak'), page.url());
});

apart(
    test('hostile names are text in every view', async () => {
        const hostile = await open_page(browser);
        await hostile.goto(`${server.url}#/?f=2`);
        await settled(hostile);
        for (const hash of HASHES) {
            await go(hostile, `${hash}${hash.includes('?') ? '&' : '?'}f=2`);
            const found = await hostile.evaluate(() => ({
                hacked: 'hacked' in window,
                scripts: document.scripts.length,
                strange: document.querySelectorAll('img, b b, i, iframe, object, svg[onload]')
                    .length,
                wide: document.documentElement.scrollWidth > innerWidth,
                reordered: /[\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText),
            }));
            equal(
                found,
                { hacked: false, scripts: 1, strange: 0, wide: false, reordered: false },
                hash,
            );
            await shot(hostile, `hostile-${hash.replace(/\W+/g, '') || 'start'}`);
        }
        await go(hostile, '#/contexts?f=2');
        const text = await hostile.locator('.table').innerText();
        check(
            text.includes('<script>window.hacked = 1</script>'),
            'the name is not shown as it is',
        );
        check(text.includes('safe_\\u202eeman_desrever'), 'the bidi override is not made visible');
        equal(hostile.complaints, [], 'complaints');
        await hostile.context().close();
    }),
);

await test('a corrupt file gives a page that says so, a cut one what is there', async () => {
    await go(page, '#/?f=3');
    const text = await page.locator('main').innerText();
    check(/cannot be read/.test(text) && /corrupt/.test(text), text);
    await shot(page, 'corrupt');
    await go(page, '#/summary?f=4');
    check((await page.locator('.card').count()) >= 6, 'no summary of the cut file');
    check((await page.locator('.notice').allInnerTexts()).join().length > 0, 'no warning is shown');
    await shot(page, 'cut');
});

await test('a massif.out of another producer opens in every view', async () => {
    const { files } = await server.get('/api/files');
    equal([files[6].kind, files[6].format], ['heap', 'massif'], 'the file');
    for (const hash of HASHES) {
        await go(page, `${hash}${hash.includes('?') ? '&' : '?'}f=6`);
        const errors = await page.locator('.message.is-error h2').allInnerTexts();
        equal(
            errors.filter((title) => title !== 'Not recorded in that detail'),
            [],
            hash,
        );
        await shot(page, `massif-out-${hash.replace(/\W+/g, '').slice(0, 12)}`);
    }
    await go(page, '#/summary?f=6');
    equal(number_in(await page.locator('.card').first().getAttribute('title')), 1000, 'the peak');
    check(/guess/.test(await page.locator('.notice').innerText()), 'what is a guess is not said');
    await go(page, '#/contexts?f=6');
    check((await page.locator('.table').innerText()).includes('parse'), 'no function');
});

await test('100,000 frames stay smooth', async () => {
    await go(page, '#/flame?f=5');
    const { nodes } = await server.get('/api/tree?f=5&by_function=1&min_ppm=0&max_nodes=200000');
    check(nodes > 100_000, `only ${nodes} frames`);
    const times = await page.evaluate(async () => {
        const canvas = document.querySelector('.flame canvas');
        const slow = [];
        for (let i = 0; i < 30; i++) {
            const start = performance.now();
            canvas.dispatchEvent(
                new WheelEvent('wheel', {
                    deltaY: i % 2 ? 60 : -120,
                    ctrlKey: true,
                    bubbles: true,
                    cancelable: true,
                    clientX: 300 + 20 * i,
                    clientY: 460,
                }),
            );
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            slow.push(performance.now() - start);
        }
        return slow.sort((a, b) => a - b);
    });
    // A hundred times what is usual: what draws all of it at every step takes longer. The best ones
    // count, as the machine may be busy with other things.
    console.log(`# 100,000 frames: ${times[15].toFixed(0)} ms from wheel to picture`);
    check(times[3] < 2000, `nearly all frames take more than ${times[3].toFixed(0)} ms`);
    await shot(page, 'wide');
});

await test('the flame graph is saved as SVG', async () => {
    await go(page, '#/flame');
    const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'SVG' }).click(),
    ]);
    equal(download.suggestedFilename(), 'flame.svg', 'its name');
    await download.saveAs(file('flame.svg'));
    const drawn = await page.evaluate(
        (text) => {
            const picture = new DOMParser().parseFromString(text, 'image/svg+xml');
            return {
                root: picture.documentElement.nodeName,
                boxes: picture.querySelectorAll('g rect').length,
                titles: [...picture.querySelectorAll('title')].map((title) => title.textContent),
            };
        },
        fs.readFileSync(file('flame.svg'), 'utf8'),
    );
    const tree = await server.get('/api/tree?by_function=1&metric=peak&min_ppm=100');
    equal([drawn.root, drawn.boxes], ['svg', tree.id.length], 'what is drawn');
    const second = tree.names[tree.name[1]];
    check(drawn.titles[1].startsWith(`${second} — `), drawn.titles[1]);
});

await test('"N more" opens', async () => {
    const press = async (...keys) => {
        for (const key of keys) await page.keyboard.press(key);
    };
    await go(page, '#/tree?f=5&flame.lines=1');
    await page.locator('.table').focus();
    await press('ArrowDown', 'ArrowDown', 'ArrowRight', 'ArrowDown', 'ArrowRight');
    const more = page.getByRole('button', { name: /more…$/ }).first();
    const rows = async () => Number(await page.locator('.table').getAttribute('aria-rowcount'));
    const before = await rows();
    const hidden = number_in(await more.innerText());
    await more.click();
    await eventually(async () => equal(await rows(), before - 1 + hidden, 'rows'));
    await go(page, '#/flame?f=5');
    await page.locator('.flame canvas').focus();
    await press('ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown');
    check(
        / more$/.test(await page.locator('.flame-status b').innerText()),
        'no "N more" in the flame graph',
    );
    page.asked.length = 0;
    await press('Enter');
    await eventually(() =>
        check(
            page.asked.some((url) => /first=/.test(url)),
            'it was not asked for',
        ),
    );
});

await test('without the token nothing is told', async () => {
    for (const url of ['/', '/api/files', '/api/tree?metric=live', '/app.js'])
        equal((await fetch(server.origin + url)).status, 401, url);
    equal(
        (
            await fetch(`${server.origin}/api/files`, {
                headers: { 'X-Muninn-Token': 'f'.repeat(64) },
            })
        ).status,
        401,
        'a wrong token',
    );
});

await test('the page asks nobody else and its policy forbids what is inline', async () => {
    const others = page.asked.filter(
        (url) =>
            !url.startsWith(server.origin) && !url.startsWith('data:') && !url.startsWith('blob:'),
    );
    equal(others, [], 'other hosts');
    const answer = await fetch(server.origin + '/', {
        headers: { 'X-Muninn-Token': server.token },
    });
    const policy = answer.headers.get('content-security-policy') ?? '';
    check(/script-src 'self'/.test(policy) && !/unsafe/.test(policy), policy);
});

apart(
    test('light and dark follow the system, and the switch', async () => {
        const dark = await open_page(browser, { colorScheme: 'dark' });
        await dark.goto(server.url);
        await settled(dark);
        const theme = () => dark.evaluate(() => document.documentElement.dataset.theme);
        equal(await theme(), 'dark', 'theme');
        await dark.getByRole('button', { name: /Light or dark/ }).click();
        equal(await theme(), 'light', 'after the switch');
        await dark.reload();
        await settled(dark);
        equal(await theme(), 'light', 'after a reload');
        await dark.context().close();
    }),
);

for (const [width, height, colorScheme] of [
    [1280, 720, 'dark'],
    [2560, 1300, 'light'],
]) {
    apart(
        test(`every view fits ${width}×${height}, ${colorScheme}, and every control has a name`, async () => {
            const sized = await open_page(browser, { viewport: { width, height }, colorScheme });
            await sized.goto(server.url);
            await settled(sized);
            for (const hash of HASHES) {
                await go(sized, hash);
                const bad = await sized.evaluate(() => {
                    const wrong = [];
                    if (
                        document.documentElement.scrollWidth > innerWidth ||
                        document.documentElement.scrollHeight > innerHeight
                    )
                        wrong.push('the page scrolls');
                    for (const element of document.querySelectorAll(
                        'button, input, select, textarea, a[href], canvas[tabindex]',
                    )) {
                        const name =
                            element.getAttribute('aria-label') ??
                            element.closest('label')?.textContent ??
                            element.textContent;
                        if (!name?.trim() && !element.title)
                            wrong.push(`no name: ${element.outerHTML.slice(0, 100)}`);
                        const box = element.getBoundingClientRect();
                        if (
                            element.closest('.header, .bar') &&
                            box.width &&
                            (box.right > innerWidth + 1 || box.left < 0)
                        )
                            wrong.push(`cut off: ${name}`);
                    }
                    return wrong;
                });
                equal(bad, [], `${hash} at ${width}×${height}`);
                await shot(sized, `${hash.replace(/\W+/g, '') || 'start'}-${width}-${colorScheme}`);
            }
            equal(sized.complaints, [], 'complaints');
            await sized.context().close();
        }),
    );
}

apart(
    test('the self-contained page shows the same without a server', async () => {
        const result = await muninn(
            'view',
            `--export=${file('export.html')}`,
            'muninn.heap.demo',
            'muninn.heap.later',
        );
        check(result.ok, result.text);
        check(fs.statSync(file('export.html')).size <= 5 * 1024 * 1024, 'larger than 5 MiB');
        const saved = await open_page(browser);
        await saved.goto(`file://${file('export.html')}`);
        await settled(saved);
        for (const view of VIEWS.filter((other) => other.in_export)) {
            await go(saved, view.hash);
            equal(
                await saved.locator('.message.is-error').count(),
                0,
                `${view.hash} shows an error`,
            );
            await view.shows(saved, server);
        }
        await shot(saved, 'export');
        equal(
            saved.asked.filter((url) => !url.startsWith('file:') && !url.startsWith('data:')),
            [],
            'asked for',
        );
        equal(saved.complaints, [], 'complaints');
        await saved.context().close();
    }),
);

await test('no complaint from the browser on the way', async () => {
    equal(page.complaints, [], 'complaints');
});

await Promise.all(beside);

await browser.close();
server.stop();
finish();
