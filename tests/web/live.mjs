// SPDX-License-Identifier: MIT
//
// The page on a program that runs: a real one for the control socket, and a recording that grows in
// its name.
import { spawn } from 'node:child_process';
import {
    check,
    eventually,
    file,
    muninn,
    open_page,
    Server,
    settled,
    shot,
    test,
} from './harness.mjs';

export async function live_tests(browser) {
    await test('a running program is followed', async () => {
        const program = spawn(process.env.MUNINN, ['--tool=memcheck', '-q', 'sleep', '60'], {
            stdio: 'ignore',
        });
        const writer = spawn(
            file('make_recording'),
            ['grow', file('muninn.heap.grow'), String(program.pid)],
            { stdio: ['pipe', 'ignore', 'inherit'] },
        );
        let server = null;
        try {
            await eventually(() =>
                check(
                    muninn('ctl', String(program.pid), 'status').ok,
                    'its monitor does not answer',
                ),
            );
            server = await Server.start('muninn.heap.grow');
            const page = await open_page(browser);
            await page.goto(server.url);
            await settled(page);
            check((await page.locator('.badge.is-live').count()) === 1, 'it is not called running');
            const ran = async () =>
                (await page.locator('.facts').last().innerText()).replace(/.*ran/s, '');
            const before = await ran();
            await eventually(
                async () => check((await ran()) !== before, `it still says ${before}`),
                8000,
            );
            await page.getByRole('button', { name: 'Follow' }).click();
            const frozen = await ran();
            await page.waitForTimeout(1500);
            check((await ran()) === frozen, 'it follows although it should not');
            await page.getByRole('button', { name: 'Snapshot' }).click();
            await page.locator('dialog').waitFor();
            await page.keyboard.press('Escape');
            await shot(page, 'live');
            writer.stdin.end();
            program.kill('SIGKILL');
            await eventually(
                async () =>
                    check(
                        (await page.locator('.badge.is-live').count()) === 0,
                        'it is still called running',
                    ),
                8000,
            );
            await page.context().close();
        } finally {
            writer.kill();
            program.kill('SIGKILL');
            server?.stop();
        }
    });
}
