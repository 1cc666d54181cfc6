// SPDX-License-Identifier: MIT
//
// A table of any length: only the rows in sight are in the document. Rows come from a source, which
// may not have all of them yet and is told which are wanted. Mouse: click selects, double click
// opens. Keys: arrows, Page, Home and End select, Enter opens.
import { h, on_resize, per_frame, replace } from './dom';
import type { Child } from './dom';

export const ROW_HEIGHT = 24;

export interface Column<R> {
    readonly id: string;
    readonly label: string;
    readonly width: string; // a track of CSS grid
    readonly is_number?: boolean;
    readonly help?: string;
    readonly sorts?: boolean; // false: its head is no button
    cell(row: R): Child;
    part?(row: R): number; // −1 … 1: a bar behind the number
}

export interface RowSource<R> {
    readonly length: number;
    at(index: number): R | undefined;
    want(first: number, end: number): void;
}

export interface TableOptions<R> {
    readonly label: string;
    readonly empty: string;
    columns(): readonly Column<R>[];
    key(row: R): string;
    on_sort?(column: string): void;
    on_select?(row: R): void;
    on_open?(row: R): void;
    title?(row: R): string;
    level?(row: R): number; // of a tree, from 1
}

export function array_source<R>(rows: readonly R[]): RowSource<R> {
    return { length: rows.length, at: (index) => rows[index], want: () => undefined };
}

// The head and the rows are grids of their own: the same least width keeps their columns in line.
function least_width<R>(columns: readonly Column<R>[]): number {
    let width = 0;
    for (const column of columns) width += Number(/\d+(?=px)/.exec(column.width)?.[0] ?? 0);
    return width;
}

export class DataTable<R> {
    readonly element: HTMLElement;
    private readonly head = h('div', { class: 'table-head', role: 'row' });
    private readonly body = h('div', { class: 'table-rows', role: 'rowgroup' });
    private source: RowSource<R> = array_source<R>([]);
    private sort = { column: '', descending: true };
    private chosen = '';
    private chosen_index = -1;
    private readonly redraw = per_frame(() => this.draw());

    constructor(private readonly options: TableOptions<R>) {
        this.element = h(
            'div',
            {
                class: 'table',
                role: 'grid',
                tabindex: 0,
                'aria-label': options.label,
                onscroll: this.redraw,
                onkeydown: (event: KeyboardEvent) => this.on_key(event),
            },
            this.head,
            this.body,
        );
        on_resize(this.element, this.redraw);
    }

    set_source(source: RowSource<R>): void {
        this.source = source;
        this.element.setAttribute('aria-rowcount', String(source.length));
        this.draw_head();
        this.body.style.height = `${Math.max(1, source.length) * ROW_HEIGHT}px`;
        this.draw();
    }

    set_sort(column: string, descending: boolean): void {
        this.sort = { column, descending };
    }

    set_chosen(key: string): void {
        this.chosen = key;
        this.redraw();
    }

    // Chooses the row without telling, and scrolls to it once there is room.
    reveal(index: number, key: string): void {
        this.chosen = key;
        this.chosen_index = index;
        requestAnimationFrame(() => {
            this.show_row(index);
            this.redraw();
        });
    }

    get chosen_key(): string {
        return this.chosen;
    }

    to_top(): void {
        this.element.scrollTop = 0;
    }

    // More of the source has arrived.
    refresh(): void {
        this.redraw();
    }

    private draw_head(): void {
        const columns = this.options.columns();
        this.head.style.gridTemplateColumns = columns.map((column) => column.width).join(' ');
        this.head.style.minWidth = this.body.style.minWidth = `${least_width(columns)}px`;
        replace(
            this.head,
            columns.map((column) => this.head_cell(column)),
        );
    }

    private head_cell(column: Column<R>): HTMLElement {
        const is_sorted = column.id === this.sort.column;
        const arrow = is_sorted ? (this.sort.descending ? ' ↓' : ' ↑') : '';
        const classes = `${column.is_number ? 'is-num ' : ''}${is_sorted ? 'is-sorted' : ''}`;
        const order = this.sort.descending ? 'descending' : 'ascending';
        const content =
            column.sorts === false || !this.options.on_sort
                ? h('span', { class: 'muted cut', title: column.help }, column.label)
                : h(
                      'button',
                      {
                          type: 'button',
                          title: column.help,
                          onclick: () => this.options.on_sort?.(column.id),
                      },
                      column.label,
                      arrow,
                  );
        return h(
            'div',
            { role: 'columnheader', class: classes, 'aria-sort': is_sorted ? order : undefined },
            content,
        );
    }

