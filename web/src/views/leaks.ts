// SPDX-License-Identifier: MIT
//
// The leak records as a tree: by who allocated, or by who holds them (variables, stacks, other
// blocks, and what only those point to).
import { bytes, plural } from '../model/format';
import { FrameTree } from '../model/tree';
import { choose, refresh_all, segments } from '../ui/controls';
import { h } from '../ui/dom';
import { message } from '../ui/loader';
import { TreePanel } from './tree_panel';
import type { App, View, ViewKind } from './view';

const SHAPES = [
    { id: '', name: 'By caller', help: 'from main to the allocation' },
    { id: 'up', name: 'By allocation', help: 'from the allocation to main' },
    { id: 'holder', name: 'By holder', help: 'what points to the blocks, and what they point to' },
];
const KINDS = [
    { id: '', name: 'all' },
    { id: 'leak-definite', name: 'definitely lost' },
    { id: 'leak-indirect', name: 'indirectly lost' },
    { id: 'leak-possible', name: 'possibly lost' },
    { id: 'leak-reachable', name: 'still reachable' },
];

function create(app: App): View {
    const { store } = app;
    const sum = h('span', { class: 'muted' });
    const panel = new TreePanel(app, {
        title: 'Leaks',
        path: '/api/leaks',
        search: 'leak.q',
        row: 'leak.row',
        opened: (label) =>
            store.go('findings', { 'find.q': label, 'find.kind': null, 'find.module': null }),
        take(answer) {
            sum.textContent = `${bytes(answer.total)} in ${plural(answer.count[0] ?? 0, 'block')}`;
            if (answer.id.length > 1) return new FrameTree(structuredClone(answer), () => true);
            panel.loader.show_instead(
                message(
                    'No leaks',
                    'No record of this kind was reported. ' +
                        'Leaks are searched for with --leak-check=full.',
                ),
            );
            return null;
        },
    });
    const controls = [
        segments(store, 'leak.by', 'Shape', SHAPES, ''),
        choose(store, 'leak.kind', 'Kind', () => KINDS),
        panel.find,
    ];

    return {
        element: h(
            'div',
            { class: 'view' },
            h(
                'div',
                { class: 'bar' },
                controls.slice(0, -1).map((control) => control.element),
                sum,
                h('span', { class: 'spacer' }),
                panel.find.element,
            ),
            panel.body,
        ),
        update() {
            refresh_all(controls);
            const shape = store.get('leak.by');
            panel.load(
                {
                    f: app.file.id,
                    kind: store.get('leak.kind'),
                    bottom_up: shape === 'up',
                    by: shape === 'holder' ? 'holder' : null,
                    min_ppm: 0, // records are few
                },
                app.findings?.version,
            );
        },
        on_key: (event) => panel.on_key(event),
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
