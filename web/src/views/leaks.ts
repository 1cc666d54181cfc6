// SPDX-License-Identifier: MIT
//
// The leak records as a tree: by who allocated, or by who holds them (what is definitely lost, and
// below it what only that points to).
import { query_string } from '../api/client';
import type { Params } from '../api/client';
import type { TreeAnswer } from '../api/types';
import { bytes, plural } from '../model/format';
import { FrameTree } from '../model/tree';
import { choose, matcher, refresh_all, search, segments } from '../ui/controls';
import { h } from '../ui/dom';
import { Loader, message } from '../ui/loader';
import { TreeTable } from '../ui/tree_table';
import type { App, View, ViewKind } from './view';

const SHAPES = [
    { id: '', name: 'By caller', help: 'from main to the allocation' },
    { id: 'up', name: 'By allocation', help: 'from the allocation to main' },
    { id: 'holder', name: 'By holder', help: 'what is lost, and what only that points to' },
];
const KINDS = [
    { id: '', name: 'all' },
    { id: 'leak-definitely-lost', name: 'definitely lost' },
    { id: 'leak-indirectly-lost', name: 'indirectly lost' },
    { id: 'leak-possibly-lost', name: 'possibly lost' },
    { id: 'leak-still-reachable', name: 'still reachable' },
];

function create(app: App): View {
    const { store, api } = app;
    const find = search(store, 'leak.q', 'Search frames', 'Search  ( / )');
    const controls = [
        segments(store, 'leak.by', 'Shape', SHAPES, ''),
        choose(store, 'leak.kind', 'Kind', () => KINDS),
        find,
    ];
    const sum = h('span', { class: 'muted' });
    let tree: FrameTree | null = null;
    let params: Params = {};
    const table = new TreeTable('Leaks', {
        open_hidden: (node) => void open_hidden(node),
        chosen: () => undefined,
        opened: (node) =>
            store.go('findings', {
                'find.q': tree?.label(node) ?? '',
                'find.kind': null,
                'find.module': null,
            }),
    });
    const body = h('div', {});
    const loader = new Loader(body, table.table.element);

    async function open_hidden(node: number): Promise<void> {
        const now = tree;
        if (!now) return;
        const answer = await api.get<TreeAnswer>('/api/leaks', {
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
                controls[0]?.element,
                controls[1]?.element,
                sum,
                h('span', { class: 'spacer' }),
                find.element,
            ),
            body,
        ),
        update() {
            refresh_all(controls);
            const shape = store.get('leak.by');
            params = {
                f: app.file.id,
                kind: store.get('leak.kind'),
                bottom_up: shape === 'up',
                by: shape === 'holder' ? 'holder' : null,
            };
            void loader.load(
                `${app.findings?.version ?? 0} ${query_string(params)}`,
                () => api.get<TreeAnswer>('/api/leaks', params),
                (answer) => {
                    sum.textContent = `${bytes(answer.total)} in ${plural(answer.count[0] ?? 0, 'block')}`;
                    if (answer.id.length <= 1)
                        return loader.show_instead(
                            message(
                                'No leaks',
                                'No record of this kind was reported. ' +
                                    'Leaks are searched for with --leak-check=full.',
                            ),
                        );
                    tree = new FrameTree(structuredClone(answer), () => true);
                    table.show(tree);
                    table.filter(matcher(store.get('leak.q')));
                },
            );
            if (tree) table.filter(matcher(store.get('leak.q')));
        },
        on_key(event) {
            if (event.key !== '/') return false;
            find.focus();
            return true;
        },
    };
}

export const leaks_view: ViewKind = {
    id: 'leaks',
    title: 'Leak tree',
    icon: 'leaks',
    files: 'findings',
    has_timeline: false,
    create,
};
