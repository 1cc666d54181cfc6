// SPDX-License-Identifier: MIT
//
// A console for SQL over the recording's tables. The query is in the URL, so a link is a saved
// query that runs when it is opened; the result is a table, bars or a line.
import uPlot from 'uplot';
import { query_string } from '../api/client';
import type { SqlAnswer, SqlValue, TablesAnswer } from '../api/types';
import { bytes, count, plural, shortened } from '../model/format';
import { axis } from '../ui/chart';
import { segments } from '../ui/controls';
import { copy_text } from '../ui/dialogs';
import { h, on_resize, replace } from '../ui/dom';
import { Loader, message } from '../ui/loader';
import { QueryEditor } from '../ui/query_editor';
import { array_source, DataTable } from '../ui/table';
import { series_colour } from '../ui/theme';
import type { App, View, ViewKind } from './view';

const AS = [
    { id: '', name: 'Table' },
    { id: 'bars', name: 'Bars' },
    { id: 'line', name: 'Line' },
];
const MOST_BARS = 200;

class QueryView implements View {
    readonly element: HTMLElement;
    private readonly editor: QueryEditor;
    private readonly as;
    private readonly loader: Loader;
    private readonly result = h('div', { class: 'view-body' });
    private readonly examples = h('select', {
        class: 'examples',
        'aria-label': 'Examples',
        onchange: () => this.take_example(),
    });
    private readonly schema = h('div', { class: 'schema', 'aria-label': 'Tables' });
    private readonly sum = h('span', { class: 'muted' });
    private readonly table: DataTable<SqlValue[]>;
    private answer: SqlAnswer | null = null;
    private tables: TablesAnswer | null = null;
    private chart: uPlot | null = null;
    private shown_query = '';

    constructor(private readonly app: App) {
        this.editor = new QueryEditor(() => this.run());
        this.as = segments(app.store, 'sql.as', 'Show as', AS, '');
        this.table = new DataTable<SqlValue[]>({
            label: 'Result',
            empty: 'No rows.',
            key: (row) => row.join('\0').slice(0, 200),
            columns: () => this.columns(),
        });
        const body = h('div', {});
        this.loader = new Loader(body, this.result);
        this.loader.show_instead(
            message(
                'Ask something',
                'Write a query, or take an example. Only reading is possible.',
            ),
        );
        this.element = h(
            'div',
            { class: 'view' },
            h(
                'div',
                { class: 'row-of' },
                h(
                    'div',
                    { class: 'view-body' },
                    h(
                        'div',
                        { class: 'query' },
                        this.editor.element,
                        h(
                            'div',
                            { class: 'query-row' },
                            h(
                                'button',
                                { type: 'button', class: 'primary', onclick: () => this.run() },
                                'Run',
                            ),
                            this.examples,
                            this.as.element,
                            this.sum,
                            h('span', { class: 'grow' }),
                            h(
                                'button',
                                {
                                    type: 'button',
                                    onclick: () => void copy_text(this.csv(), 'The result'),
                                },
                                'Copy CSV',
                            ),
                        ),
                    ),
                    body,
                ),
                h(
                    'aside',
                    { class: 'side' },
                    h('div', { class: 'pane-title' }, 'Tables'),
                    h(
                        'p',
                        { class: 'muted pad-small' },
                        ':from and :to are the range that is selected in the timeline, in ns.',
                    ),
                    this.schema,
                ),
            ),
        );
    }

    update(): void {
        this.as.refresh();
        void this.load_tables();
        const query = this.app.store.get('sql.q');
        if (query !== this.shown_query) this.editor.value = this.shown_query = query;
        if (!query) return;
        const follows = /:(from|to)\b/.test(query);
        const params = {
            ...(follows ? this.app.selection() : {}),
            f: this.app.file.id,
            q: query,
            limit: 5000,
        };
        const version = this.app.heap?.version ?? 0;
        void this.loader.load(
            `${version} ${query_string(params)}`,
            () => this.app.api.get<SqlAnswer>('/api/sql', params),
            (answer) => {
                this.answer = answer;
                this.sum.textContent =
                    `${plural(answer.rows.length, 'row')}${answer.truncated ? ' (cut off)' : ''}, ` +
                    `${answer.ms.toFixed(1)} ms`;
                this.draw();
            },
        );
        if (this.answer) this.draw();
    }

    private run(): void {
        this.loader.reset();
        const query = this.editor.value.trim();
        if (query === this.app.store.get('sql.q')) this.update();
        else this.app.store.set({ 'sql.q': query });
    }

    private async load_tables(): Promise<void> {
        if (this.tables) return;
        try {
            this.tables = await this.app.api.get<TablesAnswer>('/api/sql/tables', {
                f: this.app.file.id,
            });
        } catch {
            return replace(
                this.schema,
                h('p', { class: 'muted' }, 'The tables are not known here.'),
            );
        }
        this.editor.tables = this.tables.tables;
        replace(
            this.examples,
            h('option', { value: '' }, 'Examples…'),
            this.tables.examples.map((example, i) => h('option', { value: i }, example.title)),
        );
        replace(
            this.schema,
            this.tables.tables.map((table) => [
                h('h3', {}, table.name),
                h('p', { class: 'muted' }, table.help),
                h(
                    'ul',
                    {},
                    table.columns.map((column) =>
                        h(
                            'li',
                            {},
                            h('code', {}, column.name),
                            h('span', {}, column.help || column.type),
                        ),
                    ),
                ),
            ]),
        );
    }

