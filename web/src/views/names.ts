// SPDX-License-Identifier: MIT
//
// How functions, places and stacks are shown in tables and lists.
import type { Frame } from '../api/types';
import { base_name, shorten_templates, shortened, visible } from '../model/format';
import { h } from '../ui/dom';

export interface Named {
    readonly function?: string | null;
    readonly file: string | null;
    readonly line: number;
    readonly object: string | null;
    readonly via?: readonly string[]; // of a context, from the inside
}

export function place_of(named: Named): string {
    if (named.file) return named.line ? `${named.file}:${named.line}` : named.file;
    return named.object ? base_name(named.object) : '';
}

// "make_node  tree.c:40"
export function name_cell(named: Named): HTMLElement {
    return h(
        'span',
        { class: 'cell-name' },
        h('span', { class: 'cut' }, shortened(shorten_templates(named.function ?? '???'), 200)),
        h('span', { class: 'where' }, shortened(place_of(named), 60)),
        named.via &&
            named.via.length > 0 &&
            h('span', { class: 'cut callers' }, `← ${via_of(named)}`),
    );
}

// "build ← main"
export function via_of(named: { readonly via?: readonly string[] }): string {
    return (named.via ?? []).map((name) => shortened(shorten_templates(name), 80)).join(' ← ');
}

function is_library(frame: Frame): boolean {
    return /^\/(usr|lib)/.test(frame.object ?? '');
}

// Innermost first. `open` is called with the function of a frame that is clicked.
export function stack_list(frames: readonly Frame[], open?: (frame: Frame) => void): HTMLElement {
    return h(
        'ol',
        { class: 'stack' },
        frames.map((frame, i) => {
            const name = visible(frame.function ?? frame.pc);
            const where = [
                place_of(frame),
                frame.file && frame.object ? base_name(frame.object) : '',
                frame.file ? '' : (frame.object_offset ?? ''),
            ]
                .filter(Boolean)
                .join(' · ');
            return h(
                'li',
                { class: is_library(frame) ? 'is-library' : '' },
                h('span', { class: 'index' }, i),
                h(
                    'div',
                    {},
                    open && frame.function
                        ? h(
                              'button',
                              {
                                  type: 'button',
                                  class: 'link function',
                                  title: 'Callers and callees',
                                  onclick: () => open(frame),
                              },
                              name,
                          )
                        : h('div', { class: 'function' }, name),
                    h(
                        'div',
                        { class: 'where' },
                        shortened(where, 200),
                        frame.inlined && ' ',
                        frame.inlined && h('span', { class: 'badge' }, 'inlined'),
                    ),
                ),
            );
        }),
    );
}
