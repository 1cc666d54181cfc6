// SPDX-License-Identifier: MIT
//
// The same trees as the flame graph's, as a table to open: top-down or bottom-up.
import { query_string } from '../api/client';
import type { Params } from '../api/client';
import type { TreeAnswer } from '../api/types';
import { metric_of } from '../model/state';
import { FrameTree, is_own } from '../model/tree';
import {
    check,
    matcher,
    menu,
    refresh_all,
    search,
    segments,
    metric_buttons,
} from '../ui/controls';
import { h } from '../ui/dom';
import { Loader } from '../ui/loader';
import { TreeTable } from '../ui/tree_table';
import { tree_params } from './flame';
import type { App, View, ViewKind } from './view';

const DIRECTIONS = [
    { id: '', name: 'Top-down', help: 'from main to the allocation' },
    { id: 'up', name: 'Bottom-up', help: 'from the allocation to main' },
];

function create(app: App): View {
    const { store, api } = app;
    const find = search(store, 'flame.q', 'Search frames', 'Search  ( / )');
    const options = menu(
        'Options',
        [
            check(
                store,
                'flame.collapse',
                'Collapse recursion',
                'A function that calls itself is one row',
            ),
            check(store, 'flame.fold', 'Fold libraries', 'Frames of one library in a row are one'),
            check(store, 'flame.own', 'Only my code', 'Leave out frames of system libraries'),
            check(store, 'flame.lines', 'Lines', 'A row for each line of a function'),
        ],
        () => ['collapse', 'fold', 'own', 'lines'].some((key) => store.flag(`flame.${key}`)),
    );
    const controls = [
        metric_buttons(store, () => app.file.live),
        segments(store, 'flame.dir', 'Direction', DIRECTIONS, ''),
        options,
        find,
    ];
    let tree: FrameTree | null = null;
    let params: Params = {};
    const table = new TreeTable('Tree of frames', {
        open_hidden: (node) => void open_hidden(node),
        chosen: () => undefined,
        opened: (node) =>
            store.go('callers', { 'fn.name': tree?.label(node) ?? '', 'fn.id': null }),
    });
    const body = h('div', {});
    const loader = new Loader(body, table.table.element);

    async function open_hidden(node: number): Promise<void> {
        const now = tree;
        if (!now) return;
        const answer = await api.get<TreeAnswer>('/api/tree', {
            ...params,
            root: now.columns.id[now.parent[node] ?? 0] ?? 0,
            first: now.columns.first[node] ?? 0,
        });
        if (now === tree) {
            now.graft(node, answer);
            table.refresh();
        }
    }

    return {
        element: h(
            'div',
            { class: 'view' },
            h(
                'div',
                { class: 'bar' },
                controls.slice(0, -1).map((control) => control.element),
                h('span', { class: 'spacer' }),
                find.element,
            ),
            body,
        ),
        update() {
            refresh_all(controls);
            params = {
                ...app.selection(),
                ...tree_params(app),
                metric: metric_of(store, app.file.live),
            };
            void loader.load(
                query_string(params),
                () => api.get<TreeAnswer>('/api/tree', params),
                (answer) => {
                    tree = new FrameTree(
                        structuredClone(answer),
                        is_own(app.heap?.only_code ?? [], app.heap?.executable ?? ''),
                    );
                    table.show(tree);
                    table.filter(matcher(store.get('flame.q')));
                },
            );
            if (tree) table.filter(matcher(store.get('flame.q')));
        },
        on_key(event) {
            if (event.key !== '/') return false;
            find.focus();
            return true;
        },
    };
}

export const tree_view: ViewKind = {
    id: 'tree',
    title: 'Tree',
    icon: 'tree',
    files: 'heap',
    has_timeline: true,
    create,
};
