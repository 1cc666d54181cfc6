// SPDX-License-Identifier: MIT
//
// What changed: from a base (another recording, or another moment of this one) to what is selected.
// Red has grown, blue has shrunk, in the flame graph as in the table.
import { query_string } from '../api/client';
import type { Params } from '../api/client';
import type { ContextRow, ContextsAnswer, TreeAnswer } from '../api/types';
import { bytes, bytes_exact, moment, percent, plural, shortened, signed } from '../model/format';
import { PAGE_ROWS, PagedRows } from '../model/paged';
import { METRICS, metric_of, selected } from '../model/state';
import { is_own } from '../model/tree';
import { choose, refresh_all, search, segments } from '../ui/controls';
import { h, replace } from '../ui/dom';
import { Loader, message } from '../ui/loader';
import { DataTable } from '../ui/table';
import type { Column } from '../ui/table';
import { save_buttons, tree_params } from './flame';
import { FlamePanel } from './flame_panel';
import { name_cell } from './names';
import type { App, View, ViewKind } from './view';

const AS = [
    { id: '', name: 'Flame graph' },
    { id: 'table', name: 'Table' },
];
const DIRECTIONS = [
    { id: '', name: 'Top-down' },
    { id: 'up', name: 'Bottom-up' },
];
const SHOWN = METRICS.filter((metric) => metric.id !== 'growth');
type Key = 'live' | 'peak' | 'allocated' | 'allocations' | 'temporary' | 'leaked';

class DiffView implements View {
    readonly element: HTMLElement;
    private readonly controls;
    private readonly loader: Loader;
    private readonly panel: FlamePanel;
    private readonly saving: HTMLElement;
    private readonly table: DataTable<ContextRow>;
    private readonly content = h('div', { class: 'view-body' });
    private readonly words = h('div', { class: 'bar muted' });
    private highest = 1;

    constructor(private readonly app: App) {
        const { store } = app;
        this.controls = {
            file: choose(store, 'diff.f', 'Base', () => this.bases()),
            at: choose(store, 'diff.at', 'at', () => this.moments()),
            as: segments(store, 'diff.as', 'Show as', AS, ''),
            metric: choose(store, 'metric', 'of', () =>
                SHOWN.map((metric) => ({ id: metric.id, name: metric.name })),
            ),
            direction: segments(store, 'flame.dir', 'Direction', DIRECTIONS, ''),
            find: search(store, 'flame.q', 'Search', 'Search  ( / )'),
        };
        this.panel = new FlamePanel(app.api, {
            zoomed: (id) => store.set({ 'flame.zoom': id || null }),
            chosen: (frame) => store.set({ 'flame.at': frame || null }, true),
            show_function: (name) => store.go('callers', { 'fn.name': name, 'fn.id': null }),
            announce: (text) => app.announce(text),
        });
        this.table = new DataTable<ContextRow>({
            label: 'Changes',
            empty: 'Nothing changed.',
            columns: () => this.columns(),
            key: (row) => row.key,
            title: (row) => shortened(row.name),
            on_sort: () =>
                store.set({ 'diff.order': store.get('diff.order') === 'asc' ? null : 'asc' }),
            on_open: (row) => store.go('contexts', { 'ctx.key': row.key, 'ctx.group': null }),
        });
        this.saving = save_buttons(this.panel, () => app.file.command || app.file.name);
        const body = h('div', {});
        this.loader = new Loader(body, this.content);
        this.element = h(
            'div',
            { class: 'view' },
            h(
                'div',
                { class: 'bar' },
                this.controls.as.element,
                this.controls.file.element,
                this.controls.at.element,
                this.controls.metric.element,
                this.controls.direction.element,
                h('span', { class: 'spacer' }),
                this.controls.find.element,
                this.saving,
            ),
            this.words,
            body,
        );
    }

