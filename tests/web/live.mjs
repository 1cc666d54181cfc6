// SPDX-License-Identifier: MIT
//
// The page on a program that runs: a real one for the control socket, and a recording that grows in
// its name.
import { spawn } from 'node:child_process';
import {
    check,
    compile,
    equal,
    eventually,
    file,
    muninn,
    open_page,
    OUT,
    Server,
    settled,
    shot,
    Skip,
    test,
} from './harness.mjs';

// On a busy machine the monitor may take longer to answer than the server waits for it.
async function start_on_running() {
    return await eventually(async () => {
        const server = await Server.start('muninn.heap.grow');
        const { files } = await server.get('/api/files');
        if (files[0].live) return server;
        server.stop();
        throw new Error('it is not called running');
    });
}

// A click as the page sees it. What follows a program is drawn anew all the time: on a busy machine
// a button may not hold still for as long as playwright takes for a click of the mouse.
async function press(page, name) {
    await page.getByRole('button', { name }).dispatchEvent('click');
}

export async function live_tests(browser) {
    await test('a running program is followed', async () => {
        const program = spawn(process.env.MUNINN, ['--tool=memcheck', '-q', 'sleep', '3600'], {
            stdio: 'ignore',
        });
        const writer = spawn(
            file('make_recording'),
            ['grow', file('muninn.heap.grow'), String(program.pid)],
            { stdio: ['pipe', 'ignore', 'inherit'] },
        );
        let server = null;
        try {
            await eventually(async () =>
                check(
                    (await muninn('ctl', String(program.pid), 'status')).ok,
                    'its monitor does not answer',
                ),
            );
            server = await start_on_running();
            const page = await open_page(browser);
            await page.goto(server.url);
            await settled(page);
            check((await page.locator('.badge.is-live').count()) === 1, 'it is not called running');
            const ran = async () =>
                (await page.locator('.facts').last().innerText()).replace(/.*ran/s, '');
            const before = await ran();
            await eventually(async () =>
                check((await ran()) !== before, `it still says ${before}`),
            );
            await press(page, 'Follow');
            await eventually(async () => {
                const frozen = await ran(); // what was under way may still arrive
                await page.waitForTimeout(1500);
                check((await ran()) === frozen, 'it follows although it should not');
            });
            await press(page, 'Snapshot');
            await page.locator('dialog').waitFor();
            await page.keyboard.press('Escape');
            await shot(page, 'live');
            writer.stdin.end();
            program.kill('SIGKILL');
            await eventually(async () =>
                check(
                    (await page.locator('.badge.is-live').count()) === 0,
                    'it is still called running',
                ),
            );
            await page.context().close();
        } finally {
            writer.kill();
            program.kill('SIGKILL');
            server?.stop();
        }
    });

    await test('a program under massif is opened by its pid, and gives a snapshot', async () => {
        if (!/^ *massif\b/m.test((await muninn('--help')).text))
            throw new Skip('this build has no tool massif');
        await compile('growing', 'tests/web/growing.c');
        const program = spawn(process.env.MUNINN, ['--tool=massif', '-q', file('growing')], {
            stdio: 'ignore',
            cwd: OUT,
        });
        const pid = String(program.pid);
        let server = null;
        try {
            await eventually(async () =>
                check((await muninn('ctl', pid, 'status')).ok, 'no answer'),
            );
            server = await Server.start(pid);
            const page = await open_page(browser);
            await page.goto(server.url);
            await settled(page);
            await press(page, 'Snapshot');
            await page.locator('dialog').waitFor();
            equal(await page.locator('dialog h2').innerText(), 'Snapshot', 'the answer');
            await page.keyboard.press('Escape');
            await page.locator('.moments [data-reason=asked]').first().waitFor();
            const { states } = await server.get('/api/info');
            check(
                states.some((state) => state.reason === 'asked'),
                'the moment is not in the recording',
            );
            await shot(page, 'live-massif');
            await page.context().close();
        } finally {
            program.kill('SIGKILL');
            server?.stop();
        }
    });

    await test('a program under memcheck is opened by its pid, and checked for leaks', async () => {
        await compile('growing', 'tests/web/growing.c');
        const program = spawn(
            process.env.MUNINN,
            ['--tool=memcheck', '-q', `--json-file=${file('now.json')}`, file('growing')],
            { stdio: 'ignore', cwd: OUT },
        );
        const pid = String(program.pid);
        let server = null;
        try {
            await eventually(async () =>
                check((await muninn('ctl', pid, 'status')).ok, 'no answer'),
            );
            server = await Server.start(pid);
            const page = await open_page(browser);
            await page.goto(server.url);
            await settled(page);
            check((await page.locator('.badge.is-live').count()) === 1, 'it is not called running');
            const before = await page.locator('.finding').count();
            await press(page, 'Leak check');
            await page.locator('dialog').waitFor();
            equal(await page.locator('dialog h2').innerText(), 'Leak check', 'the answer');
            const words = await page.locator('dialog').innerText();
            check(words.includes('lost'), words);
            await shot(page, 'live-leak-check');
            await page.keyboard.press('Escape');
            await eventually(async () => {
                const shown = await page.locator('.finding').count();
                check(shown > before, `${shown} findings, ${before} before`);
            });
            const text = await page.locator('main').innerText();
            check(/definitely lost/.test(text), text.slice(0, 300));
            await shot(page, 'live-memcheck');
            await page.context().close();
        } finally {
            program.kill('SIGKILL');
            server?.stop();
        }
    });
}
