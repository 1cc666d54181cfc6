// SPDX-License-Identifier: MIT
//
// Memory over time, above all views: who holds how much, stacked, and the totals as lines. Dragging
// selects a range, a click a moment, Shift and a click the difference to it. With the keyboard,
// arrows move the moment and Shift with arrows the other end of a range.
import uPlot from 'uplot';
import type { TimelineAnswer } from '../api/types';
import { query_string } from '../api/client';
import type { Params } from '../api/client';
import { bytes, moment, plural, shortened } from '../model/format';
import { select_time, selected } from '../model/state';
import { byte_axis, time_axis } from '../ui/chart';
import { choose, refresh_all } from '../ui/controls';
import type { Control } from '../ui/controls';
import { h, on_resize, replace } from '../ui/dom';
import { Loader } from '../ui/loader';
import { colour, is_dark, on_theme, series_colour } from '../ui/theme';
import { LINES, line_values, lines_shown, stack_up } from './timeline_data';
import { draw_marks } from './timeline_marks';
import { via_of } from './names';
import type { App } from './view';

const GROUPS = [
    { id: '', name: 'context' },
    { id: 'function', name: 'function' },
    { id: 'file', name: 'file' },
    { id: 'library', name: 'library' },
    { id: 'thread', name: 'thread' },
    { id: 'none', name: 'nothing' },
];
const TOPS = ['5', '', '12', '20', '40'].map((id) => ({ id, name: id || '8' }));

export class Timeline {
    readonly element: HTMLElement;
    private readonly chart_box = h('div', {
        class: 'timeline-chart',
        tabindex: 0,
        role: 'application',
        'aria-label': 'Timeline. Arrow keys select a moment, Shift and arrows a range.',
        onkeydown: (event: KeyboardEvent) => this.on_key(event),
    });
    private readonly legend = h('div', { class: 'timeline-legend', 'aria-label': 'Legend' });
    private readonly zoom_button: HTMLButtonElement;
    private readonly body: HTMLElement;
    private readonly loader: Loader;
    private readonly controls: Control[];
    private readonly time_label = h('span', { class: 'muted num timeline-time' });
    private answer: TimelineAnswer | null = null;
    private chart: uPlot | null = null;
    private size = { width: 600, height: 150 };
    private drawn = '';

    constructor(private readonly app: App) {
        const { store } = app;
        this.controls = [
            choose(store, 'tl.group', 'Stacked by', () => GROUPS),
            choose(store, 'tl.top', 'top', () => TOPS),
        ];
        this.zoom_button = h('button', { type: 'button', onclick: () => this.zoom() });
        const main = h('div', { class: 'timeline-main' }, this.chart_box, this.legend);
        this.body = h('div', {});
        this.loader = new Loader(this.body, main);
        this.element = h(
            'section',
            { class: 'timeline', 'aria-label': 'Timeline' },
            h(
                'div',
                { class: 'bar' },
                this.controls.map((control) => control.element),
                this.zoom_button,
                h('span', { class: 'spacer' }),
                this.time_label,
                h(
                    'button',
                    {
                        type: 'button',
                        class: 'quiet',
                        title: 'Show or hide (t)',
                        onclick: () =>
                            store.set({ timeline: store.get('timeline') === '0' ? null : '0' }),
                    },
                    'Hide',
                ),
            ),
            this.body,
        );
        on_resize(this.chart_box, (width, height) => {
            this.size = { width, height };
            this.chart?.setSize(this.size);
        });
        on_theme(() => this.draw());
    }

    update(): void {
        const { store } = this.app;
        refresh_all(this.controls);
        const is_hidden = store.get('timeline') === '0';
        this.body.hidden = is_hidden;
        this.time_label.hidden = is_hidden;
        this.element.querySelector('button.quiet')!.textContent = is_hidden ? 'Show' : 'Hide';
        this.update_zoom();
        if (is_hidden) return;
        const params = this.params();
        void this.loader.load(
            query_string(params),
            () => this.app.api.get<TimelineAnswer>('/api/timeline', params),
            (answer) => {
                this.answer = answer;
                this.drawn = '';
                this.draw();
            },
        );
        this.draw();
    }

    // The filters of the selection, but its time is that of the chart.
    private params(): Params {
        const {
            from: _from,
            to,
            at: _at,
            ...filters
        } = this.app.selection() as Record<string, string>;
        const [z0, z1] = [this.app.store.number('tl.from'), this.app.store.number('tl.to')];
        const group = this.app.store.get('tl.group');
        const range =
            z0 !== null && z1 !== null
                ? { from: z0, to: z1 }
                : { to: this.app.file.live ? to : null };
        return {
            ...filters,
            ...range,
            group,
            top: group === 'none' ? 1 : this.app.store.get('tl.top', '8'),
            points: this.size.width > 1400 ? 1200 : 600,
        };
    }

