// SPDX-License-Identifier: MIT
//
// The flame graph of what is selected.
import { query_string } from '../api/client';
import type { Params } from '../api/client';
import type { TreeAnswer } from '../api/types';
import { metric_of } from '../model/state';
import { is_own, only_pattern } from '../model/tree';
import { check, menu, refresh_all, search, segments, metric_buttons } from '../ui/controls';
import { h } from '../ui/dom';
import { Loader, message } from '../ui/loader';
import { FlamePanel } from './flame_panel';
import type { App, View, ViewKind } from './view';

const DIRECTIONS = [
    { id: '', name: 'Top-down', help: 'from main to the allocation' },
    { id: 'up', name: 'Bottom-up', help: 'from the allocation to main' },
];

// What turns the URL into the shape of a tree; shared by all that draw one.
export function tree_params(app: App): Params {
    const { store, heap } = app;
    return {
        bottom_up: store.get('flame.dir') === 'up',
        collapse: store.flag('flame.collapse'),
        fold: store.flag('flame.fold'),
        by_function: !store.flag('flame.lines'),
        only: store.flag('flame.own') ? only_pattern(heap?.only_code ?? []) : '',
        allocators: store.flag('flame.alloc'),
        min_ppm: 100,
        max_nodes: 100_000,
    };
}

function save(blob: Blob | null, name: string): void {
    if (!blob) return;
    const url = URL.createObjectURL(blob);
    h('a', { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// The picture as it is on the screen, or all rows of it for other programs.
export function save_buttons(panel: FlamePanel, title: () => string): HTMLElement {
    const button = (name: string, help: string, work: () => void): HTMLElement =>
        h('button', { type: 'button', title: help, onclick: work }, name);
    return h(
        'div',
        { class: 'segments' },
        button('PNG', 'Save what is on the screen', () =>
            panel.canvas.canvas.toBlob((blob) => save(blob, 'flame.png')),
        ),
        button('SVG', 'Save all rows as vectors, with values as titles', () =>
            save(new Blob([panel.svg(title())], { type: 'image/svg+xml' }), 'flame.svg'),
        ),
    );
}

function create(app: App): View {
    const { store } = app;
    const find = search(store, 'flame.q', 'Search frames', 'Search  ( / )');
    const tree_controls = [
        metric_buttons(store, () => app.file.live),
        segments(store, 'flame.dir', 'Direction', DIRECTIONS, ''),
    ];
    const option_controls = [
        check(
            store,
            'flame.collapse',
            'Collapse recursion',
            'A function that calls itself is one frame',
        ),
        check(store, 'flame.fold', 'Fold libraries', 'Frames of one library in a row are one'),
        check(store, 'flame.own', 'Only my code', 'Leave out frames of system libraries'),
        check(store, 'flame.lines', 'Lines', 'A frame for each line of a function'),
        check(store, 'flame.alloc', 'Show allocators', 'malloc, operator new and the like'),
        check(store, 'flame.below', 'Root below', 'Draw the root at the bottom'),
    ];
    const options = menu('Options', option_controls, () =>
        ['collapse', 'fold', 'own', 'lines', 'alloc', 'below'].some((key) =>
            store.flag(`flame.${key}`),
        ),
    );
    const controls = [...tree_controls, options, find];
    const panel = new FlamePanel(app.api, {
        zoomed: (id) => store.set({ 'flame.zoom': id || null }),
        chosen: (frame) => store.set({ 'flame.at': frame || null }, true),
        show_function: (name) => store.go('callers', { 'fn.name': name, 'fn.id': null }),
        filter_function: (name) => store.set({ fn: name, 'flame.zoom': null }),
        announce: (text) => app.announce(text),
    });
    const body = h('div', {});
    const loader = new Loader(body, panel.element);
    const element = h(
        'div',
        { class: 'view' },
        h(
            'div',
            { class: 'bar' },
            tree_controls.map((control) => control.element),
            options.element,
            h('span', { class: 'spacer' }),
            find.element,
            save_buttons(panel, () => app.file.command || app.file.name),
        ),
        body,
    );

    function update(): void {
        refresh_all(controls);
        const params = {
            ...app.selection(),
            ...tree_params(app),
            metric: metric_of(store, app.file.live),
        };
        void loader
            .load(
                query_string(params),
                () => app.api.get<TreeAnswer>('/api/tree', params),
                (answer) => {
                    if (answer.id.length <= 1 && answer.total === 0)
                        return loader.show_instead(
                            message(
                                'Nothing here',
                                'No memory is live, allocated or changed in what is selected.',
                            ),
                        );
                    panel.show(
                        '/api/tree',
                        params,
                        answer,
                        is_own(app.heap?.only_code ?? [], app.heap?.executable ?? ''),
                        store.number('flame.zoom') ?? 0,
                        store.get('flame.at'),
                    );
                },
            )
            .then(() => panel.zoom(store.number('flame.zoom') ?? 0));
        panel.canvas.set_root_below(store.flag('flame.below'));
        panel.search(store.get('flame.q'));
    }

    return {
        element,
        update,
        on_key(event) {
            if (event.key !== '/') return false;
            find.focus();
            return true;
        },
    };
}

export const flame_view: ViewKind = {
    id: 'flame',
    title: 'Flame graph',
    icon: 'flame',
    files: 'heap',
    has_timeline: true,
    create,
};
