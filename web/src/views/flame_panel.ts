// SPDX-License-Identifier: MIT
//
// A flame graph with its tool tip and status line: the flame view, the difference and the leaks are
// this with different questions. Knows how to open "N more".
import { question_mark } from '../api/client';
import type { Api, Params } from '../api/client';
import type { TreeAnswer } from '../api/types';
import { flame_layout, flame_search } from '../model/flame';
import type { FlameLayout } from '../model/flame';
import { bytes, bytes_exact, count, percent, plural, shortened, signed } from '../model/format';
import { FrameTree } from '../model/tree';
import { matcher } from '../ui/controls';
import { h, replace } from '../ui/dom';
import { FlameCanvas, node_label } from '../ui/flame_canvas';
import type { Hit } from '../ui/flame_canvas';
import { flame_svg } from '../ui/flame_svg';
import { facts, hide_tip, show_tip } from '../ui/tooltip';

export interface FlamePanelHost {
    zoomed(id: number): void;
    chosen(frame: string): void; // the id and its question
    show_function?(name: string): void;
    filter_function?(name: string): void;
    announce(text: string): void;
}

export class FlamePanel {
    readonly element: HTMLElement;
    readonly canvas: FlameCanvas;
    private readonly status = h('div', { class: 'flame-status', role: 'status' });
    private tree: FrameTree | null = null;
    private layout: FlameLayout | null = null;
    private params: Params = {};
    private path = '/api/tree';
    private search_text = '';
    private chosen = 0;

    constructor(
        private readonly api: Api,
        private readonly host: FlamePanelHost,
    ) {
        this.canvas = new FlameCanvas({
            hover: (hit, x, y) => this.on_hover(hit, x, y),
            zoomed: (node) => this.host.zoomed(node === 0 ? 0 : (this.tree?.columns.id[node] ?? 0)),
            chosen: (node) => this.on_chosen(node),
            open_hidden: (node) => void this.open_hidden(node),
        });
        this.element = h('div', { class: 'view-body' }, this.canvas.element, this.status);
    }

    // `zoom`: the id of the node to show, 0: all. The columns are copied: they grow.
    show(
        path: string,
        params: Params,
        answer: TreeAnswer,
        own: (object: string) => boolean,
        zoom: number,
        chosen = '',
    ): void {
        const kept =
            this.tree && this.params['f'] === params['f'] ? this.tree.path(this.canvas.zoomed) : [];
        const was_same =
            this.layout !== null && zoom === (this.tree?.columns.id[this.canvas.zoomed] ?? 0);
        this.params = params;
        this.path = path;
        this.tree = new FrameTree(structuredClone(answer), own);
        this.layout = flame_layout(this.tree, this.tree.is_change);
        this.chosen = 0;
        const node = was_same && kept.length ? this.tree.find_path(kept) : this.tree.find_id(zoom);
        this.canvas.show(this.layout, node);
        const [id, question] = chosen.split('.');
        if (id && question === question_mark(params)) {
            this.chosen = this.tree.find_id(Number(id));
            this.canvas.mark(this.chosen);
        }
        this.search(this.search_text);
    }

    zoom(id: number): void {
        const node = this.tree?.find_id(id) ?? 0;
        if (this.tree && node !== this.canvas.zoomed) this.canvas.zoom_to(node);
    }

    search(text: string): void {
        this.search_text = text;
        const test = matcher(text);
        const result = test && this.layout ? flame_search(this.layout, test) : null;
        this.canvas.set_search(result);
        this.draw_status(
            result
                ? `${plural(result.count, 'frame matches', 'frames match')}, ` +
                      `${this.write(result.value)}, ${percent(result.value, this.tree?.columns.total ?? 0)}`
                : '',
        );
    }

    // The picture as SVG; '' while there is none.
    svg(title: string): string {
        const { tree, layout } = this;
        if (!tree || !layout) return '';
        return flame_svg(layout, {
            title: `${shortened(title, 120)}: ${this.write(tree.value[0] ?? 0)} ${tree.columns.metric}`,
            zoom: this.canvas.zoomed,
            is_root_below: this.canvas.has_root_below,
            write: (node) => {
                const value = tree.value[node] ?? 0;
                return `${this.write(value)}, ${percent(value, tree.columns.total)}`;
            },
        });
    }

    private write(value: number): string {
        return this.tree?.columns.unit === 'count' ? count(value) : bytes(value);
    }

