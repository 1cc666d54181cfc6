// SPDX-License-Identifier: MIT
//
// How large blocks are and how long they live, in powers of two.
import { query_string } from '../api/client';
import type { HistogramAnswer, SizeBucket } from '../api/types';
import { bytes, count, duration, percent, plural } from '../model/format';
import { segments } from '../ui/controls';
import { h, replace } from '../ui/dom';
import { Loader, message } from '../ui/loader';
import type { App, View, ViewKind } from './view';

const BY = [
    { id: '', name: 'Count', help: 'how many allocations' },
    { id: 'bytes', name: 'Bytes', help: 'how many bytes they are together' },
];

interface Bar {
    readonly label: string;
    readonly value: number;
    readonly text: string;
}

function bars(rows: readonly Bar[], kind: string, name: string): HTMLElement {
    let high = 0;
    let sum = 0;
    for (const row of rows) {
        high = Math.max(high, row.value);
        sum += row.value;
    }
    return h(
        'div',
        { class: 'hist', role: 'table', 'aria-label': name },
        rows.map((row) => [
            h('span', { class: 'num muted' }, row.label),
            h(
                'span',
                {},
                h('div', {
                    class: `hist-bar ${kind}`,
                    title: row.text,
                    '--part': `${high ? ((100 * row.value) / high).toFixed(2) : 0}%`,
                }),
            ),
            h('span', { class: 'num' }, row.text),
            h('span', { class: 'num muted' }, percent(row.value, sum)),
        ]),
    );
}

function size_bars(buckets: readonly SizeBucket[], by_bytes: boolean): Bar[] {
    return buckets.map((bucket) => {
        const value = by_bytes ? (bucket.bytes ?? 0) : bucket.count;
        return {
            label:
                bucket.low === bucket.high
                    ? bytes(bucket.low)
                    : `${bytes(bucket.low)} – ${bytes(bucket.high)}`,
            value,
            text: by_bytes ? bytes(value) : count(value),
        };
    });
}

function lifetime_bars(buckets: readonly SizeBucket[]): Bar[] {
    return buckets.map((bucket) => ({
        label: `${duration(bucket.low)} – ${duration(bucket.high + 1)}`,
        value: bucket.count,
        text: count(bucket.count),
    }));
}

function create(app: App): View {
    const by = segments(app.store, 'hist.by', 'Count sizes by', BY, '');
    const content = h('div', { class: 'view-body' });
    const body = h('div', {});
    const loader = new Loader(body, content);
    let shown: HistogramAnswer | null = null;

    function draw(): void {
        if (!shown) return;
        const { sizes, lifetimes, largest, exact, allocations, frees } = shown;
        if (allocations === 0 && frees === 0)
            return loader.show_instead(
                message('Nothing here', 'Nothing was allocated or freed in what is selected.'),
            );
        const by_bytes = app.store.get('hist.by') === 'bytes' && exact;
        loader.show_content();
        replace(
            content,
            !exact &&
                h(
                    'div',
                    { class: 'notice' },
                    'Events are not kept for this selection: these are of the whole run.',
                ),
            h(
                'div',
                { class: 'charts' },
                h(
                    'section',
                    { class: 'chart' },
                    h('h2', {}, 'Sizes'),
                    h(
                        'p',
                        { class: 'muted' },
                        `${plural(allocations, 'allocation')}`,
                        largest !== null && `, the largest ${bytes(largest)}`,
                    ),
                    bars(size_bars(sizes, by_bytes), '', 'Sizes'),
                ),
                h(
                    'section',
                    { class: 'chart' },
                    h('h2', {}, 'Lifetimes'),
                    h(
                        'p',
                        { class: 'muted' },
                        `of ${plural(frees, 'block')} freed in the selection`,
                    ),
                    lifetimes.length
                        ? bars(lifetime_bars(lifetimes), 'is-2', 'Lifetimes')
                        : h('p', { class: 'muted' }, 'Nothing was freed.'),
                ),
            ),
        );
    }

    return {
        element: h(
            'div',
            { class: 'view' },
            h('div', { class: 'bar' }, h('span', { class: 'muted' }, 'Sizes by'), by.element),
            body,
        ),
        update() {
            by.refresh();
            const params = app.selection();
            void loader.load(
                query_string(params),
                () => app.api.get<HistogramAnswer>('/api/histogram', params),
                (answer) => {
                    shown = answer;
                    draw();
                },
            );
            draw();
        },
    };
}

export const histograms_view: ViewKind = {
    id: 'histograms',
    title: 'Histograms',
    icon: 'histogram',
    files: 'heap',
    has_timeline: true,
    create,
};
