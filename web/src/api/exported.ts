// SPDX-License-Identifier: MIT
//
// The answers that a self-contained page carries. They were made without saying how much or in
// which order, so sorting, searching and paging of rows happens here.
import { ApiError, query_string } from './client';
import type { Params } from './client';

export interface ExportedAnswers {
    readonly version: number;
    readonly answers: Readonly<Record<string, unknown>>;
}

// What is not part of a key: how much, or in which order.
const NOT_IN_KEY = new Set([
    'points',
    'top',
    'limit',
    'offset',
    'spark',
    'cells',
    'min_ppm',
    'max_nodes',
    'max_depth',
    'sort',
    'order',
    'search',
    'format',
]);
const FLAGS = new Set(['bottom_up', 'collapse', 'fold', 'by_function', 'allocators']);
const DEFAULTS: Readonly<Record<string, string>> = {
    f: '0',
    metric: 'live',
    space: 'heap',
    group: 'context',
};

export function load_export(): ExportedAnswers | null {
    const element = document.getElementById('muninn-export');
    if (!element?.textContent) return null;
    return JSON.parse(element.textContent) as ExportedAnswers;
}

export function export_key(path: string, params: Params): string {
    const kept: Record<string, string | number | boolean | null | undefined> = {};
    for (const [name, value] of Object.entries(params)) {
        const text = String(value);
        if (!NOT_IN_KEY.has(name) && text !== DEFAULTS[name] && !(FLAGS.has(name) && text === '0'))
            kept[name] = value;
    }
    const query = query_string(kept);
    return query ? `${path}?${query}` : path;
}

type Row = Record<string, unknown>;

function row_matches(row: Row, words: string): boolean {
    return ['name', 'function', 'file', 'object'].some((key) =>
        String(row[key] ?? '')
            .toLowerCase()
            .includes(words),
    );
}

function compare(a: unknown, b: unknown): number {
    if (typeof a === 'number' && typeof b === 'number') return a - b;
    return String(a ?? '').localeCompare(String(b ?? ''));
}

// Rows sorted, searched and cut as the parameters ask.
function arrange(answer: Row, params: Params): Row {
    if (!Array.isArray(answer['rows'])) return answer;
    let rows = answer['rows'] as Row[];
    const search = params['search'];
    if (typeof search === 'string' && search)
        rows = rows.filter((row) => row_matches(row, search.toLowerCase()));
    const sort = params['sort'];
    if (typeof sort === 'string') {
        const key = sort === 'first' || sort === 'last' ? `${sort}_ns` : sort;
        const sign = params['order'] === 'asc' ? 1 : -1;
        rows = [...rows].sort(
            (a, b) => sign * compare(a[key] ?? a['function'], b[key] ?? b['function']),
        );
    }
    const offset = Number(params['offset'] ?? 0);
    const total = params['search'] ? rows.length : (answer['rows_total'] ?? rows.length);
    rows = rows.slice(offset, offset + Number(params['limit'] ?? rows.length));
    return { ...answer, rows, rows_total: total, offset };
}

export function find_exported<T>(
    exported: ExportedAnswers,
    path: string,
    params: Params,
): Promise<T> {
    const answer = exported.answers[export_key(path, params)];
    if (answer === undefined)
        return Promise.reject(
            new ApiError(
                'not-in-export',
                'This export has no answer to that. Open the recording itself with `muninn view`.',
                0,
            ),
        );
    return Promise.resolve(arrange(answer as Row, params) as T);
}
