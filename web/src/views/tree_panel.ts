// SPDX-License-Identifier: MIT
//
// A tree of the server as rows to open, with a search: what the views of trees share.
import { query_string } from '../api/client';
import type { Params } from '../api/client';
import type { TreeAnswer } from '../api/types';
import type { FrameTree } from '../model/tree';
import { matcher, search } from '../ui/controls';
import type { SearchControl } from '../ui/controls';
import { h } from '../ui/dom';
import { Loader } from '../ui/loader';
import { TreeTable } from '../ui/tree_table';
import type { App } from './view';

interface TreePanelOptions {
    title: string; // of the table
    path: string; // that is asked
    search: string; // the key of its state
    row: string; // that of the row that is chosen
    opened(label: string): void; // a row was opened
    // The tree to show; null: something else is shown instead.
    take(answer: TreeAnswer): FrameTree | null;
}

export class TreePanel {
    readonly body = h('div', {});
    readonly find: SearchControl;
    readonly loader: Loader;
    private readonly table: TreeTable;
    private tree: FrameTree | null = null;
    private params: Params = {};

    constructor(
        private readonly app: App,
        private readonly options: TreePanelOptions,
    ) {
        this.find = search(app.store, options.search, 'Search frames', 'Search  ( / )');
        this.table = new TreeTable(options.title, {
            open_hidden: (node) => void this.open_hidden(node),
            chosen: (node) => this.keep_row(node),
            opened: (node) => options.opened(this.tree?.label(node) ?? ''),
        });
        this.loader = new Loader(this.body, this.table.table.element);
    }

    load(params: Params, version = 0): void {
        this.params = params;
        void this.loader.load(
            `${version} ${query_string(params)}`,
            () => this.app.api.get<TreeAnswer>(this.options.path, params),
            (answer) => {
                this.tree = this.options.take(answer);
                if (this.tree) this.table.show(this.tree);
                this.filter();
                this.show_row();
            },
        );
        this.filter();
    }

    on_key(event: KeyboardEvent): boolean {
        if (event.key !== '/') return false;
        this.find.focus();
        return true;
    }

    // Ids are of one question: it stands beside them, in short.
    private keep_row(node: number): void {
        const id = this.tree?.columns.id[node] ?? -1;
        if (id > 0) this.app.store.set({ [this.options.row]: `${id}.${this.question()}` }, true);
    }

    private show_row(): void {
        const [id, question] = this.app.store.get(this.options.row).split('.');
        if (id && question === this.question())
            this.table.reveal(this.tree?.find_id(Number(id)) ?? 0);
    }

    private question(): string {
        let hash = 0;
        for (const c of query_string(this.params)) hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
        return hash.toString(36);
    }

    private filter(): void {
        if (this.tree) this.table.filter(matcher(this.app.store.get(this.options.search)));
    }

    // "N more": what is below the threshold comes now.
    private async open_hidden(node: number): Promise<void> {
        const now = this.tree;
        if (!now) return;
        const answer = await this.app.api.get<TreeAnswer>(this.options.path, {
            ...this.params,
            root: now.columns.id[now.parent[node] ?? 0] ?? 0,
            first: now.columns.first[node] ?? 0,
        });
        if (now !== this.tree) return;
        now.graft(node, answer);
        this.table.refresh();
    }
}
