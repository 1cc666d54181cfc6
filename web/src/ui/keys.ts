// SPDX-License-Identifier: MIT
//
// Keys that work everywhere; those of a view come first.
import { select_time } from '../model/state';
import { VIEWS } from '../views/registry';
import type { App, View } from '../views/view';
import { help_dialog } from './dialogs';
import { toggle_theme } from './theme';

function is_typing(target: EventTarget | null): boolean {
    return (
        (target instanceof HTMLInputElement && target.type !== 'checkbox') ||
        target instanceof HTMLTextAreaElement ||
        target instanceof HTMLSelectElement
    );
}

export function bind_keys(app: App, view: () => View | undefined): void {
    document.addEventListener('keydown', (event) => {
        if (
            event.ctrlKey ||
            event.metaKey ||
            event.altKey ||
            is_typing(event.target) ||
            document.querySelector('dialog[open]')
        )
            return;
        if (view()?.on_key?.(event) || run_key(app, event.key)) event.preventDefault();
    });
}

function run_key(app: App, key: string): boolean {
    const views = VIEWS.filter((kind) => kind.files === app.file.kind);
    switch (key) {
        case '?':
            help_dialog();
            return true;
        case 'd':
            toggle_theme();
            return true;
        case 't':
            app.store.set({ timeline: app.store.get('timeline') === '0' ? null : '0' });
            return true;
        case 'p':
            select_time(app.store, { kind: 'moment', at: 'peak' });
            return true;
        case 'Escape':
            select_time(app.store, { kind: 'all' });
            return true;
        default: {
            const kind = /^[1-9]$/.test(key) ? views[Number(key) - 1] : undefined;
            if (kind) app.store.go(kind.id);
            return kind !== undefined;
        }
    }
}
