// SPDX-License-Identifier: MIT
//
// All functions; of the chosen one, who calls it and whom it calls, each with what of the metric
// passes through that call.
import { query_string } from '../api/client';
import type { CallRow, FunctionAnswer, FunctionRow, FunctionsAnswer } from '../api/types';
import {
    bytes,
    bytes_exact,
    count,
    count_short,
    percent,
    plural,
    shorten_templates,
    shortened,
    visible,
} from '../model/format';
import { PAGE_ROWS, PagedRows } from '../model/paged';
import { METRICS, metric_of } from '../model/state';
import { refresh_all, search, metric_buttons } from '../ui/controls';
import { h, replace } from '../ui/dom';
import { Loader, message } from '../ui/loader';
import { array_source, DataTable } from '../ui/table';
import type { Column } from '../ui/table';
import { name_cell, place_of } from './names';
import type { App, View, ViewKind } from './view';

class CallersView implements View {
    readonly element: HTMLElement;
    private readonly functions: DataTable<FunctionRow>;
    private readonly callers: DataTable<CallRow>;
    private readonly callees: DataTable<CallRow>;
    private readonly title = h('div', { class: 'pane-title' });
    private readonly lines = h('div', {});
    private readonly find;
    private readonly controls;
    private readonly list_loader: Loader;
    private readonly detail_loader: Loader;
    private total = 0;
    private unit: 'bytes' | 'count' = 'bytes';
    private function_total = 0;

    constructor(private readonly app: App) {
        const { store } = app;
        this.find = search(store, 'fn.q', 'Filter functions', 'Filter  ( / )');
        const metric = metric_buttons(store, () => app.file.live);
        this.controls = [metric, this.find];
        this.functions = new DataTable<FunctionRow>({
            label: 'Functions',
            empty: 'No function allocates in what is selected.',
            columns: () => this.columns(),
            key: (row) => String(row.id),
            title: (row) => shortened(row.function),
            on_sort: (column) => this.on_sort(column),
            on_select: (row) => this.choose(row.id),
        });
        const make = (label: string, empty: string): DataTable<CallRow> =>
            new DataTable<CallRow>({
                label,
                empty,
                columns: () => this.call_columns(label),
                key: (row) => String(row.id),
                title: (row) => shortened(row.function),
                on_open: (row) => this.choose(row.id),
            });
        this.callers = make('Callers', 'Nothing calls it.');
        this.callees = make('Callees', 'It calls the allocator itself.');
        const list = h('div', {});
        const detail = h('div', {});
        this.list_loader = new Loader(list, this.functions.element);
        this.detail_loader = new Loader(
            detail,
            h(
                'div',
                { class: 'view-body' },
                this.title,
                this.callers.element,
                h('div', { class: 'pane-title' }, this.lines),
                this.callees.element,
            ),
        );
        this.element = h(
            'div',
            { class: 'view' },
            h(
                'div',
                { class: 'bar' },
                metric.element,
                h('span', { class: 'spacer' }),
                this.find.element,
            ),
            h('div', { class: 'split' }, list, detail),
        );
    }

    update(): void {
        refresh_all(this.controls);
        const { api, store } = this.app;
        const params = {
            ...this.app.selection(),
            metric: metric_of(store, this.app.file.live),
            sort: this.sort(),
            order: store.get('fn.order', 'desc'),
            search: store.get('fn.q'),
            offset: 0,
            limit: PAGE_ROWS,
        };
        this.functions.set_sort(this.sort(), store.get('fn.order') !== 'asc');
        void this.list_loader.load(
            query_string(params),
            () => api.get<FunctionsAnswer>('/api/functions', params),
            (answer) => {
                this.total = answer.total;
                this.unit = answer.unit;
                this.functions.set_source(
                    new PagedRows<FunctionRow>(
                        answer.rows_total,
                        answer.rows,
                        (offset, limit) =>
                            api
                                .get<FunctionsAnswer>('/api/functions', {
                                    ...params,
                                    offset,
                                    limit,
                                })
                                .then((more) => more.rows),
                        () => this.functions.refresh(),
                    ),
                );
                if (!store.get('fn.id') && !store.get('fn.name') && answer.rows[0])
                    store.set({ 'fn.id': answer.rows[0].id }, true);
            },
        );
        this.update_detail();
    }

    on_key(event: KeyboardEvent): boolean {
        if (event.key !== '/') return false;
        this.find.focus();
        return true;
    }