    private take_example(): void {
        const example = this.tables?.examples[Number(this.examples.value)];
        if (!example || this.examples.value === '') return;
        this.editor.value = example.query;
        this.examples.value = '';
        this.run();
    }

    // ------------------------------------------------------------------ result

    private draw(): void {
        const answer = this.answer!;
        const as = this.app.store.get('sql.as');
        this.chart?.destroy();
        this.chart = null;
        if (as === 'bars') replace(this.result, this.bars(answer));
        else if (as === 'line') this.line(answer);
        else {
            replace(this.result, this.table.element);
            this.table.set_source(array_source(answer.rows));
        }
    }

    private columns() {
        const answer = this.answer;
        return (answer?.columns ?? []).map((name, i) => {
            const is_number = is_numeric(answer!, i);
            return {
                id: name,
                label: shortened(name, 40),
                sorts: false,
                is_number,
                width: is_number ? '130px' : 'minmax(160px, 1fr)',
                cell: (row: SqlValue[]) => write_value(row[i] ?? null, name),
            };
        });
    }

    private bars(answer: SqlAnswer): HTMLElement {
        const value = answer.columns.findIndex((_, i) => is_numeric(answer, i) && i > 0);
        const at = value < 0 ? answer.columns.findIndex((_, i) => is_numeric(answer, i)) : value;
        if (at < 0) return message('No bars', 'They need a column of numbers.');
        const rows = answer.rows.slice(0, MOST_BARS);
        const high = Math.max(...rows.map((row) => Number(row[at] ?? 0)), 1e-9);
        return h(
            'div',
            { class: 'scroll pad' },
            h(
                'div',
                { class: 'hist' },
                rows.map((row) => [
                    h(
                        'span',
                        { class: 'cut bar-name' },
                        shortened(String(row[at === 0 ? 1 : 0] ?? ''), 80),
                    ),
                    h(
                        'span',
                        {},
                        h('div', {
                            class: 'hist-bar',
                            '--part': `${Math.max(0, (100 * Number(row[at] ?? 0)) / high)}%`,
                        }),
                    ),
                    h(
                        'span',
                        { class: 'num' },
                        write_value(row[at] ?? null, answer.columns[at] ?? ''),
                    ),
                    h('span', {}),
                ]),
            ),
        );
    }

    // The first column across, every other column of numbers a line.
    private line(answer: SqlAnswer): void {
        const lines = answer.columns.map((_, i) => i).filter((i) => i > 0 && is_numeric(answer, i));
        if (!is_numeric(answer, 0) || lines.length === 0)
            return replace(
                this.result,
                message('No line', 'It needs numbers in the first column and in another.'),
            );
        const rows = [...answer.rows].sort((a, b) => Number(a[0]) - Number(b[0]));
        const data = [0, ...lines].map((i) =>
            rows.map((row) => (row[i] === null ? null : Number(row[i]))),
        );
        const box = h('div', { class: 'chart-box' });
        replace(this.result, box);
        const number_axis = axis({
            size: 80,
            values: (_, values) => values.map((value) => count_or_fraction(value)),
        });
        this.chart = new uPlot(
            {
                width: Math.max(200, box.clientWidth - 24),
                height: Math.max(120, box.clientHeight - 40),
                scales: { x: { time: false } },
                axes: [{ ...number_axis, size: 26 }, number_axis],
                series: [
                    { label: answer.columns[0] ?? '' },
                    ...lines.map((i, k) => ({
                        label: answer.columns[i] ?? '',
                        stroke: series_colour(k),
                        width: 1.5,
                        points: { show: rows.length < 60 },
                    })),
                ],
            },
            data as uPlot.AlignedData,
            box,
        );
        on_resize(box, (width, height) => this.chart?.setSize({ width, height: height - 40 }));
    }

    private csv(): string {
        const quote = (value: SqlValue): string => {
            const text = String(value ?? '');
            return /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
        };
        const answer = this.answer;
        return answer
            ? [answer.columns, ...answer.rows].map((row) => row.map(quote).join(',')).join('\n')
            : '';
    }
}

function is_numeric(answer: SqlAnswer, column: number): boolean {
    let seen = false;
    for (const row of answer.rows.slice(0, 100)) {
        if (typeof row[column] === 'string') return false;
        seen ||= typeof row[column] === 'number';
    }
    return seen;
}

function count_or_fraction(value: number): string {
    return Number.isInteger(value) ? count(value) : value.toPrecision(4);
}

function write_value(value: SqlValue, column: string): HTMLElement | string {
    if (value === null) return h('span', { class: 'faint' }, 'NULL');
    if (typeof value === 'string')
        return h('span', { title: shortened(value) }, shortened(value, 300));
    const text = count_or_fraction(value);
    return /bytes|size|usable/i.test(column) ? h('span', { title: bytes(value) }, text) : text;
}

export const query_view: ViewKind = {
    id: 'query',
    title: 'SQL',
    icon: 'query',
    files: 'heap',
    has_timeline: false,
    create: (app) => new QueryView(app),
};
