// SPDX-License-Identifier: MIT
//
// What is selected, in words, and the filters: every view below follows it.
import { bytes, duration, moment, shortened } from '../model/format';
import { has_course, select_time, selected } from '../model/state';
import { choose, refresh_all, search } from '../ui/controls';
import type { Control } from '../ui/controls';
import { h, replace } from '../ui/dom';
import type { App } from './view';

const SPACES = {
    heap: { id: '', name: 'heap' },
    mapped: { id: 'mapped', name: 'mapped pages' },
    stack: { id: 'stack', name: 'stacks' },
} as const;

export class SelectionBar {
    readonly element = h('section', { class: 'bar selection', 'aria-label': 'Selection' });
    private readonly words = h('div', { class: 'cut selection-words' });
    private readonly controls: Control[];
    private readonly whole: HTMLButtonElement;

    constructor(private readonly app: App) {
        const { store } = app;
        const space = choose(store, 'space', 'of', () => this.spaces());
        const thread = choose(store, 'thread', 'thread', () => this.threads());
        const fn = search(
            store,
            'fn',
            'Only stacks through this function: a pattern, or !pattern',
            'function *',
        );
        const object = search(
            store,
            'obj',
            'Only stacks through this library: a pattern, or !pattern',
            'library *',
        );
        this.controls = [space, thread, fn, object];
        fn.element.title = object.element.title =
            'Shell pattern, /regular expression/, or either with ! before it: stacks that do not match';
        this.whole = this.button('Whole run', 'Esc', () => select_time(store, { kind: 'all' }));
        replace(
            this.element,
            h(
                'div',
                { class: 'selection-time' },
                this.words,
                this.whole,
                this.button('Peak', 'p', () => select_time(store, { kind: 'moment', at: 'peak' })),
            ),
            h('div', { class: 'spacer' }),
            ...this.controls.map((control) => control.element),
        );
    }

    update(): void {
        refresh_all(this.controls);
        const { heap, store } = this.app;
        if (!heap) return;
        this.element.classList.toggle('is-timeless', !has_course(heap));
        const time = selected(store);
        const span = heap.duration_ns;
        const write = (ns: number): string => moment(ns, span);
        this.whole.disabled = time.kind === 'all';
        const bold = (text: string): HTMLElement => h('strong', {}, text);
        switch (time.kind) {
            case 'all':
                return replace(this.words, 'Selected: ', bold('whole run'), ` (${duration(span)})`);
            case 'range':
                return replace(
                    this.words,
                    'Range ',
                    bold(`${write(time.from)} – ${write(time.to)}`),
                    ` (${duration(time.to - time.from)})`,
                );
            case 'moment':
                return replace(this.words, 'Moment ', bold(this.moment_words(time.at, write)));
            case 'difference':
                return replace(
                    this.words,
                    'Difference ',
                    bold(`${write(time.a)} → ${write(time.b)}`),
                    ` (${duration(Math.abs(time.b - time.a))})`,
                );
        }
    }

    private moment_words(at: number | 'peak' | 'end', write: (ns: number) => string): string {
        const heap = this.app.heap!;
        if (at === 'peak') return `peak, ${bytes(heap.peak.heap)} at ${write(heap.peak.ns)}`;
        if (at === 'end') return 'the end';
        const state = heap.states.find((mark) => mark.ns === at && mark.label);
        return state ? `${shortened(state.label ?? '', 40)}, ${write(at)}` : write(at);
    }

    private spaces(): { id: string; name: string }[] {
        const spaces: { id: string; name: string }[] = (this.app.heap?.spaces ?? ['heap']).map(
            (space) => SPACES[space],
        );
        return spaces.length > 1 ? [...spaces, { id: 'all', name: 'all memory' }] : spaces;
    }

    private threads(): { id: string; name: string }[] {
        const threads = [{ id: '', name: 'any' }];
        for (let i = 1; i <= Math.min(this.app.heap?.threads ?? 0, 500); i++)
            threads.push({ id: String(i), name: String(i) });
        return threads;
    }

    private button(name: string, key: string, work: () => void): HTMLButtonElement {
        return h('button', { type: 'button', title: `Key: ${key}`, onclick: work }, name);
    }
}
