// SPDX-License-Identifier: MIT
//
// The text of a source file with numbers beside its lines; only the lines in sight are in the
// document.
import type { SourceAnswer } from '../api/types';
import { shortened, visible } from '../model/format';
import { h, on_resize, per_frame, replace } from '../ui/dom';

const LINE = 18;
type LineSums = SourceAnswer['lines'][number];

export class SourceText {
    readonly element: HTMLElement;
    private readonly body = h('div', {});
    private text: readonly string[] = [];
    private sums = new Map<number, LineSums>();
    private highest = 0;
    private marked = 0;
    private readonly redraw = per_frame(() => this.draw());

    constructor(private readonly write: (value: number) => string) {
        this.body.style.position = 'relative';
        this.element = h(
            'div',
            { class: 'source', tabindex: 0, 'aria-label': 'Source', onscroll: this.redraw },
            this.body,
        );
        on_resize(this.element, this.redraw);
    }

    show(text: readonly string[], lines: readonly LineSums[], marked: number): void {
        this.text = text;
        this.sums = new Map(lines.map((line) => [line.line, line]));
        this.highest = lines.reduce((high, line) => Math.max(high, Math.abs(line.total)), 0);
        this.marked = marked;
        this.body.style.height = `${text.length * LINE}px`;
        const hottest = [...lines].sort((a, b) => b.total - a.total)[0]?.line ?? 1;
        this.element.scrollTop = Math.max(0, ((marked || hottest) - 6) * LINE);
        this.redraw();
    }

    private draw(): void {
        const first = Math.max(0, Math.floor(this.element.scrollTop / LINE) - 4);
        const end = Math.min(
            this.text.length,
            first + Math.ceil(this.element.clientHeight / LINE) + 9,
        );
        const lines: HTMLElement[] = [];
        for (let i = first; i < end; i++) lines.push(this.draw_line(i + 1));
        replace(this.body, lines);
    }

    private draw_line(number: number): HTMLElement {
        const sums = this.sums.get(number);
        const heat = sums && this.highest ? 8 + (52 * Math.abs(sums.total)) / this.highest : 0;
        const classes = `source-line${sums ? ' has-bytes' : ''}${number === this.marked ? ' is-marked' : ''}`;
        const line = h(
            'div',
            {
                class: classes,
                '--heat': heat,
                title: sums ? shortened(sums.functions.join(', ')) : undefined,
            },
            h('span', { class: 'cost' }, sums ? this.write(sums.total) : ''),
            h('span', { class: 'cost muted' }, sums?.self ? this.write(sums.self) : ''),
            h('span', { class: 'gutter' }, number),
            h(
                'span',
                {},
                visible((this.text[number - 1] ?? '').slice(0, 2000).replace(/\t/g, '    ')),
            ),
        );
        line.style.top = `${(number - 1) * LINE}px`;
        return line;
    }
}