    // ------------------------------------------------------------------ drawing

    private draw(): void {
        const { answer } = this;
        if (!answer || answer.times.length === 0 || this.body.hidden) return;
        const shown = lines_shown(answer, this.app.store.get('tl.lines'));
        const state = `${[...shown].join()}|${is_dark()}`;
        // The same curves: only what is selected has changed.
        if (this.chart && this.drawn === state) {
            this.chart.redraw(false, false);
            return this.draw_legend(null);
        }
        this.drawn = state;
        this.chart?.destroy();
        const is_stacked = this.app.store.get('tl.group') !== 'none';
        const sums = is_stacked ? stack_up(answer) : [];
        const lines = LINES.filter((line) => shown.has(line.id));
        const data: uPlot.AlignedData = [
            answer.times,
            ...sums,
            ...lines.map((line) => line_values(answer, line.id)),
        ];
        this.chart = new uPlot(
            {
                ...this.size,
                padding: [14, 22, 0, 0],
                legend: { show: false },
                scales: {
                    x: { time: false, range: () => [answer.from, answer.to] },
                    y: { range: (_u, _low, high) => [0, Math.max(1, high * 1.06)] },
                },
                axes: [time_axis(() => answer.to - answer.from), byte_axis()],
                cursor: {
                    drag: { x: true, y: false, setScale: false, dist: 4 },
                    y: false,
                    points: { show: false },
                },
                series: [
                    {},
                    ...sums.map((_, i) => this.area(sums.length - 1 - i, answer)),
                    ...lines.map((line) => ({
                        stroke: colour(line.variable),
                        points: { show: false },
                        width: line.id === 'heap' ? 1.5 : 1.2,
                        ...(line.id === 'rss' ? { dash: [5, 3] } : {}),
                    })),
                ],
                hooks: {
                    draw: [(u) => draw_marks(u, this.app)],
                    setSelect: [(u) => this.on_drag(u)],
                    setCursor: [(u) => this.draw_legend(u.cursor.idx ?? null)],
                    ready: [(u) => this.bind_clicks(u)],
                },
            },
            data,
            this.chart_box,
        );
        this.draw_legend(null);
    }

    private area(group: number, answer: TimelineAnswer): uPlot.Series {
        const fill = group < answer.series.length ? series_colour(group) : colour('other');
        return { fill, stroke: colour('panel'), width: 0.6, points: { show: false } };
    }

    private draw_legend(index: number | null): void {
        const { answer, app } = this;
        if (!answer) return;
        const at = index ?? this.selected_index(answer);
        const time = answer.times[at] ?? 0;
        const words = moment(time, answer.to - answer.from);
        this.time_label.textContent = index === null ? words : `at ${words}`;
        const shown = lines_shown(answer, app.store.get('tl.lines'));
        const is_stacked = app.store.get('tl.group') !== 'none';
        replace(
            this.legend,
            h(
                'div',
                { class: 'legend-lines' },
                LINES.map((line) =>
                    this.line_entry(
                        line.id,
                        line.name,
                        colour(line.variable),
                        line_values(answer, line.id)[at] ?? null,
                        shown,
                    ),
                ),
            ),
            is_stacked &&
                answer.groups.map((group, i) =>
                    h(
                        'button',
                        {
                            type: 'button',
                            title: shortened(
                                `${group.name}${via_of(group) && ` ← ${via_of(group)}`}`,
                            ),
                            onclick: () => this.open_group(i),
                        },
                        h('span', { class: 'swatch', '--swatch': series_colour(i) }),
                        h(
                            'span',
                            { class: 'cut' },
                            shortened(group.name, 120),
                            group.via?.[0] &&
                                h('span', { class: 'faint' }, ` ← ${shortened(group.via[0], 60)}`),
                        ),
                        h('span', { class: 'num' }, bytes(answer.series[i]?.[at] ?? 0)),
                    ),
                ),
            is_stacked &&
                answer.other_groups > 0 &&
                h(
                    'button',
                    {
                        type: 'button',
                        title: 'Show them in the table',
                        onclick: () => app.store.go('contexts'),
                    },
                    h('span', { class: 'swatch', '--swatch': colour('other') }),
                    h('span', { class: 'cut' }, `${plural(answer.other_groups, 'other')}`),
                    h('span', { class: 'num' }, bytes(answer.other[at] ?? 0)),
                ),
        );
    }

