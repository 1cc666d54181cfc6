// SPDX-License-Identifier: MIT
//
// The table of who allocates: contexts, or these grouped, with every number there is; the stack of
// the chosen one beside it.
import { query_string } from '../api/client';
import type { Params } from '../api/client';
import type { ContextRow, ContextsAnswer, StackAnswer } from '../api/types';
import {
    bytes,
    bytes_exact,
    count,
    count_short,
    duration,
    percent,
    plural,
    shortened,
    signed,
} from '../model/format';
import { PAGE_ROWS, PagedRows } from '../model/paged';
import { selected, usual_metric } from '../model/state';
import { refresh_all, search, segments } from '../ui/controls';
import { h, replace } from '../ui/dom';
import { failure, Loader, message } from '../ui/loader';
import { sparkline } from '../ui/sparkline';
import { DataTable } from '../ui/table';
import type { Column } from '../ui/table';
import { name_cell, stack_list } from './names';
import type { App, View, ViewKind } from './view';

const GROUPS = [
    { id: '', name: 'Context', help: 'a row for each stack' },
    { id: 'function', name: 'Function' },
    { id: 'file', name: 'File' },
    { id: 'library', name: 'Library' },
    { id: 'thread', name: 'Thread' },
];
const SPARK_POINTS = 48;
type Key =
    | 'live'
    | 'peak'
    | 'peak_own'
    | 'allocated'
    | 'leaked'
    | 'growth'
    | 'blocks'
    | 'allocations'
    | 'temporary'
    | 'frees';

class ContextsView implements View {
    readonly element: HTMLElement;
    private readonly table: DataTable<ContextRow>;
    private readonly find;
    private readonly controls;
    private readonly loader: Loader;
    private readonly side = h('aside', { class: 'side', 'aria-label': 'Stack' });
    private readonly sum = h('span', { class: 'muted' });
    private totals: ContextsAnswer['totals'] | null = null;
    private shown_stack: number | null = null;

    constructor(private readonly app: App) {
        const { store } = app;
        this.find = search(store, 'ctx.q', 'Filter rows', 'Filter  ( / )');
        const group = segments(store, 'ctx.group', 'Group by', GROUPS, '');
        this.controls = [group, this.find];
        this.table = new DataTable<ContextRow>({
            label: 'Contexts',
            empty: 'Nothing was allocated in what is selected.',
            columns: () => this.columns(),
            key: (row) => row.key,
            title: (row) => shortened(row.name, 300),
            on_sort: (column) => this.on_sort(column),
            on_select: (row) => store.set({ 'ctx.key': row.key }, true),
            on_open: (row) =>
                row.function && store.go('callers', { 'fn.name': row.function, 'fn.id': null }),
        });
        const body = h('div', {});
        this.loader = new Loader(body, this.table.element);
        this.element = h(
            'div',
            { class: 'view' },
            h(
                'div',
                { class: 'bar' },
                h('span', { class: 'muted' }, 'Group by'),
                group.element,
                this.sum,
                h('span', { class: 'spacer' }),
                this.find.element,
            ),
            h('div', { class: 'row-of' }, h('div', { class: 'view-body' }, body), this.side),
        );
    }

    update(): void {
        refresh_all(this.controls);
        const { store, api } = this.app;
        const params = this.params();
        this.table.set_sort(this.sort(), store.get('ctx.order') !== 'asc');
        this.table.set_chosen(store.get('ctx.key'));
        void this.loader
            .load(
                query_string(params),
                () => api.get<ContextsAnswer>('/api/contexts', params),
                (answer) => {
                    this.totals = answer.totals;
                    this.sum.textContent = `${plural(answer.rows_total, 'row')}, ${bytes(answer.totals.live)} live`;
                    const rows = new PagedRows<ContextRow>(
                        answer.rows_total,
                        answer.rows,
                        (offset, limit) =>
                            api
                                .get<ContextsAnswer>('/api/contexts', { ...params, offset, limit })
                                .then((more) => more.rows),
                        () => this.table.refresh(),
                    );
                    this.table.set_source(rows);
                    this.show_stack(answer.rows);
                },
            )
            .then(() => this.show_stack(null));
    }

    on_key(event: KeyboardEvent): boolean {
        if (event.key !== '/') return false;
        this.find.focus();
        return true;
    }

    private params(): Params {
        const { store } = this.app;
        return {
            ...this.app.selection(),
            group: store.get('ctx.group'),
            sort: this.sort(),
            order: store.get('ctx.order', 'desc'),
            search: store.get('ctx.q'),
            spark: SPARK_POINTS,
            offset: 0,
            limit: PAGE_ROWS,
        };
    }

    private sort(): string {
        const is_change = selected(this.app.store).kind === 'difference';
        const usual = is_change ? 'growth' : usual_metric(this.app.store, this.app.file.live);
        return this.app.store.get('ctx.sort', usual);
    }

