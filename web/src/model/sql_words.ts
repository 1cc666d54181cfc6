// SPDX-License-Identifier: MIT
//
// What could stand at a place in a query: tables, the columns of those it names, words of SQL.
import type { SqlTable } from '../api/types';

export interface Completion {
    readonly text: string;
    readonly note: string;
}

const WORDS = [
    'SELECT',
    'FROM',
    'WHERE',
    'GROUP BY',
    'ORDER BY',
    'LIMIT',
    'HAVING',
    'JOIN',
    'LEFT JOIN',
    'ON',
    'AS',
    'AND',
    'OR',
    'NOT',
    'NULL',
    'IS',
    'IN',
    'LIKE',
    'GLOB',
    'BETWEEN',
    'DISTINCT',
    'CASE',
    'WHEN',
    'THEN',
    'ELSE',
    'END',
    'DESC',
    'ASC',
    'UNION ALL',
    'WITH',
    'OVER',
    'PARTITION BY',
    'count(*)',
    'sum(',
    'avg(',
    'min(',
    'max(',
    'total(',
    'coalesce(',
    'round(',
];
const MOST = 40;

// The word being typed before `caret`: "a.si" → qualifier "a", start "si".
export function word_before(
    text: string,
    caret: number,
): { start: number; qualifier: string; word: string } {
    const match = /(?:([A-Za-z_]\w*)\.)?([A-Za-z_]\w*)?$/.exec(text.slice(0, caret));
    const word = match?.[2] ?? '';
    return { start: caret - word.length, qualifier: match?.[1] ?? '', word };
}

// Tables that the query names, by name and alias.
function named_tables(text: string, tables: readonly SqlTable[]): Map<string, SqlTable> {
    const found = new Map<string, SqlTable>();
    for (const match of text.matchAll(
        /\b(?:from|join|,)\s+([A-Za-z_]\w*)(?:\s+(?:as\s+)?([A-Za-z_]\w*))?/gi,
    )) {
        const table = tables.find((other) => other.name.toLowerCase() === match[1]?.toLowerCase());
        if (table) {
            found.set(table.name.toLowerCase(), table);
            if (match[2]) found.set(match[2].toLowerCase(), table);
        }
    }
    return found;
}

export function complete(text: string, caret: number, tables: readonly SqlTable[]): Completion[] {
    const { qualifier, word } = word_before(text, caret);
    const named = named_tables(text, tables);
    const columns = (table: SqlTable): Completion[] =>
        table.columns.map((column) => ({
            text: column.name,
            note: `${table.name} · ${column.type}`,
        }));
    let all: Completion[];
    if (qualifier) {
        const table =
            named.get(qualifier.toLowerCase()) ??
            tables.find((other) => other.name.toLowerCase() === qualifier.toLowerCase());
        all = table ? columns(table) : [];
    } else {
        if (word === '') return [];
        const is_table_place = /\b(from|join)\s+\w*$/i.test(text.slice(0, caret));
        const of = [...new Set(named.values())];
        all = [
            ...(is_table_place ? [] : (of.length ? of : tables).flatMap(columns)),
            ...tables.map((table) => ({ text: table.name, note: 'table' })),
            ...(is_table_place ? [] : WORDS.map((text_) => ({ text: text_, note: '' }))),
        ];
    }
    const start = word.toLowerCase();
    const seen = new Set<string>();
    return all
        .filter((item) => {
            const lower = item.text.toLowerCase();
            const is_new = lower.startsWith(start) && lower !== start && !seen.has(lower);
            seen.add(lower);
            return is_new;
        })
        .slice(0, MOST);
}
