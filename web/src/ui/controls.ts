// SPDX-License-Identifier: MIT
//
// Controls bound to a key of the URL: they show its value when refreshed, and write it when used.
import { METRICS, metric_of } from '../model/state';
import type { Store } from '../model/state';
import { debounce, h, replace } from './dom';

export interface Control {
    readonly element: HTMLElement;
    refresh(): void;
}

export interface Choice {
    readonly id: string;
    readonly name: string;
    readonly help?: string;
}

const TYPING_MS = 200;

export function choose(
    store: Store,
    key: string,
    label: string,
    choices: () => readonly Choice[],
    otherwise = '',
): Control {
    const select = h('select', {
        'aria-label': label,
        onchange: () => store.set({ [key]: select.value === otherwise ? null : select.value }),
    });
    let shown = '';
    return {
        element: h('label', { class: 'field' }, label, select),
        refresh() {
            const list = choices();
            const ids = list.map((choice) => `${choice.id}\0${choice.name}`).join('\0');
            if (ids !== shown) {
                shown = ids;
                replace(
                    select,
                    list.map((choice) =>
                        h('option', { value: choice.id, title: choice.help }, choice.name),
                    ),
                );
            }
            select.value = store.get(key, otherwise);
        },
    };
}

// A row of buttons of which one is pressed.
export function segments(
    store: Store,
    key: string,
    label: string,
    choices: readonly Choice[],
    otherwise: string,
): Control {
    const buttons = choices.map((choice) =>
        h(
            'button',
            {
                type: 'button',
                title: choice.help,
                onclick: () => store.set({ [key]: choice.id === otherwise ? null : choice.id }),
            },
            choice.name,
        ),
    );
    return {
        element: h('div', { class: 'segments', role: 'group', 'aria-label': label }, buttons),
        refresh() {
            const value = store.get(key, otherwise);
            choices.forEach((choice, i) => {
                buttons[i]?.setAttribute('aria-pressed', String(choice.id === value));
            });
        },
    };
}

export function check(store: Store, key: string, label: string, help: string): Control {
    const box = h('input', { type: 'checkbox', onchange: () => store.set({ [key]: box.checked }) });
    return {
        element: h('label', { class: 'field check', title: help }, box, label),
        refresh() {
            box.checked = store.flag(key);
        },
    };
}

// The metric, of which one is always pressed, chosen or not.
export function metric_buttons(store: Store, is_live: () => boolean): Control {
    const row = segments(store, 'metric', 'Metric', METRICS, '');
    return {
        element: row.element,
        refresh() {
            const now = metric_of(store, is_live());
            METRICS.forEach((metric, i) =>
                row.element.children[i]?.setAttribute('aria-pressed', String(metric.id === now)),
            );
        },
    };
}

// Options behind one button, which shows whether any of them is on.
export function menu(label: string, controls: readonly Control[], is_used: () => boolean): Control {
    const element = h(
        'details',
        { class: 'menu' },
        h('summary', {}, label),
        h(
            'div',
            { class: 'menu-panel' },
            controls.map((control) => control.element),
        ),
    );
    document.addEventListener('pointerdown', (event) => {
        if (element.open && !element.contains(event.target as Node)) element.open = false;
    });
    element.addEventListener('keydown', (event) => {
        if (event.key === 'Escape' && element.open) {
            element.open = false;
            event.stopPropagation();
        }
    });
    return {
        element,
        refresh() {
            refresh_all(controls);
            element.classList.toggle('is-used', is_used());
        },
    };
}

export interface SearchControl extends Control {
    focus(): void;
}

export function search(
    store: Store,
    key: string,
    label: string,
    placeholder = label,
): SearchControl {
    const apply = debounce(TYPING_MS, () => store.set({ [key]: input.value }, true));
    const input = h('input', {
        type: 'search',
        'aria-label': label,
        placeholder,
        spellcheck: 'false',
        autocomplete: 'off',
        oninput: apply,
        onkeydown: (event: KeyboardEvent) => {
            if (event.key === 'Escape') {
                input.value = '';
                store.set({ [key]: null }, true);
                input.blur();
                event.stopPropagation();
            }
        },
    });
    return {
        element: input,
        refresh() {
            if (document.activeElement !== input) input.value = store.get(key);
        },
        focus() {
            input.focus();
            input.select();
        },
    };
}

export function refresh_all(controls: readonly Control[]): void {
    for (const control of controls) control.refresh();
}

// What a search field means: words that must all occur, or /a regular expression/.
export function matcher(text: string): ((label: string) => boolean) | null {
    if (!text.trim()) return null;
    const pattern = /^\/(.+)\/$/.exec(text);
    if (pattern) {
        try {
            const expression = new RegExp(pattern[1] ?? '', 'i');
            return (label) => expression.test(label);
        } catch {
            return null;
        }
    }
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    return (label) => {
        const lower = label.toLowerCase();
        return words.every((word) => lower.includes(word));
    };
}
