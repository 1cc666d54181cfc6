// SPDX-License-Identifier: MIT
//
// Source files with what each line allocates; lines that only call deeper have a total, those that
// call the allocator a number of their own as well.
import { query_string } from '../api/client';
import type { SourceAnswer, SourceRow, SourcesAnswer } from '../api/types';
import { bytes, count_short, plural, shortened, visible } from '../model/format';
import { metric_of } from '../model/state';
import { matcher, refresh_all, search, metric_buttons } from '../ui/controls';
import { h, replace } from '../ui/dom';
import { Loader, message } from '../ui/loader';
import { array_source, DataTable } from '../ui/table';
import { SourceText } from './source_text';
import type { App, View, ViewKind } from './view';

function create(app: App): View {
    const { store } = app;
    const find = search(store, 'src.q', 'Filter files', 'Filter  ( / )');
    const metric = metric_buttons(store, () => app.file.live);
    const controls = [metric, find];
    let rows: readonly SourceRow[] = [];
    const write = (value: number): string =>
        ['allocations', 'temporary'].includes(metric_of(store, app.file.live))
            ? count_short(value)
            : bytes(value);
    const table = new DataTable<SourceRow>({
        label: 'Source files',
        empty: 'No stack names a source file.',
        columns: () => [
            {
                id: 'file',
                label: 'File',
                width: 'minmax(140px, 1fr)',
                sorts: false,
                cell: (row) =>
                    h('span', { class: row.readable ? '' : 'muted' }, shortened(row.file, 80)),
            },
            {
                id: 'total',
                label: 'Total',
                width: '96px',
                is_number: true,
                sorts: false,
                part: (row) => row.total / Math.abs(rows[0]?.total ?? 0),
                cell: (row) => write(row.total),
            },
            {
                id: 'self',
                label: 'Self',
                width: '88px',
                is_number: true,
                sorts: false,
                cell: (row) => write(row.self),
            },
        ],
        key: (row) => String(row.id),
        title: (row) =>
            shortened(
                `${row.directory ?? ''}/${row.file}${row.readable ? '' : ' (cannot be read)'}`,
            ),
        on_select: (row) => store.set({ 'src.id': row.id, 'src.line': null }),
    });
    const text = new SourceText(write);
    const title = h('div', { class: 'pane-title' });
    const [list, detail] = [h('div', {}), h('div', {})];
    const list_loader = new Loader(list, table.element);
    const detail_loader = new Loader(
        detail,
        h(
            'div',
            { class: 'view-body' },
            title,
            h(
                'div',
                { class: 'source-line source-head muted' },
                h('span', { class: 'cost' }, 'total'),
                h('span', { class: 'cost' }, 'self'),
                h('span', { class: 'gutter' }, 'line'),
                h('span', {}, ''),
            ),
            text.element,
        ),
    );

    function show_list(): void {
        const test = matcher(store.get('src.q'));
        table.set_source(
            array_source(
                test ? rows.filter((row) => test(`${row.directory ?? ''}/${row.file}`)) : rows,
            ),
        );
    }

    function show_source(answer: SourceAnswer): void {
        replace(
            title,
            h('span', { class: 'cut' }, shortened(answer.file, 80)),
            h('span', { class: 'muted cut grow' }, visible(answer.directory ?? '')),
            answer.newer && h('span', { class: 'badge is-warning' }, 'changed after the run'),
        );
        if (!answer.text) return detail_loader.show_instead(unreadable(answer));
        text.show(answer.text, answer.lines, store.number('src.line') ?? 0);
    }

    function unreadable(answer: SourceAnswer): HTMLElement {
        const box = message(
            'The source cannot be read',
            `${shortened(`${answer.directory ?? ''}/${answer.file}`)}: ${answer.error ?? ''}`,
        );
        box.append(
            h(
                'table',
                { class: 'plain-table' },
                h(
                    'tbody',
                    {},
                    answer.lines
                        .slice(0, 200)
                        .map((line) =>
                            h(
                                'tr',
                                {},
                                h('td', { class: 'num' }, `line ${line.line}`),
                                h('td', {}, shortened(line.functions.join(', '), 100)),
                                h('td', { class: 'num' }, write(line.total)),
                            ),
                        ),
                ),
            ),
        );
        const scroll = h('div', { class: 'scroll' }, box);
        return scroll;
    }

    function update_source(): void {
        const id = store.get('src.id');
        table.set_chosen(id);
        if (!id)
            return detail_loader.show_instead(
                message('Choose a file', 'Those with most memory come first.'),
            );
        const params = { ...app.selection(), metric: metric_of(store, app.file.live), id };
        void detail_loader.load(
            query_string(params),
            () => app.api.get<SourceAnswer>('/api/source', params),
            show_source,
        );
    }

    return {
        element: h(
            'div',
            { class: 'view' },
            h(
                'div',
                { class: 'bar' },
                metric.element,
                h('span', { class: 'spacer' }),
                find.element,
            ),
            h('div', { class: 'split is-list' }, list, detail),
        ),
        update() {
            refresh_all(controls);
            const params = { ...app.selection(), metric: metric_of(store, app.file.live) };
            void list_loader.load(
                query_string(params),
                () => app.api.get<SourcesAnswer>('/api/sources', params),
                (answer) => {
                    rows = answer.rows;
                    app.announce(plural(answer.rows_total, 'source file'));
                    show_list();
                    const first = rows.find((row) => row.readable) ?? rows[0];
                    if (!store.get('src.id') && first) store.set({ 'src.id': first.id }, true);
                },
            );
            show_list();
            update_source();
        },
        on_key(event) {
            if (event.key !== '/') return false;
            find.focus();
            return true;
        },
    };
}

export const source_view: ViewKind = {
    id: 'source',
    title: 'Source',
    icon: 'source',
    files: 'heap',
    has_timeline: true,
    create,
};
