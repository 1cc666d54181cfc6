// SPDX-License-Identifier: MIT
//
// Dialogs: help, a text to read or copy.
import { h } from './dom';

function open(title: string, ...content: readonly (Node | string)[]): HTMLDialogElement {
    const dialog = h(
        'dialog',
        { 'aria-label': title, onclose: () => dialog.remove() },
        h('h2', {}, title),
        content,
        h(
            'div',
            { class: 'dialog-foot' },
            h(
                'button',
                { type: 'button', class: 'primary', onclick: () => dialog.close() },
                'Close',
            ),
        ),
    );
    document.body.append(dialog);
    dialog.showModal();
    return dialog;
}

export function text_dialog(title: string, text: string): void {
    open(title, h('pre', { class: 'mono' }, text));
}

// To the clipboard; where there is none (http on another host), into a dialog to copy from.
export async function copy_text(text: string, what: string): Promise<void> {
    try {
        await navigator.clipboard.writeText(text);
    } catch {
        text_dialog(`${what}, to copy`, text);
    }
}

const HELP: readonly (readonly [string, string])[] = [
    ['drag', 'on the timeline: select a range'],
    ['click', 'on the timeline: select a moment'],
    ['Shift click', 'on the timeline: set a second cursor, for the difference'],
    ['p', 'select the peak'],
    ['Esc', 'select the whole run'],
    ['t', 'show or hide the timeline'],
    ['/', 'search in the view'],
    ['1 … 9', 'go to a view'],
    ['← ↑ ↓ →', 'walk the flame graph or a table'],
    ['Enter', 'zoom in, open'],
    ['Backspace', 'in the flame graph: one level out'],
    ['Ctrl wheel', 'zoom at the pointer'],
    ['d', 'light or dark'],
    ['?', 'this help'],
];

export function help_dialog(): void {
    open(
        'Keys and mouse',
        h(
            'table',
            {},
            h(
                'tbody',
                {},
                HELP.map(([key, what]) =>
                    h('tr', {}, h('td', {}, h('kbd', {}, key)), h('td', {}, what)),
                ),
            ),
        ),
        h(
            'p',
            { class: 'muted' },
            'All that is shown is in the address: copy it to share what you see.',
        ),
    );
}
