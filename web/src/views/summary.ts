// SPDX-License-Identifier: MIT
//
// The first look: the main numbers, the largest of each kind, what was run.
import { query_string } from '../api/client';
import type { ContextsAnswer } from '../api/types';
import type { HeapInfo } from '../model/heap';
import {
    bytes,
    bytes_exact,
    count,
    count_short,
    duration,
    moment,
    percent,
    plural,
    shorten_templates,
    shortened,
    signal_name,
} from '../model/format';
import { has_course, select_time } from '../model/state';
import { h, replace } from '../ui/dom';
import type { Child } from '../ui/dom';
import { Loader } from '../ui/loader';
import { place_of } from './names';
import type { App, View, ViewKind } from './view';

const TOP = 8;
type Key = 'peak' | 'leaked' | 'allocations' | 'temporary';
const LISTS: readonly { metric: Key; title: string }[] = [
    { metric: 'peak', title: 'Most bytes at the peak' },
    { metric: 'leaked', title: 'Most bytes leaked' },
    { metric: 'allocations', title: 'Most allocations' },
    { metric: 'temporary', title: 'Most temporary allocations' },
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
    const timed = has_course(heap);
    const rate = (value: number, write: (value: number) => string): string =>
        timed && heap.clock === 'ns' ? `${write((value * 1e9) / heap.duration_ns)}/s` : '';
    return [
        card(
            'Peak heap',
            peak.heap ? bytes(peak.heap) : '–',
            peak.heap
                ? `${plural(peak.blocks, 'block')}${timed ? ` at ${duration(peak.ns)}` : ''}`
                : 'not known yet',
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
            ['in all', rate(totals.allocated, bytes)].filter(Boolean).join(', '),
            bytes_exact(totals.allocated),
        ),
        card(
            'Allocations',
            count_short(totals.allocations),
            rate(totals.allocations, count_short),
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
        ...(timed ? [card('Ran for', duration(heap.duration_ns), how_it_ended(heap))] : []),
    ];
}

function how_it_ended(heap: HeapInfo): string {
    if (heap.live) return 'and still runs';
    switch (heap.end.kind) {
        case 'exit':
            return `exit status ${heap.end.status}`;
        case 'signal':
            return `ended by ${signal_name(heap.end.signal)}`;
        case 'killed':
            return 'without notice, as by SIGKILL';
        case 'executed':
            return 'another program went on (execve)';
        case 'unknown':
            return 'how it ended is not known';
    }
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
        ['Command', heap.command ?? ''],
        ['Executable', heap.executable ?? ''],
        ['Options', heap.options ?? ''],
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

const REASONS: Record<string, string> = {
    peak: 'peak of the heap',
    'peak-mapped': 'peak of mapped pages',
    'peak-stack': 'peak of stacks',
    'peak-all': 'peak of all',
    'peak-counted': 'peak of what massif.out counts',
    asked: 'snapshot',
    threshold: 'threshold',
};
const MOMENTS_SHOWN = 100;

// Peaks and snapshots; a click selects the moment.
function moments(app: App, heap: HeapInfo): HTMLElement | null {
    const marks = heap.states.filter((state) => REASONS[state.reason]);
    if (marks.length === 0 || !has_course(heap)) return null;
    const shown = marks.slice(-MOMENTS_SHOWN);
    return h(
        'section',
        {},
        h('h2', {}, 'Marked moments'),
        h(
            'ol',
            { class: 'rank moments' },
            shown.map((state) =>
                h(
                    'li',
                    { 'data-reason': state.reason },
                    h(
                        'button',
                        {
                            type: 'button',
                            class: 'link cut',
                            title: 'Select this moment',
                            onclick: () => select_time(app.store, { kind: 'moment', at: state.ns }),
                        },
                        REASONS[state.reason],
                        state.label && h('b', {}, ` ${shortened(state.label, 60)}`),
                    ),
                    h('span', { class: 'num' }, bytes(state.heap)),
                    h('span', { class: 'num muted' }, moment(state.ns, heap.duration_ns)),
                ),
            ),
        ),
        marks.length > shown.length &&
            h('p', { class: 'faint' }, `and ${plural(marks.length - shown.length, 'earlier one')}`),
    );
}

function create(app: App): View {
    const { store } = app;
    const top = h('div', { class: 'cards' });
    const lists = h('div', { class: 'columns' });
    const content = h('div', { class: 'scroll pad' }, top, lists);
    const body = h('div', {});
    const loader = new Loader(body, content);

    function list(metric: Key, title: string, answer: ContextsAnswer): HTMLElement | null {
        const total = answer.totals[metric];
        const rows = answer.rows.filter((row) => row[metric] > 0);
        const write = metric === 'peak' || metric === 'leaked' ? bytes : count_short;
        if (rows.length === 0) return null;
        return h(
            'section',
            {},
            h('h2', {}, title),
            h(
                'ol',
                { class: 'rank' },
                rows.map((row) => {
                    const name = row.function ?? row.name;
                    return h(
                        'li',
                        {},
                        h('span', {
                            class: 'cell-bar',
                            '--part': percent_width(row[metric], total),
                        }),
                        h(
                            'button',
                            {
                                type: 'button',
                                class: 'link cut',
                                title: shortened(name),
                                onclick: () =>
                                    store.go('callers', { metric, 'fn.name': name, 'fn.id': null }),
                            },
                            shortened(shorten_templates(name), 100),
                            ' ',
                            h('span', { class: 'faint' }, shortened(place_of(row), 40)),
                        ),
                        h('span', { class: 'num' }, write(row[metric])),
                        h('span', { class: 'num muted' }, percent(row[metric], total)),
                    );
                }),
            ),
            rows.length === TOP &&
                answer.rows_total > TOP &&
                h(
                    'button',
                    {
                        type: 'button',
                        class: 'link',
                        onclick: () =>
                            store.go('contexts', {
                                'ctx.group': 'function',
                                'ctx.sort': metric,
                                'ctx.order': null,
                            }),
                    },
                    `${count(answer.rows_total - TOP)} more…`,
                ),
        );
    }

    function update(): void {
        const { heap } = app;
        if (!heap) return;
        replace(top, cards(heap));
        const asked = LISTS.map(({ metric }) => ({
            ...app.selection(),
            group: 'function',
            sort: metric,
            limit: TOP,
        }));
        void loader.load(
            asked.map((params) => query_string(params)).join('|'),
            () =>
                Promise.all(
                    asked.map((params) =>
                        app.api.get<ContextsAnswer>('/api/contexts', params).catch(() => null),
                    ),
                ),
            (answers) =>
                replace(
                    lists,
                    LISTS.map(({ metric, title }, i) => {
                        const answer = answers[i];
                        return answer ? list(metric, title, answer) : null;
                    }),
                    moments(app, heap),
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
