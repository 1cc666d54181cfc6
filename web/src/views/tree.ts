// SPDX-License-Identifier: MIT
//
// The same trees as the flame graph's, as a table to open: top-down or bottom-up.
import { metric_of } from '../model/state';
import { FrameTree, is_own } from '../model/tree';
import { check, menu, metric_buttons, refresh_all, segments } from '../ui/controls';
import { h } from '../ui/dom';
import { tree_params } from './flame';
import { TreePanel } from './tree_panel';
import type { App, View, ViewKind } from './view';

const DIRECTIONS = [
    { id: '', name: 'Top-down', help: 'from main to the allocation' },
    { id: 'up', name: 'Bottom-up', help: 'from the allocation to main' },
];

function create(app: App): View {
    const { store } = app;
    const panel = new TreePanel(app, {
        title: 'Tree of frames',
        path: '/api/tree',
        search: 'flame.q',
        row: 'tree.row',
        opened: (label) => store.go('callers', { 'fn.name': label, 'fn.id': null }),
        take: (answer) =>
            new FrameTree(
                structuredClone(answer),
                is_own(app.heap?.only_code ?? [], app.heap?.executable ?? ''),
            ),
    });
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
                h('span', { class: 'spacer' }),
                panel.find.element,
            ),
            panel.body,
        ),
        update() {
            refresh_all(controls);
            panel.load({
                ...app.selection(),
                ...tree_params(app),
                metric: metric_of(store, app.file.live),
            });
        },
        on_key: (event) => panel.on_key(event),
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