    private write_exact(value: number): string {
        return this.tree?.columns.unit === 'count' ? count(value) : bytes_exact(value);
    }

    private draw_status(found = ''): void {
        const { tree, layout, chosen } = this;
        if (!tree || !layout) return;
        const name = tree.label(chosen);
        const total = layout.is_signed ? layout.total : tree.columns.total;
        replace(
            this.status,
            h(
                'span',
                { class: 'cut' },
                h('b', {}, shortened(node_label(layout, chosen), 160)),
                ' ',
                tree.place(chosen),
            ),
            h(
                'span',
                { class: 'num', title: this.write_exact(tree.value[chosen] ?? 0) },
                this.write(tree.value[chosen] ?? 0),
                chosen ? `, ${percent(tree.value[chosen] ?? 0, total)}` : '',
            ),
            chosen > 0 &&
                this.host.show_function &&
                h(
                    'button',
                    {
                        type: 'button',
                        class: 'link',
                        onclick: () => this.host.show_function?.(name),
                    },
                    'callers and callees',
                ),
            chosen > 0 &&
                this.host.filter_function &&
                h(
                    'button',
                    {
                        type: 'button',
                        class: 'link',
                        onclick: () => this.host.filter_function?.(name),
                    },
                    'only stacks through it',
                ),
            h('span', { class: 'grow' }),
            found && h('span', { class: 'search-result' }, found),
            h(
                'span',
                {},
                `${count(tree.columns.nodes)} of ${plural(tree.columns.all_nodes, 'frame')}`,
            ),
        );
    }

    private on_chosen(node: number): void {
        this.chosen = node;
        this.search(this.search_text);
        const id = this.tree?.columns.id[node] ?? 0;
        this.host.chosen(id > 0 ? `${id}.${question_mark(this.params)}` : '');
        if (this.layout)
            this.host.announce(
                `${node_label(this.layout, node)}, ${this.write(this.tree?.value[node] ?? 0)}`,
            );
    }

    private on_hover(hit: Hit | null, x: number, y: number): void {
        const { tree } = this;
        if (!hit || !tree) return hide_tip();
        if (hit.kind === 'small')
            return show_tip(
                x,
                y,
                h('b', {}, `${count(hit.nodes)} more`),
                ' too narrow to draw. Click to zoom.',
            );
        const { node } = hit;
        if (tree.hidden[node])
            return show_tip(
                x,
                y,
                h('b', {}, `${count(tree.hidden[node] ?? 0)} more`),
                `, ${this.write(tree.value[node] ?? 0)}. Click to open.`,
            );
        show_tip(x, y, h('b', {}, shortened(tree.label(node))), facts(this.node_facts(tree, node)));
    }

    private node_facts(tree: FrameTree, node: number): [string, string][] {
        const value = tree.value[node] ?? 0;
        const is_difference = tree.is_change;
        const write = (bytes_: number): string =>
            is_difference ? signed(bytes_, (v) => this.write(v)) : this.write(bytes_);
        const rows: [string, string][] = [
            [
                is_difference ? 'change' : tree.columns.metric,
                `${write(value)}  (${this.write_exact(value)})`,
            ],
            ['of all', percent(value, tree.columns.total)],
            ['itself', write(tree.self[node] ?? 0)],
            [tree.columns.unit === 'count' ? 'stacks' : 'blocks', count(tree.blocks[node] ?? 0)],
        ];
        if (tree.columns.base.length)
            rows.push(['before', this.write(tree.columns.base[node] ?? 0)]);
        if (tree.place(node)) rows.push(['line', shortened(tree.place(node), 60)]);
        if (tree.object(node)) rows.push(['in', shortened(tree.object(node), 60)]);
        return rows;
    }

    private async open_hidden(node: number): Promise<void> {
        const { tree } = this;
        if (!tree) return;
        const parent = tree.parent[node] ?? 0;
        this.element.classList.add('is-loading');
        try {
            const answer = await this.api.get<TreeAnswer>(this.path, {
                ...this.params,
                root: tree.columns.id[parent] ?? 0,
                first: tree.columns.first[node] ?? 0,
            });
            if (tree !== this.tree) return;
            tree.graft(node, answer);
            this.layout = flame_layout(tree, tree.is_change);
            this.canvas.show(this.layout, parent);
            this.search(this.search_text);
        } catch (error) {
            this.host.announce(String(error));
            this.draw_status(error instanceof Error ? error.message : String(error));
        } finally {
            this.element.classList.remove('is-loading');
        }
    }
}