    private update_detail(): void {
        const { api, store } = this.app;
        const [id, name] = [store.get('fn.id'), store.get('fn.name')];
        this.functions.set_chosen(id);
        if (!id && !name) return this.detail_loader.show_instead(message('Choose a function'));
        const params = {
            ...this.app.selection(),
            metric: metric_of(store, this.app.file.live),
            id,
            name: id ? '' : name,
        };
        void this.detail_loader.load(
            query_string(params),
            () => api.get<FunctionAnswer>('/api/function', params),
            (answer) => {
                this.function_total = answer.total;
                this.unit = answer.unit;
                this.functions.set_chosen(String(answer.id));
                this.show_title(answer);
                this.callers.set_source(array_source(answer.callers));
                this.callees.set_source(array_source(answer.callees));
            },
        );
    }

    private show_title(answer: FunctionAnswer): void {
        const { store } = this.app;
        replace(
            this.title,
            h(
                'span',
                { class: 'cut grow function-name', title: shortened(answer.function) },
                shortened(shorten_templates(answer.function), 200),
                ' ',
                h('span', { class: 'muted' }, shortened(place_of(answer), 60)),
            ),
            h(
                'span',
                { class: 'num', title: this.exact(answer.total) },
                `${this.write(answer.total)} through it, ${this.write(answer.self)} itself`,
            ),
            h(
                'button',
                {
                    type: 'button',
                    title: 'Every view shows only stacks through this function',
                    onclick: () => store.set({ fn: answer.function }),
                },
                'Filter',
            ),
        );
        replace(
            this.lines,
            h('span', {}, 'Callees'),
            answer.lines.length > 0 &&
                h('span', { class: 'muted' }, ' of ', plural(answer.lines.length, 'line')),
            answer.lines
                .slice(0, 3)
                .map((line) =>
                    h(
                        'span',
                        { class: 'muted' },
                        `  ${visible(line.file)}:${line.line} ${this.write(line.value)}`,
                    ),
                ),
        );
    }

    private write(value: number): string {
        return this.unit === 'count' ? count_short(value) : bytes(value);
    }

    private exact(value: number): string {
        return this.unit === 'count' ? count(value) : bytes_exact(value);
    }

    private choose(id: number): void {
        this.app.store.set({ 'fn.id': id, 'fn.name': null });
    }

    private sort(): string {
        return this.app.store.get('fn.sort', 'total');
    }

    private on_sort(column: string): void {
        const { store } = this.app;
        const flip = column === this.sort() && store.get('fn.order') !== 'asc';
        store.set({
            'fn.sort': column,
            'fn.order': flip || (column === 'name' && column !== this.sort()) ? 'asc' : null,
        });
    }

    private columns(): readonly Column<FunctionRow>[] {
        const number = (
            id: 'total' | 'self',
            label: string,
            help: string,
        ): Column<FunctionRow> => ({
            id,
            label,
            help,
            width: '96px',
            is_number: true,
            part: (row) => row[id] / Math.abs(this.total),
            cell: (row) =>
                h(
                    'span',
                    { title: `${this.exact(row[id])}, ${percent(row[id], this.total)}` },
                    this.write(row[id]),
                ),
        });
        return [
            { id: 'name', label: 'Function', width: 'minmax(160px, 1fr)', cell: name_cell },
            number('total', 'Total', 'of all stacks that it is in'),
            number('self', 'Self', 'of stacks in which it called the allocator'),
        ];
    }

    private call_columns(label: string): readonly Column<CallRow>[] {
        return [
            {
                id: 'name',
                label,
                width: 'minmax(160px, 1fr)',
                sorts: false,
                cell: (row) =>
                    h(
                        'button',
                        { type: 'button', class: 'link', onclick: () => this.choose(row.id) },
                        name_cell(row),
                    ),
            },
            {
                id: 'value',
                label: metric_name(this.app),
                width: '96px',
                is_number: true,
                sorts: false,
                part: (row) => row.value / Math.abs(this.function_total),
                cell: (row) => h('span', { title: this.exact(row.value) }, this.write(row.value)),
            },
            {
                id: 'part',
                label: 'Part',
                width: '72px',
                is_number: true,
                sorts: false,
                cell: (row) => percent(row.value, this.function_total),
            },
        ];
    }
}

function metric_name(app: App): string {
    const metric = metric_of(app.store, app.file.live);
    return METRICS.find((other) => other.id === metric)?.name ?? '';
}

export const callers_view: ViewKind = {
    id: 'callers',
    title: 'Callers',
    icon: 'callers',
    files: 'heap',
    has_timeline: true,
    create: (app) => new CallersView(app),
};
