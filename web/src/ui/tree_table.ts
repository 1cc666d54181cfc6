// SPDX-License-Identifier: MIT
//
// A tree of frames as a table whose rows open. A chain of single children is opened with its first,
// so that a click leads to the next choice.
import {
    bytes,
    bytes_exact,
    count,
    count_short,
    percent,
    shorten_templates,
    shortened,
    signed,
} from '../model/format';
import type { FrameTree } from '../model/tree';
import { h } from './dom';
import { array_source, DataTable } from './table';
import type { Column } from './table';

const SMALL_TREE = 40; // nodes: all of it is shown at once

export interface TreeTableEvents {
    open_hidden(node: number): void;
    chosen(node: number): void;
    opened(node: number): void; // Enter, or a double click, on a leaf
}

export class TreeTable {
    readonly table: DataTable<number>;
    private tree: FrameTree | null = null;
    private children: number[][] = [];
    private depth: number[] = [];
    private readonly open = new Set<number>();
    private matches: Uint8Array | null = null;

    constructor(
        label: string,
        private readonly events: TreeTableEvents,
    ) {
        this.table = new DataTable<number>({
            label,
            empty: 'Nothing here.',
            columns: () => this.columns(),
            key: (node) => String(node),
            title: (node) => shortened(this.tree?.label(node) ?? ''),
            level: (node) => this.depth[node] ?? 1,
            on_select: (node) => this.events.chosen(node),
            on_open: (node) => this.toggle(node),
        });
        this.table.element.addEventListener('keydown', (event) => this.on_key(event));
        this.table.element.setAttribute('role', 'treegrid');
    }

    show(tree: FrameTree): void {
        this.tree = tree;
        this.open.clear();
        this.index();
        this.expand(0, 12);
        if (tree.count <= SMALL_TREE)
            for (let node = 1; node < tree.count; node++) this.open.add(node);
        this.draw();
    }

    // Opens what is above a node and chooses it.
    reveal(node: number): void {
        const { tree } = this;
        if (!tree || node <= 0 || node >= tree.count) return;
        for (let up = tree.parent[node] ?? 0; up > 0; up = tree.parent[up] ?? 0) this.open.add(up);
        const index = this.draw().indexOf(node);
        if (index >= 0) this.table.reveal(index, String(node));
    }

    // After a graft: what was open stays open.
    refresh(): void {
        this.index();
        this.draw();
    }

    // Only branches with a node that matches, opened down to it.
    filter(test: ((label: string) => boolean) | null): void {
        const { tree } = this;
        this.matches = null;
        if (tree && test) {
            const keep = new Uint8Array(tree.count);
            for (let node = tree.count - 1; node > 0; node--) {
                if (keep[node] || test(tree.label(node))) {
                    if (keep[node]) this.open.add(node);
                    keep[node] = keep[tree.parent[node] ?? 0] = 1;
                }
            }
            this.matches = keep;
        }
        this.draw();
    }

    private index(): void {
        const tree = this.tree!;
        this.children = Array.from({ length: tree.count }, () => []);
        this.depth = new Array<number>(tree.count).fill(0);
        for (let node = 1; node < tree.count; node++) {
            const up = tree.parent[node] ?? 0;
            this.depth[node] = (this.depth[up] ?? 0) + 1;
            if (tree.value[node] || (!tree.columns.more[node] && tree.columns.id[node] !== -1))
                this.children[up]?.push(node);
        }
    }

    // Opens a node, and while there is only one way to go, what is below.
    private expand(node: number, steps: number): void {
        this.open.add(node);
        const below = this.children[node] ?? [];
        if (steps > 0 && below.length === 1 && !this.tree?.hidden[below[0]!])
            this.expand(below[0]!, steps - 1);
    }

    private toggle(node: number): void {
        if (this.tree?.hidden[node]) return this.events.open_hidden(node);
        if ((this.children[node] ?? []).length === 0) return this.events.opened(node);
        if (!this.open.delete(node)) this.expand(node, 12);
        this.draw();
    }

    private draw(): number[] {
        const rows: number[] = [];
        const walk = (node: number): void => {
            for (const child of this.children[node] ?? []) {
                if (this.matches && !this.matches[child]) continue;
                rows.push(child);
                if (this.open.has(child)) walk(child);
            }
        };
        walk(0);
        this.table.set_source(array_source(rows));
        return rows;
    }

    private on_key(event: KeyboardEvent): void {
        if (event.key === 'ArrowRight' || event.key === 'ArrowLeft') {
            const chosen = this.table.chosen_key;
            const is_open = this.open.has(Number(chosen));
            if (chosen && is_open === (event.key === 'ArrowLeft')) this.toggle(Number(chosen));
            event.preventDefault();
        }
    }

    private name(node: number): HTMLElement {
        const tree = this.tree!;
        const has_children = (this.children[node] ?? []).length > 0;
        const indent = h('span', { class: 'indent' });
        indent.style.paddingLeft = `${Math.min(60, (this.depth[node] ?? 1) - 1) * 14}px`;
        const hidden = tree.hidden[node] ?? 0;
        if (hidden)
            return h(
                'span',
                { class: 'cell-name' },
                indent,
                h(
                    'button',
                    { type: 'button', class: 'link', onclick: () => this.events.open_hidden(node) },
                    `${count(hidden)} more…`,
                ),
            );
        return h(
            'span',
            { class: 'cell-name' },
            indent,
            has_children
                ? h(
                      'button',
                      {
                          type: 'button',
                          class: 'toggle',
                          tabindex: -1,
                          'aria-label': this.open.has(node) ? 'Close' : 'Open',
                          onclick: (event: Event) => {
                              event.stopPropagation();
                              this.toggle(node);
                          },
                      },
                      this.open.has(node) ? '▾' : '▸',
                  )
                : h('span', { class: 'toggle' }),
            h('span', { class: 'cut' }, shortened(shorten_templates(tree.label(node)), 200)),
            h('span', { class: 'where' }, shortened(tree.place(node), 60)),
        );
    }

    private columns(): readonly Column<number>[] {
        const tree = this.tree;
        const is_count = tree?.columns.unit === 'count';
        const write = is_count ? count_short : bytes;
        const total = Math.abs(tree?.columns.total ?? 0);
        const is_change = tree?.columns.metric === 'growth' || (tree?.columns.base.length ?? 0) > 0;
        const value = (node: number): number => tree?.value[node] ?? 0;
        return [
            {
                id: 'name',
                label: 'Function',
                width: 'minmax(280px, 1fr)',
                sorts: false,
                cell: (node) => this.name(node),
            },
            {
                id: is_change ? 'delta' : 'value',
                label: is_change ? 'Change' : 'Total',
                width: '104px',
                is_number: true,
                sorts: false,
                part: (node) => value(node) / total,
                cell: (node) =>
                    h(
                        'span',
                        { title: is_count ? count(value(node)) : bytes_exact(value(node)) },
                        is_change ? signed(value(node), write) : write(value(node)),
                    ),
            },
            {
                id: 'part',
                label: 'Part',
                width: '78px',
                is_number: true,
                sorts: false,
                cell: (node) => percent(value(node), total),
            },
            {
                id: 'self',
                label: 'Self',
                width: '96px',
                is_number: true,
                sorts: false,
                cell: (node) => (tree?.self[node] ? write(tree.self[node] ?? 0) : ''),
            },
            {
                id: 'blocks',
                label: is_count ? 'Stacks' : 'Blocks',
                width: '88px',
                is_number: true,
                sorts: false,
                cell: (node) => count_short(tree?.blocks[node] ?? 0),
            },
        ];
    }
}