    private draw(): void {
        const height = this.element.clientHeight;
        const first = Math.max(0, Math.floor((this.element.scrollTop - 28) / ROW_HEIGHT) - 4);
        const end = Math.min(this.source.length, first + Math.ceil(height / ROW_HEIGHT) + 9);
        if (this.source.length === 0) {
            replace(this.body, h('div', { class: 'message' }, this.options.empty));
            return;
        }
        this.source.want(first, end);
        const columns = this.options.columns();
        const tracks = columns.map((column) => column.width).join(' ');
        const rows: HTMLElement[] = [];
        for (let index = first; index < end; index++)
            rows.push(this.draw_row(index, columns, tracks));
        replace(this.body, rows);
    }

    private draw_row(index: number, columns: readonly Column<R>[], tracks: string): HTMLElement {
        const row = this.source.at(index);
        const key = row === undefined ? '' : this.options.key(row);
        const is_chosen = key !== '' && key === this.chosen;
        if (is_chosen) this.chosen_index = index;
        const element = h('div', {
            class: 'table-row',
            role: 'row',
            'aria-rowindex': index + 1,
            'aria-selected': String(is_chosen),
            title: row && this.options.title?.(row),
            'aria-level': row && this.options.level?.(row),
            onclick: () => this.choose(index),
            ondblclick: () => row && this.options.on_open?.(row),
        });
        element.style.top = `${index * ROW_HEIGHT}px`;
        element.style.gridTemplateColumns = tracks;
        for (const column of columns) element.append(this.draw_cell(row, column));
        return element;
    }

    private draw_cell(row: R | undefined, column: Column<R>): HTMLElement {
        const cell = h('div', { role: 'gridcell', class: column.is_number ? 'num' : '' });
        if (row === undefined) {
            cell.append('…');
            return cell;
        }
        const part = column.part?.(row) ?? 0;
        if (part !== 0 && Number.isFinite(part)) {
            const side =
                column.id === 'growth' || column.id === 'delta'
                    ? part > 0
                        ? ' is-more'
                        : ' is-less'
                    : '';
            cell.append(
                h('span', {
                    class: `cell-bar${side}`,
                    'aria-hidden': 'true',
                    '--part': `${Math.min(100, Math.abs(part) * 100)}%`,
                }),
            );
        }
        const content = column.cell(row);
        cell.append(content instanceof Node ? content : h('span', {}, content));
        return cell;
    }

    private choose(index: number): void {
        const row = this.source.at(index);
        if (row === undefined) return;
        this.chosen = this.options.key(row);
        this.chosen_index = index;
        this.redraw();
        this.options.on_select?.(row);
    }

    private on_key(event: KeyboardEvent): void {
        const page = Math.max(1, Math.floor(this.element.clientHeight / ROW_HEIGHT) - 2);
        const steps: Record<string, number> = {
            ArrowDown: 1,
            ArrowUp: -1,
            PageDown: page,
            PageUp: -page,
            Home: -1e9,
            End: 1e9,
        };
        const step = steps[event.key];
        if (event.target !== this.element) return;
        if (step !== undefined) {
            const last = this.source.length - 1;
            const index = Math.max(0, Math.min(last, this.chosen_index + step));
            this.choose(index);
            this.show_row(index);
            event.preventDefault();
        } else if (event.key === 'Enter') {
            const row = this.source.at(this.chosen_index);
            if (row !== undefined) this.options.on_open?.(row);
        }
    }

    private show_row(index: number): void {
        const top = index * ROW_HEIGHT;
        const height = this.element.clientHeight - 28;
        if (top < this.element.scrollTop) this.element.scrollTop = top;
        else if (top + ROW_HEIGHT > this.element.scrollTop + height)
            this.element.scrollTop = top + ROW_HEIGHT - height;
    }
}
