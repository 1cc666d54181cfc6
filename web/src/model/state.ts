// SPDX-License-Identifier: MIT
//
// What is on the screen is the URL's fragment, all of it: `#/flame?from=0&to=5000&metric=peak`.
// Views read it and write it and keep nothing of their own that a link should restore, so back,
// forward, reload and a link sent to a colleague all show the same. Values equal to the default
// are left out.
//
//   f            which file               from, to   the selected range, ns
//   at           a moment: ns, peak, end  a, b       two cursors: the difference from a to b
//   space        heap, mapped, stack, all fn, file, obj, thread   filters
//   metric       shared by all views that show one       NAME.x    what view NAME keeps
import type { Params } from '../api/client';
import type { Metric } from '../api/types';
import type { HeapInfo } from './heap';

export type Changes = Readonly<Record<string, string | number | boolean | null>>;

export class Store {
    view = '';
    private params = new URLSearchParams();
    private readonly listeners: (() => void)[] = [];

    constructor() {
        this.read();
        window.addEventListener('hashchange', () => {
            this.read();
            this.tell();
        });
    }

    get(key: string, otherwise = ''): string {
        return this.params.get(key) ?? otherwise;
    }

    flag(key: string): boolean {
        return this.params.get(key) === '1';
    }

    number(key: string): number | null {
        const text = this.params.get(key);
        const value = text === null || text === '' ? NaN : Number(text);
        return Number.isFinite(value) ? value : null;
    }

    // Null and '' remove a key. `replace` leaves no entry in the history: typing, dragging.
    set(changes: Changes, replace = false): void {
        this.go(this.view, changes, replace);
    }

    go(view: string, changes: Changes = {}, replace = false): void {
        const hash = this.link(view, changes);
        if (hash === location.hash) return;
        if (replace) history.replaceState(null, '', hash);
        else history.pushState(null, '', hash);
        this.read();
        this.tell();
    }

    link(view: string, changes: Changes = {}): string {
        const params = new URLSearchParams(this.params);
        for (const [key, value] of Object.entries(changes)) {
            if (value === null || value === '' || value === false) params.delete(key);
            else params.set(key, value === true ? '1' : String(value));
        }
        params.sort();
        const query = params.toString();
        return `#/${view}${query ? `?${query}` : ''}`;
    }

    subscribe(listener: () => void): void {
        this.listeners.push(listener);
    }

    private read(): void {
        const hash = location.hash.replace(/^#\/?/, '');
        const mark = hash.indexOf('?');
        this.view = mark < 0 ? hash : hash.slice(0, mark);
        this.params = new URLSearchParams(mark < 0 ? '' : hash.slice(mark + 1));
    }

    private tell(): void {
        for (const listener of this.listeners) listener();
    }
}

export type Selected =
    | { kind: 'all' }
    | { kind: 'range'; from: number; to: number }
    | { kind: 'moment'; at: number | 'peak' | 'end' }
    | { kind: 'difference'; a: number; b: number };

// A profile of pprof is one moment, which takes no time.
export function has_course(heap: HeapInfo): boolean {
    return heap.live || heap.duration_ns >= 1000;
}

export function selected(store: Store): Selected {
    const [a, b] = [store.number('a'), store.number('b')];
    if (a !== null && b !== null) return { kind: 'difference', a, b };
    const at = store.get('at');
    if (at === 'peak' || at === 'end') return { kind: 'moment', at };
    const moment = store.number('at');
    if (moment !== null) return { kind: 'moment', at: moment };
    const [from, to] = [store.number('from'), store.number('to')];
    if (from !== null && to !== null && to > from) return { kind: 'range', from, to };
    return { kind: 'all' };
}

// A selection of one kind takes the place of those of other kinds. Growth is what two cursors are
// for, and says little without a range.
export function select_time(store: Store, time: Selected, replace = false): void {
    const none = { from: null, to: null, at: null, a: null, b: null };
    const metric = store.get('metric') === 'growth' ? { metric: null } : {};
    switch (time.kind) {
        case 'all':
            return store.set({ ...none, ...metric }, replace);
        case 'range':
            return store.set(
                { ...none, from: Math.round(time.from), to: Math.round(time.to) },
                replace,
            );
        case 'moment':
            return store.set(
                {
                    ...none,
                    ...metric,
                    at: typeof time.at === 'number' ? Math.round(time.at) : time.at,
                },
                replace,
            );
        case 'difference':
            return store.set(
                { ...none, a: Math.round(time.a), b: Math.round(time.b), metric: 'growth' },
                replace,
            );
    }
}

// The parameters of a request that follow from the selection. `end_ns` is the end of a recording
// that still grows: it pins the answer to what is on the screen.
export function selection_params(store: Store, end_ns: number | null): Params {
    const time = selected(store);
    const filters = {
        f: store.get('f', '0'),
        space: store.get('space'),
        function: store.get('fn'),
        file: store.get('file'),
        object: store.get('obj'),
        thread: store.get('thread'),
    };
    switch (time.kind) {
        case 'all':
            return { ...filters, to: end_ns };
        case 'range':
            return { ...filters, from: time.from, to: time.to };
        case 'moment':
            return { ...filters, at: time.at };
        case 'difference':
            return { ...filters, from: Math.min(time.a, time.b), to: Math.max(time.a, time.b) };
    }
}

export interface MetricName {
    readonly id: Metric;
    readonly name: string;
    readonly help: string;
}

export const METRICS: readonly MetricName[] = [
    { id: 'live', name: 'Live', help: 'bytes that are live at the end of the selection' },
    { id: 'peak', name: 'Peak', help: 'bytes that were live at the peak of the heap' },
    { id: 'allocated', name: 'Allocated', help: 'bytes allocated in the selection' },
    { id: 'allocations', name: 'Allocations', help: 'calls of the allocator in the selection' },
    { id: 'temporary', name: 'Temporary', help: 'allocations freed before the next one' },
    { id: 'leaked', name: 'Leaked', help: 'bytes allocated in the selection and never freed' },
    { id: 'growth', name: 'Growth', help: 'live at the end of the range less live at its start' },
];

// What is asked for until the user chooses: of a whole run that has ended, who held memory when there
// was most of it, since at its end most has been freed; else what is live.
export function usual_metric(store: Store, is_live: boolean): Metric {
    return selected(store).kind === 'all' && !is_live ? 'peak' : 'live';
}

export function metric_of(store: Store, is_live: boolean): Metric {
    const id = store.get('metric');
    return METRICS.find((metric) => metric.id === id)?.id ?? usual_metric(store, is_live);
}