    private on_sort(column: string): void {
        const { store } = this.app;
        const is_descending = store.get('ctx.order') !== 'asc';
        const order =
            column === this.sort()
                ? is_descending
                    ? 'asc'
                    : null
                : column === 'name'
                  ? 'asc'
                  : null;
        store.set({ 'ctx.sort': column, 'ctx.order': order });
        this.table.to_top();
    }

    private bytes_column(id: Key, label: string, help: string): Column<ContextRow> {
        const whole = (): number => Math.abs(this.totals?.[id] ?? 0);
        return {
            id,
            label,
            help,
            width: '92px',
            is_number: true,
            part: (row) => row[id] / whole(),
            cell: (row) =>
                h(
                    'span',
                    { title: `${bytes_exact(row[id])}, ${percent(row[id], whole())}` },
                    id === 'growth' ? signed(row[id], bytes) : bytes(row[id]),
                ),
        };
    }

    private count_column(id: Key, label: string, help: string): Column<ContextRow> {
        return {
            id,
            label,
            help,
            width: '84px',
            is_number: true,
            cell: (row) => h('span', { title: count(row[id]) }, count_short(row[id])),
        };
    }

    private columns(): readonly Column<ContextRow>[] {
        const group = this.app.store.get('ctx.group');
        const time = selected(this.app.store).kind;
        const has_range = time === 'range' || time === 'difference';
        return [
            {
                id: 'name',
                label: 'Name',
                width: 'minmax(220px, 1fr)',
                cell: (row) =>
                    group === '' || group === 'function'
                        ? name_cell(row)
                        : h('span', {}, shortened(row.name, 200)),
            },
            {
                id: 'spark',
                label: 'Over time',
                width: '112px',
                sorts: false,
                help: 'live bytes over the selection; each row has its own scale',
                cell: (row) => (row.spark ? sparkline(row.spark, 96) : ''),
            },
            this.bytes_column('live', 'Live', 'bytes live at the end of the selection'),
            ...(has_range
                ? [this.bytes_column('growth', 'Growth', 'live at the end less at the start')]
                : []),
            this.bytes_column('peak', 'At peak', 'bytes live at the peak of the heap'),
            this.bytes_column('peak_own', 'Own peak', 'the most it ever had at once'),
            this.bytes_column('allocated', 'Allocated', 'bytes allocated in the selection'),
            this.bytes_column('leaked', 'Leaked', 'never freed'),
            this.count_column('blocks', 'Blocks', 'live blocks'),
            this.count_column('allocations', 'Allocs', 'calls of the allocator'),
            this.count_column('temporary', 'Temp.', 'freed before the next allocation'),
            {
                id: 'average',
                label: 'Average',
                width: '84px',
                is_number: true,
                help: 'bytes per allocation',
                cell: (row) => bytes(row.average),
            },
        ];
    }

    // The stack of the chosen row; `rows`: those just loaded.
    private show_stack(rows: readonly ContextRow[] | null): void {
        const key = this.app.store.get('ctx.key');
        const row = rows?.find((other) => other.key === key);
        const context = row?.context ?? /^c(\d+)$/.exec(key)?.[1] ?? null;
        const is_wanted = context !== null && this.app.store.get('ctx.group') === '';
        if (!key || (!is_wanted && !row)) {
            this.shown_stack = null;
            this.side.hidden = !key;
            return replace(this.side, key && message('A group', 'It stands for several stacks.'));
        }
        this.side.hidden = false;
        if (Number(context) === this.shown_stack) return;
        this.shown_stack = Number(context);
        const f = this.app.file.id;
        this.app.api.get<StackAnswer>('/api/stack', { f, context }).then(
            (answer) => replace(this.side, this.stack_pane(answer, row)),
            (error: unknown) => replace(this.side, failure(error)),
        );
    }

    private stack_pane(answer: StackAnswer, row: ContextRow | undefined): Node[] {
        const { store } = this.app;
        const close = h(
            'button',
            {
                type: 'button',
                class: 'quiet',
                'aria-label': 'Close the stack',
                onclick: () => store.set({ 'ctx.key': null }),
            },
            '✕',
        );
        return [
            h(
                'div',
                { class: 'pane-title' },
                'Stack',
                h(
                    'span',
                    { class: 'muted grow' },
                    row ? `first ${duration(row.first_ns)}, last ${duration(row.last_ns)}` : '',
                ),
                close,
            ),
            h(
                'div',
                { class: 'scroll' },
                stack_list(answer.frames, (frame) =>
                    store.go('callers', { 'fn.name': frame.function ?? '', 'fn.id': null }),
                ),
            ),
        ];
    }
}

export const contexts_view: ViewKind = {
    id: 'contexts',
    title: 'Contexts',
    icon: 'contexts',
    files: 'heap',
    has_timeline: true,
    create: (app) => new ContextsView(app),
};
