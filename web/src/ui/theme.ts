// SPDX-License-Identifier: MIT
//
// Light and dark. The system's wish is followed until the user chooses; the choice is remembered in
// the browser if that lets us. Canvases take their colours from colours(), which reads the style
// sheet's variables once per theme.

type Choice = 'auto' | 'light' | 'dark';
const KEY = 'muninn-theme';
const system = window.matchMedia('(prefers-color-scheme: dark)');
const listeners: (() => void)[] = [];
let choice: Choice = read_choice();
let cache = new Map<string, string>();

function read_choice(): Choice {
    try {
        const kept = localStorage.getItem(KEY);
        return kept === 'light' || kept === 'dark' ? kept : 'auto';
    } catch {
        return 'auto'; // a file:// page may have no storage
    }
}

export function is_dark(): boolean {
    return choice === 'auto' ? system.matches : choice === 'dark';
}

function apply(): void {
    document.documentElement.dataset['theme'] = is_dark() ? 'dark' : 'light';
    cache = new Map();
    for (const listener of listeners) listener();
}

export function toggle_theme(): void {
    choice = is_dark() ? 'light' : 'dark';
    try {
        localStorage.setItem(KEY, choice);
    } catch {
        // It holds until the page is closed.
    }
    apply();
}

export function start_theme(): void {
    system.addEventListener('change', apply);
    apply();
}

export function on_theme(listener: () => void): void {
    listeners.push(listener);
}

// The value of a variable of theme.css: colour('accent').
export function colour(name: string): string {
    let value = cache.get(name);
    if (value === undefined) {
        value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
        cache.set(name, value);
    }
    return value;
}

export const SERIES_COLOURS = 10;

export function series_colour(index: number): string {
    return colour(`s${index % SERIES_COLOURS}`);
}
