// SPDX-License-Identifier: MIT
//
// Rows that the server sends a page at a time, as they come in sight.
import type { RowSource } from '../ui/table';

const PAGE = 200;

export class PagedRows<R> implements RowSource<R> {
    private readonly rows: (R | undefined)[] = [];
    private readonly asked = new Set<number>();

    constructor(
        readonly length: number,
        first: readonly R[],
        private readonly ask: (offset: number, limit: number) => Promise<readonly R[]>,
        private readonly arrived: () => void,
    ) {
        this.put(0, first);
    }

    at(index: number): R | undefined {
        return this.rows[index];
    }

    want(first: number, end: number): void {
        for (
            let page = Math.floor(first / PAGE);
            page * PAGE < Math.min(end, this.length);
            page++
        ) {
            const offset = page * PAGE;
            if (this.asked.has(page) || this.has(offset, Math.min(offset + PAGE, this.length)))
                continue;
            this.asked.add(page);
            this.ask(offset, PAGE).then(
                (rows) => {
                    this.put(offset, rows);
                    this.arrived();
                },
                () => this.asked.delete(page),
            );
        }
    }

    private has(first: number, end: number): boolean {
        return this.rows[first] !== undefined && this.rows[end - 1] !== undefined;
    }

    private put(offset: number, rows: readonly R[]): void {
        rows.forEach((row, i) => {
            this.rows[offset + i] = row;
        });
    }
}

export const PAGE_ROWS = PAGE;