    on_key(event: KeyboardEvent): boolean {
        if (event.key !== '/') return false;
        this.controls.find.focus();
        return true;
    }

    update(): void {
        const { store, api } = this.app;
        refresh_all(Object.values(this.controls));
        this.controls.metric.element.querySelector('select')!.value = this.metric();
        const is_table = store.get('diff.as') === 'table';
        this.controls.direction.element.hidden = is_table;
        this.saving.hidden = is_table;
        const metric = this.metric();
        const selection = { ...this.selection(), ...this.base() };
        if (is_table) {
            const params = {
                ...selection,
                sort: metric,
                order: store.get('diff.order', 'desc'),
                search: store.get('flame.q'),
                offset: 0,
                limit: PAGE_ROWS,
            };
            void this.loader.load(
                `table ${query_string(params)}`,
                () => api.get<ContextsAnswer>('/api/contexts', params),
                (answer) => this.show_table(answer, params),
            );
            return;
        }
        const params = { ...selection, ...tree_params(this.app), metric };
        void this.loader.load(
            query_string(params),
            () => api.get<TreeAnswer>('/api/tree', params),
            (answer) => this.show_flame(answer, params),
        );
        this.panel.search(store.get('flame.q'));
        this.panel.canvas.refresh();
    }

    // Two cursors are two moments; else what is selected, which is a moment at its end.
    private selection(): Params {
        const time = selected(this.app.store);
        if (time.kind !== 'difference') return this.app.selection();
        const { from: _from, to: _to, ...filters } = this.app.selection() as Record<string, string>;
        return { ...filters, at: time.b };
    }

    private base(): Params {
        const { store } = this.app;
        const time = selected(store);
        const f = store.get('diff.f');
        const base_f = f !== '' && Number(f) !== this.app.file.id ? f : null;
        const at = store.get('diff.at');
        if (time.kind === 'difference' && base_f === null && at === '') return { base_at: time.a };
        if (at === 'start') return { base_f, base_at: '0' };
        return { base_f, base_at: at || (base_f === null ? this.usual_base().at : null) };
    }

    // Of the same recording: the peak, unless that is what is looked at.
    private usual_base(): { at: string; name: string } {
        const time = selected(this.app.store);
        return time.kind === 'moment' && time.at === 'peak'
            ? { at: '0', name: 'the start' }
            : { at: 'peak', name: 'the peak' };
    }

    private metric(): Key {
        const { store } = this.app;
        if (!store.get('metric')) return store.get('diff.f') ? 'peak' : 'live';
        const metric = metric_of(store, this.app.file.live);
        return metric === 'growth' ? 'live' : metric;
    }

    private bases(): { id: string; name: string }[] {
        return [
            { id: '', name: 'this recording' },
            ...this.app.files
                .filter((file) => file.kind === 'heap' && file.id !== this.app.file.id)
                .map((file) => ({ id: String(file.id), name: shortened(file.name, 50) })),
        ];
    }

    private moments(): { id: string; name: string }[] {
        const is_other = this.app.store.get('diff.f') !== '';
        const time = selected(this.app.store);
        const usual =
            time.kind === 'difference' && !is_other
                ? 'cursor A'
                : is_other
                  ? 'the same selection'
                  : this.usual_base().name;
        const rest = [
            { id: 'start', name: 'the start' },
            { id: 'peak', name: 'the peak' },
            { id: 'end', name: 'the end' },
        ];
        const states = (this.app.heap?.states ?? [])
            .filter((state) => state.label && !is_other)
            .map((state) => ({ id: String(state.ns), name: shortened(state.label ?? '', 40) }));
        return [
            { id: '', name: usual },
            ...rest.filter((other) => other.name !== usual),
            ...states,
        ];
    }

