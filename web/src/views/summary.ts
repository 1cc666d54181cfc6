// SPDX-License-Identifier: MIT
//
// The first look: the main numbers, the largest of each kind, what was run.
import { query_string } from '../api/client';
import type { FunctionsAnswer, HeapInfo, Metric } from '../api/types';
import {
    bytes,
    bytes_exact,
    count,
    count_short,
    duration,
    percent,
    plural,
    shorten_templates,
    shortened,
} from '../model/format';
import { h, replace } from '../ui/dom';
import type { Child } from '../ui/dom';
import { Loader } from '../ui/loader';
import { place_of } from './names';
import type { App, View, ViewKind } from './view';

const TOP = 8;
const LISTS: readonly { metric: Metric; title: string; view: string }[] = [
    { metric: 'peak', title: 'Most bytes at the peak', view: 'peak' },
    { metric: 'leaked', title: 'Most bytes leaked', view: 'leaked' },
    { metric: 'allocations', title: 'Most allocations', view: 'allocations' },
    { metric: 'temporary', title: 'Most temporary allocations', view: 'temporary' },
];

function card(label: string, value: string, note: Child = '', title = ''): HTMLElement {
    return h(
        'div',
        { class: 'card', title },
        h('div', { class: 'label' }, label),
        h('div', { class: 'value' }, value),
        h('div', { class: 'note' }, note),
    );
}

function cards(heap: HeapInfo): HTMLElement[] {
    const { totals, peak } = heap;
    const seconds = Math.max(1e-9, heap.duration_ns / 1e9);
    return [
        card(
            'Peak heap',
            peak.heap ? bytes(peak.heap) : '–',
            peak.heap ? `${plural(peak.blocks, 'block')} at ${duration(peak.ns)}` : 'not known yet',
            bytes_exact(peak.heap),
        ),
        card(
            'Peak RSS',
            heap.rss_peak ? bytes(heap.rss_peak) : '–',
            "of the program's own mappings",
            bytes_exact(heap.rss_peak),
        ),
        card(
            'Leaked',
            bytes(totals.leaked),
            `${plural(totals.leaked_blocks, 'block')} never freed`,
            bytes_exact(totals.leaked),
        ),
        card(
            'Allocated',
            bytes(totals.allocated),
            `in all, ${bytes(totals.allocated / seconds)}/s`,
            bytes_exact(totals.allocated),
        ),
        card(
            'Allocations',
            count_short(totals.allocations),
            `${count_short(totals.allocations / seconds)}/s`,
            count(totals.allocations),
        ),
        card(
            'Temporary',
            percent(totals.temporary, totals.allocations),
            `${count_short(totals.temporary)} freed before the next`,
            count(totals.temporary),
        ),
        card(
            'Contexts',
            count(heap.contexts),
            `${plural(heap.threads, 'thread')}, ${plural(heap.modules, 'module')}`,
        ),
        card('Ran for', duration(heap.duration_ns), how_it_ended(heap)),
    ];
}

function how_it_ended(heap: HeapInfo): string {
    if (heap.live) return 'and still runs';
    if (!heap.end.known) return 'how it ended is not known';
    return heap.end.signal
        ? `ended by signal ${heap.end.signal}`
        : `exit status ${heap.end.status}`;
}

function kept(heap: HeapInfo): string {
    switch (heap.events_kept) {
        case 'all':
            return `${plural(heap.events, 'event')}, all kept`;
        case 'some':
            return `${plural(heap.events, 'event')}; single blocks are known after ${duration(heap.events_kept_since_ns)}, exact sums before`;
        case 'none':
            return heap.events
                ? `${plural(heap.events, 'event')} in exact sums; no single blocks`
                : 'sums only';
    }
}

function about(app: App, heap: HeapInfo): HTMLElement {
    const rows: [string, string][] = [
        ['Command', heap.command],
        ['Executable', heap.executable],
        ['Options', heap.options],
        ['Process', heap.pid ? String(heap.pid) : ''],
        ['Recorded', kept(heap)],
        ['Started', heap.start_unix_ns ? new Date(heap.start_unix_ns / 1e6).toLocaleString() : ''],
        ['File', `${app.file.path} (${bytes(app.file.bytes)}, ${app.file.format})`],
    ];
    return h(
        'section',
        {},
        h('h2', {}, 'The run'),
        h(
            'dl',
            { class: 'facts-list' },
            rows
                .filter(([, value]) => value)
                .map(([name, value]) => [
                    h('dt', {}, name),
                    h('dd', { class: 'mono' }, shortened(value, 2000)),
                ]),
        ),
    );
}

function create(app: App): View {
    const { store } = app;
    const top = h('div', { class: 'cards' });
    const lists = h('div', { class: 'columns' });
    const content = h('div', { class: 'scroll pad' }, top, lists);
    const body = h('div', {});
    const loader = new Loader(body, content);

    function list(metric: Metric, title: string, answer: FunctionsAnswer): HTMLElement | null {
        const rows = answer.rows.filter((row) => row.self > 0);
        if (rows.length === 0) return null;
        const write = answer.unit === 'count' ? count_short : bytes;
        return h(
            'section',
            {},
            h('h2', {}, title),
            h(
                'ol',
                { class: 'rank' },
                rows.map((row) =>
                    h(
                        'li',
                        {},
                        h('span', {
                            class: 'cell-bar',
                            '--part': percent_width(row.self, answer.total),
                        }),
                        h(
                            'button',
                            {
                                type: 'button',
                                class: 'link cut',
                                title: shortened(row.function),
                                onclick: () =>
                                    store.go('callers', {
                                        metric: metric === 'live' ? null : metric,
                                        'fn.name': null,
                                        'fn.id': row.id,
                                    }),
                            },
                            shortened(shorten_templates(row.function), 100),
                            ' ',
                            h('span', { class: 'faint' }, shortened(place_of(row), 40)),
                        ),
                        h('span', { class: 'num' }, write(row.self)),
                        h('span', { class: 'num muted' }, percent(row.self, answer.total)),
                    ),
                ),
            ),
        );
    }

    function update(): void {
        const { heap } = app;
        if (!heap) return;
        replace(top, cards(heap));
        const asked = LISTS.map(({ metric }) => ({
            ...app.selection(),
            metric,
            sort: 'self',
            limit: TOP,
        }));
        void loader.load(
            asked.map((params) => query_string(params)).join('|'),
            () =>
                Promise.all(
                    asked.map((params) =>
                        app.api.get<FunctionsAnswer>('/api/functions', params).catch(() => null),
                    ),
                ),
            (answers) =>
                replace(
                    lists,
                    LISTS.map(({ metric, title }, i) => {
                        const answer = answers[i];
                        return answer ? list(metric, title, answer) : null;
                    }),
                    about(app, heap),
                ),
        );
    }

    return { element: h('div', { class: 'view' }, body), update };
}

function percent_width(part: number, whole: number): string {
    return `${whole ? Math.min(100, (100 * part) / whole).toFixed(2) : 0}%`;
}

export const summary_view: ViewKind = {
    id: 'summary',
    title: 'Summary',
    icon: 'summary',
    files: 'heap',
    has_timeline: true,
    create,
};
