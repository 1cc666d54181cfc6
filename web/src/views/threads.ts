// SPDX-License-Identifier: MIT
//
// The threads: when they lived, what each allocated.
import { query_string } from '../api/client';
import type { ThreadRow, ThreadsAnswer } from '../api/types';
import { bytes, bytes_exact, count, count_short, plural, shortened } from '../model/format';
import { h } from '../ui/dom';
import { Loader } from '../ui/loader';
import { sparkline } from '../ui/sparkline';
import { array_source, DataTable } from '../ui/table';
import type { Column } from '../ui/table';
import type { App, View, ViewKind } from './view';

type Key =
    'live' | 'peak' | 'allocated' | 'leaked' | 'blocks' | 'allocations' | 'frees' | 'temporary';

function life(app: App, row: ThreadRow): HTMLElement {
    const span = Math.max(1, app.heap?.duration_ns ?? 1);
    const bar = h('span', { class: 'cell-bar' });
    bar.style.left = `${((100 * row.start_ns) / span).toFixed(2)}%`;
    bar.style.right = `${(100 - (100 * (row.end_ns ?? span)) / span).toFixed(2)}%`;
    bar.style.width = 'auto';
    return bar;
}

function create(app: App): View {
    const { store } = app;
    let rows: ThreadRow[] = [];
    const sort = (): string => store.get('thr.sort', 'number');
    const bytes_column = (id: Key, label: string): Column<ThreadRow> => ({
        id,
        label,
        width: '88px',
        is_number: true,
        part: (row) => row[id] / rows.reduce((sum, other) => sum + other[id], 0),
        cell: (row) => h('span', { title: bytes_exact(row[id]) }, bytes(row[id])),
    });
    const count_column = (id: Key, label: string): Column<ThreadRow> => ({
        id,
        label,
        width: '74px',
        is_number: true,
        cell: (row) => h('span', { title: count(row[id]) }, count_short(row[id])),
    });
    const table = new DataTable<ThreadRow>({
        label: 'Threads',
        empty: 'No thread is known.',
        columns: () => [
            {
                id: 'number',
                label: '#',
                width: '44px',
                is_number: true,
                cell: (row) => count(row.number),
            },
            {
                id: 'name',
                label: 'Name',
                width: 'minmax(100px, 1fr)',
                cell: (row) => shortened(row.name ?? '–', 80),
            },
            {
                id: 'tid',
                label: 'Tid',
                width: '68px',
                is_number: true,
                cell: (row) => String(row.tid || '–'),
            },
            {
                id: 'start_ns',
                label: 'Lived',
                width: 'minmax(90px, 1fr)',
                cell: (row) => life(app, row),
            },
            {
                id: 'spark',
                label: 'Live over time',
                width: '124px',
                sorts: false,
                cell: (row) => (row.spark ? sparkline(row.spark, 108) : ''),
            },
            bytes_column('live', 'Live'),
            bytes_column('peak', 'At peak'),
            bytes_column('allocated', 'Allocated'),
            bytes_column('leaked', 'Leaked'),
            count_column('blocks', 'Blocks'),
            count_column('allocations', 'Allocs'),
            count_column('frees', 'Frees'),
            count_column('temporary', 'Temp.'),
        ],
        key: (row) => String(row.number),
        on_sort: (column) => {
            const is_again = column === sort();
            store.set({
                'thr.sort': column,
                'thr.order': is_again && store.get('thr.order') !== 'asc' ? 'asc' : null,
            });
        },
        on_open: (row) => store.set({ thread: row.number }),
    });
    const note = h('div', { class: 'bar' });
    const body = h('div', {});
    const loader = new Loader(body, table.element);

    function draw(): void {
        const key = sort() as keyof ThreadRow;
        const is_ascending =
            store.get('thr.order') === 'asc' || (key === 'number' && !store.get('thr.order'));
        table.set_sort(key, !is_ascending);
        const sign = is_ascending ? 1 : -1;
        table.set_source(
            array_source(
                [...rows].sort((a, b) => {
                    const [x, y] = [a[key] ?? '', b[key] ?? ''];
                    return (
                        sign *
                        (typeof x === 'number' && typeof y === 'number'
                            ? x - y
                            : String(x).localeCompare(String(y)))
                    );
                }),
            ),
        );
        note.textContent = `${plural(rows.length, 'thread')}. Open one to show only what it allocated.`;
    }

    return {
        element: h('div', { class: 'view' }, note, body),
        update() {
            // The filter by thread is made here, so the table must not follow it.
            const params = { ...app.selection(), thread: null, spark: 64 };
            void loader.load(
                query_string(params),
                () => app.api.get<ThreadsAnswer>('/api/threads', params),
                (answer) => {
                    rows = answer.rows;
                    draw();
                },
            );
            table.set_chosen(store.get('thread'));
            if (rows.length) draw();
        },
    };
}

export const threads_view: ViewKind = {
    id: 'threads',
    title: 'Threads',
    icon: 'threads',
    files: 'heap',
    has_timeline: true,
    create,
};