    private line_entry(
        id: string,
        name: string,
        swatch: string,
        value: number | null,
        shown: ReadonlySet<string>,
    ): HTMLElement {
        const is_shown = shown.has(id);
        return h(
            'button',
            {
                type: 'button',
                class: is_shown ? '' : 'is-off',
                'aria-pressed': undefined,
                title: `${is_shown ? 'Hide' : 'Show'} this line`,
                onclick: () => {
                    const next = LINES.map((line) => line.id).filter((other) =>
                        other === id ? !is_shown : shown.has(other),
                    );
                    this.app.store.set({ 'tl.lines': next.join() || 'none' });
                },
            },
            h('span', { class: 'line-swatch', '--swatch': swatch }),
            h('span', { class: 'cut' }, name),
            h('span', { class: 'num' }, value === null ? '–' : bytes(value)),
        );
    }

    // Where the legend's values are read while the pointer is elsewhere.
    private selected_index(answer: TimelineAnswer): number {
        const time = selected(this.app.store);
        const ns =
            time.kind === 'moment'
                ? time.at === 'peak'
                    ? (answer.peak?.ns ?? answer.to)
                    : time.at === 'end'
                      ? answer.to
                      : time.at
                : time.kind === 'range'
                  ? time.to
                  : time.kind === 'difference'
                    ? time.b
                    : (answer.peak?.ns ?? answer.to);
        const index = answer.times.findIndex((t) => t >= ns);
        return index < 0 ? answer.times.length - 1 : index;
    }

    private open_group(index: number): void {
        const group = this.answer?.groups[index];
        if (group)
            this.app.store.go('contexts', {
                'ctx.group': this.app.store.get('tl.group'),
                'ctx.key': group.key,
                'ctx.q': null,
            });
    }

    // ------------------------------------------------------------------ selecting

    private on_drag(u: uPlot): void {
        if (u.select.width < 4) return;
        const from = u.posToVal(u.select.left, 'x');
        const to = u.posToVal(u.select.left + u.select.width, 'x');
        u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        select_time(this.app.store, { kind: 'range', from: Math.max(0, from), to });
    }

    private bind_clicks(u: uPlot): void {
        let down = { x: 0, y: 0 };
        u.over.addEventListener('mousedown', (event) => {
            down = { x: event.clientX, y: event.clientY };
        });
        u.over.addEventListener('mouseup', (event) => {
            if (
                event.button !== 0 ||
                Math.hypot(event.clientX - down.x, event.clientY - down.y) > 4
            )
                return;
            const ns = u.posToVal(event.clientX - u.over.getBoundingClientRect().left, 'x');
            this.on_click(ns, event.shiftKey);
        });
        u.over.addEventListener('mouseleave', () => this.draw_legend(null));
    }

    private on_click(ns: number, with_shift: boolean): void {
        const { store } = this.app;
        const heap = this.app.heap!;
        const at = Math.max(0, Math.min(heap.duration_ns, ns));
        if (!with_shift) return select_time(store, { kind: 'moment', at });
        const time = selected(store);
        const a =
            time.kind === 'moment'
                ? time.at === 'peak'
                    ? heap.peak.ns
                    : time.at === 'end'
                      ? heap.duration_ns
                      : time.at
                : time.kind === 'difference'
                  ? time.a
                  : time.kind === 'range'
                    ? time.from
                    : 0;
        select_time(store, { kind: 'difference', a, b: at });
    }

    private on_key(event: KeyboardEvent): void {
        const { answer } = this;
        if (!answer || (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight')) return;
        const time = selected(this.app.store);
        const step = ((answer.to - answer.from) / 100) * (event.key === 'ArrowLeft' ? -1 : 1);
        const now =
            time.kind === 'range' ? time.to : (answer.times[this.selected_index(answer)] ?? 0);
        const next = Math.max(answer.from, Math.min(answer.to, now + step));
        if (!event.shiftKey) select_time(this.app.store, { kind: 'moment', at: next }, true);
        else if (time.kind === 'range' && next > time.from)
            select_time(this.app.store, { kind: 'range', from: time.from, to: next }, true);
        else if (next !== now)
            select_time(this.app.store, {
                kind: 'range',
                from: Math.min(now, next),
                to: Math.max(now, next),
            });
        event.preventDefault();
        event.stopPropagation();
    }

    private update_zoom(): void {
        const is_zoomed = this.app.store.number('tl.from') !== null;
        const time = selected(this.app.store);
        this.zoom_button.textContent = is_zoomed ? 'Show all' : 'Zoom to selection';
        this.zoom_button.hidden = !is_zoomed && time.kind !== 'range' && time.kind !== 'difference';
    }

    private zoom(): void {
        const { store } = this.app;
        const time = selected(store);
        if (store.number('tl.from') !== null) store.set({ 'tl.from': null, 'tl.to': null });
        else if (time.kind === 'range') store.set({ 'tl.from': time.from, 'tl.to': time.to });
        else if (time.kind === 'difference')
            store.set({ 'tl.from': Math.min(time.a, time.b), 'tl.to': Math.max(time.a, time.b) });
    }
}