    private describe(total: number, base_total: number): void {
        const time = selected(this.app.store);
        const span = this.app.heap?.duration_ns ?? 1;
        const what =
            time.kind === 'difference' ? `${moment(time.a, span)} → ${moment(time.b, span)}` : '';
        const name =
            METRICS.find((metric) => metric.id === this.metric())?.name.toLowerCase() ?? '';
        const write = ['allocations', 'temporary'].includes(this.metric())
            ? (value: number): string => plural(value, '')
            : bytes;
        replace(
            this.words,
            h(
                'span',
                {},
                `${what} ${name}: `,
                h('strong', {}, write(base_total)),
                ' → ',
                h('strong', {}, write(base_total + total)),
                ', ',
                h(
                    'strong',
                    { class: total > 0 ? 'more-colour' : 'less-colour' },
                    signed(total, write),
                ),
                base_total
                    ? ` (${signed((total / base_total) * 100, (v) => `${v < 0 ? '−' : ''}${Math.abs(v).toFixed(1)} %`)})`
                    : '',
            ),
            h('span', { class: 'spacer' }),
            h('span', { class: 'more-colour' }, '■ grown'),
            h('span', { class: 'less-colour' }, '■ shrunk'),
        );
    }

    private show_flame(answer: TreeAnswer, params: Params): void {
        this.describe(answer.total, answer.base_total);
        if (answer.value.every((value) => value === 0))
            return this.loader.show_instead(
                message('Nothing changed', 'The base and the selection hold the same.'),
            );
        replace(this.content, this.panel.element);
        this.panel.show(
            '/api/tree',
            params,
            answer,
            is_own(this.app.heap?.only_code ?? [], this.app.heap?.executable ?? ''),
            this.app.store.number('flame.zoom') ?? 0,
            this.app.store.get('flame.at'),
        );
    }

    private show_table(answer: ContextsAnswer, params: Params): void {
        const key = this.metric();
        this.highest = Math.max(1, ...answer.rows.map((row) => Math.abs(row[key])));
        replace(this.words, plural(answer.rows_total, 'context'));
        replace(this.content, this.table.element);
        this.table.set_sort('delta', this.app.store.get('diff.order') !== 'asc');
        this.table.set_source(
            new PagedRows<ContextRow>(
                answer.rows_total,
                answer.rows,
                (offset, limit) =>
                    this.app.api
                        .get<ContextsAnswer>('/api/contexts', { ...params, offset, limit })
                        .then((more) => more.rows),
                () => this.table.refresh(),
            ),
        );
    }

    private columns(): readonly Column<ContextRow>[] {
        const key = this.metric();
        const base = (row: ContextRow): number => row.base?.[key] ?? 0;
        return [
            {
                id: 'name',
                label: 'Context',
                width: 'minmax(240px, 1fr)',
                sorts: false,
                cell: name_cell,
            },
            {
                id: 'before',
                label: 'Before',
                width: '104px',
                is_number: true,
                sorts: false,
                cell: (row) => bytes(base(row)),
            },
            {
                id: 'after',
                label: 'After',
                width: '104px',
                is_number: true,
                sorts: false,
                cell: (row) => bytes(base(row) + row[key]),
            },
            {
                id: 'delta',
                label: 'Change',
                width: '124px',
                is_number: true,
                help: 'grown or shrunk most first',
                part: (row) => row[key] / this.highest,
                cell: (row) =>
                    h(
                        'span',
                        {
                            title: bytes_exact(row[key]),
                            class: row[key] > 0 ? 'more-colour' : row[key] < 0 ? 'less-colour' : '',
                        },
                        signed(row[key], bytes),
                    ),
            },
            {
                id: 'part',
                label: '%',
                width: '84px',
                is_number: true,
                sorts: false,
                cell: (row) => (base(row) ? percent(row[key], base(row)) : row[key] ? 'new' : ''),
            },
        ];
    }
}

export const diff_view: ViewKind = {
    id: 'diff',
    title: 'Difference',
    icon: 'diff',
    files: 'heap',
    has_timeline: true,
    create: (app) => new DiffView(app),
};
