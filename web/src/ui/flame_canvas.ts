// SPDX-License-Identifier: MIT
//
// Draws a flame graph and lets the user move in it. What is drawn is bounded by the pixels, not by
// the tree: in each row the first box in sight is found by bisection, siblings too narrow to see
// are one "N more" box, and what is narrower than a pixel is stepped over.
//
// Click zooms in, a click on a box above zooms out again; wheel scrolls, Ctrl and wheel zooms at
// the pointer, dragging pans. Arrow keys walk the tree, Enter zooms, Escape or Backspace goes back.
import { count, shorten_templates, shortened, visible } from '../model/format';
import { row_find, small_run } from '../model/flame';
import type { FlameLayout, SearchResult, SmallRun } from '../model/flame';
import { h, on_resize, per_frame } from './dom';
import { colour, is_dark } from './theme';

const ROW = 19;
const SMALL_PX = 2.2; // narrower boxes are joined
const TEXT_PX = 22; // narrower boxes have no text
const FONT = '11px';
const ZOOM_MS = 160;

export type Hit =
    | { kind: 'node'; node: number }
    | { kind: 'small'; run: SmallRun; parent: number; nodes: number };

export interface FlameEvents {
    hover(hit: Hit | null, x: number, y: number): void;
    zoomed(node: number): void;
    chosen(node: number): void;
    open_hidden(node: number): void; // siblings that were not sent
}

interface Window_ {
    left: number;
    right: number;
}

export class FlameCanvas {
    readonly element: HTMLElement;
    readonly canvas: HTMLCanvasElement;
    private layout: FlameLayout | null = null;
    private result: SearchResult | null = null;
    private is_root_below = false;
    private size = { width: 0, height: 0 };
    private view: Window_ = { left: 0, right: 1 };
    private scroll = 0;
    private zoom_node = 0;
    private chosen_node = 0;
    private hovered: Hit | null = null;
    private drag: { x: number; y: number; view: Window_; scroll: number; moved: boolean } | null =
        null;
    private char_width = 6.6;
    private readonly redraw = per_frame(() => this.draw());

    constructor(private readonly events: FlameEvents) {
        this.canvas = h('canvas', {
            tabindex: 0,
            role: 'application',
            'aria-label': 'Flame graph. Arrow keys walk the tree, Enter zooms, Escape zooms out.',
            onpointerdown: (event: PointerEvent) => this.on_down(event),
            onpointermove: (event: PointerEvent) => this.on_move(event),
            onpointerup: (event: PointerEvent) => this.on_up(event),
            onpointerleave: () => this.set_hover(null, 0, 0),
            onkeydown: (event: KeyboardEvent) => this.on_key(event),
        });
        this.canvas.addEventListener('wheel', (event) => this.on_wheel(event), { passive: false });
        this.element = h('div', { class: 'flame' }, this.canvas);
        on_resize(this.element, (width, height) => {
            this.size = { width, height };
            this.redraw();
        });
    }

    show(layout: FlameLayout, zoom_node: number): void {
        this.layout = layout;
        this.chosen_node = 0;
        this.scroll = 0;
        this.set_zoom(zoom_node < layout.tree.count ? zoom_node : 0, false);
    }

    set_search(result: SearchResult | null): void {
        this.result = result;
        this.redraw();
    }

    set_root_below(is_below: boolean): void {
        this.is_root_below = is_below;
        this.redraw();
    }

    // Chooses a node without telling.
    mark(node: number): void {
        this.chosen_node = node;
        this.redraw();
    }

    get has_root_below(): boolean {
        return this.is_root_below;
    }

    get zoomed(): number {
        return this.zoom_node;
    }

    refresh(): void {
        this.redraw();
    }

    zoom_to(node: number): void {
        this.set_zoom(node, true);
    }

    private set_zoom(node: number, animate: boolean): void {
        if (!this.layout) return;
        this.zoom_node = node;
        const left = this.layout.start[node] ?? 0;
        this.move_to(
            { left, right: left + Math.max(1e-12, this.layout.width[node] ?? 1) },
            animate,
        );
    }

    private move_to(target: Window_, animate: boolean): void {
        const from = { ...this.view };
        const start = performance.now();
        if (!animate || matchMedia('(prefers-reduced-motion: reduce)').matches) {
            this.view = target;
            return this.redraw();
        }
        const step = (): void => {
            const part = Math.min(1, (performance.now() - start) / ZOOM_MS);
            const eased = 1 - (1 - part) ** 3;
            this.view = {
                left: from.left + (target.left - from.left) * eased,
                right: from.right + (target.right - from.right) * eased,
            };
            this.draw();
            if (part < 1) requestAnimationFrame(step);
        };
        requestAnimationFrame(step);
    }

    // ------------------------------------------------------------------ drawing

    private row_y(depth: number): number {
        return this.is_root_below
            ? this.size.height - (depth + 1) * ROW + this.scroll
            : depth * ROW - this.scroll;
    }

    private max_scroll(): number {
        return Math.max(0, (this.layout?.rows.length ?? 0) * ROW - this.size.height);
    }

    private draw(): void {
        const { width, height } = this.size;
        const pixels = window.devicePixelRatio || 1;
        const context = this.canvas.getContext('2d');
        if (!context || !this.layout || width === 0) return;
        if (
            this.canvas.width !== Math.round(width * pixels) ||
            this.canvas.height !== Math.round(height * pixels)
        ) {
            this.canvas.width = Math.round(width * pixels);
            this.canvas.height = Math.round(height * pixels);
        }
        context.setTransform(pixels, 0, 0, pixels, 0, 0);
        context.clearRect(0, 0, width, height);
        context.font = `${FONT} ${colour('mono')}`;
        context.textBaseline = 'middle';
        this.char_width = context.measureText('0123456789').width / 10;
        this.scroll = Math.max(0, Math.min(this.scroll, this.max_scroll()));
        this.layout.rows.forEach((row, depth) => {
            const y = this.row_y(depth);
            if (y + ROW > 0 && y < height) this.draw_row(context, row, y);
        });
    }

    private draw_row(context: CanvasRenderingContext2D, row: Uint32Array, y: number): void {
        const layout = this.layout!;
        const { left, right } = this.view;
        const scale = this.size.width / (right - left);
        let index = row_find(layout, row, left);
        while (index < row.length) {
            const node = row[index]!;
            const start = layout.start[node]!;
            if (start >= right) return;
            if (layout.width[node]! * scale >= SMALL_PX) {
                this.draw_box(context, node, y, scale);
                index++;
                continue;
            }
            const run = small_run(layout, row, index);
            this.draw_small(context, row, run, y, scale);
            const reached = start + Math.max(run.width, 1 / scale);
            index = Math.max(run.end, row_find(layout, row, reached));
        }
    }

    private draw_box(
        context: CanvasRenderingContext2D,
        node: number,
        y: number,
        scale: number,
    ): void {
        const layout = this.layout!;
        const start = layout.start[node]!;
        const x = Math.max(-1, (start - this.view.left) * scale);
        const end = Math.min(
            this.size.width + 1,
            (start + layout.width[node]! - this.view.left) * scale,
        );
        const width = end - x;
        const is_dim = this.result !== null && !this.result.matches[node];
        context.globalAlpha = is_dim ? 0.28 : 1;
        context.fillStyle = layout.tree.hidden[node] ? colour('other') : box_colour(layout, node);
        context.fillRect(x, y, Math.max(0.6, width - 0.8), ROW - 1);
        const is_hovered = this.hovered?.kind === 'node' && this.hovered.node === node;
        if (is_hovered || (node === this.chosen_node && node !== 0)) {
            context.globalAlpha = 1;
            context.strokeStyle = colour('text');
            context.lineWidth = 1.2;
            context.strokeRect(x + 0.6, y + 0.6, Math.max(0, width - 2), ROW - 2.2);
        }
        if (width >= TEXT_PX)
            this.draw_text(context, node_label(layout, node), x + 4, y, width - 8);
        context.globalAlpha = 1;
    }

    private draw_text(
        context: CanvasRenderingContext2D,
        label: string,
        x: number,
        y: number,
        width: number,
    ): void {
        const room = Math.floor(width / this.char_width);
        context.fillStyle = colour('flame-text');
        if (room < 2) return;
        let text = label.length > room ? `${label.slice(0, Math.max(1, room - 1))}…` : label;
        // Wide characters are not as wide as others: shorten until it fits.
        if (/[^\x20-\x7e…]/.test(text))
            while (text.length > 2 && context.measureText(text).width > width)
                text = `${text.slice(0, Math.floor(text.length * 0.8) - 1)}…`;
        context.fillText(text, x, y + ROW / 2);
    }

    private draw_small(
        context: CanvasRenderingContext2D,
        row: Uint32Array,
        run: SmallRun,
        y: number,
        scale: number,
    ): void {
        const x = (run.start - this.view.left) * scale;
        const width = Math.max(1, run.width * scale);
        const is_hovered = this.hovered?.kind === 'small' && this.hovered.run.start === run.start;
        context.fillStyle = is_hovered ? colour('faint') : colour('other');
        context.globalAlpha = this.result ? 0.35 : 0.75;
        context.fillRect(x, y, Math.max(0.8, width - 0.8), ROW - 1);
        context.globalAlpha = 1;
        if (width > 56)
            this.draw_text(context, `${count(this.nodes_in(run, row))} more`, x + 4, y, width - 8);
    }

    // How many nodes a run stands for, those that were not sent included: they come last.
    private nodes_in(run: SmallRun, row: Uint32Array): number {
        const hidden = this.layout?.tree.hidden[row[run.end - 1]!] ?? 0;
        return run.end - run.first + Math.max(0, hidden - 1);
    }

    // ------------------------------------------------------------------ pointing

    private depth_at(y: number): number {
        return this.is_root_below
            ? Math.floor((this.size.height + this.scroll - y) / ROW)
            : Math.floor((y + this.scroll) / ROW);
    }

    hit(x: number, y: number): Hit | null {
        const layout = this.layout;
        const row = layout?.rows[this.depth_at(y)];
        if (!layout || !row) return null;
        const scale = this.size.width / (this.view.right - this.view.left);
        const place = this.view.left + x / scale;
        const index = row_find(layout, row, place);
        const node = row[index];
        if (node === undefined || layout.start[node]! > place + 0.5 / scale) return null;
        if (layout.width[node]! * scale >= SMALL_PX) return { kind: 'node', node };
        const parent = layout.tree.parent[node] ?? 0;
        let first = index; // the first small sibling: the run begins there
        while (
            first > 0 &&
            layout.tree.parent[row[first - 1]!] === parent &&
            layout.width[row[first - 1]!]! * scale < SMALL_PX
        )
            first--;
        const run = small_run(layout, row, first);
        return { kind: 'small', run, parent, nodes: this.nodes_in(run, row) };
    }

    private set_hover(hit: Hit | null, x: number, y: number): void {
        this.hovered = hit;
        this.events.hover(hit, x, y);
        this.redraw();
    }

    private on_down(event: PointerEvent): void {
        if (event.button !== 0) return;
        this.canvas.setPointerCapture(event.pointerId);
        this.drag = {
            x: event.offsetX,
            y: event.offsetY,
            view: { ...this.view },
            scroll: this.scroll,
            moved: false,
        };
    }

    private on_move(event: PointerEvent): void {
        if (!this.drag)
            return this.set_hover(
                this.hit(event.offsetX, event.offsetY),
                event.clientX,
                event.clientY,
            );
        const [dx, dy] = [event.offsetX - this.drag.x, event.offsetY - this.drag.y];
        if (!this.drag.moved && Math.hypot(dx, dy) < 4) return;
        this.drag.moved = true;
        this.set_hover(null, 0, 0);
        const span = this.drag.view.right - this.drag.view.left;
        const shift = (-dx * span) / this.size.width;
        const left = Math.max(0, Math.min(1 - span, this.drag.view.left + shift));
        this.view = { left, right: left + span };
        this.scroll = this.drag.scroll + (this.is_root_below ? dy : -dy);
        this.redraw();
    }

    private on_up(event: PointerEvent): void {
        const was_drag = this.drag?.moved;
        this.drag = null;
        if (was_drag || event.button !== 0) return;
        const hit = this.hit(event.offsetX, event.offsetY);
        if (hit?.kind === 'node') this.activate(hit.node);
        else if (hit)
            this.move_to({ left: hit.run.start, right: hit.run.start + hit.run.width }, true);
    }

    private activate(node: number): void {
        if (this.layout?.tree.hidden[node]) return this.events.open_hidden(node);
        this.chosen_node = node;
        this.set_zoom(node, true);
        this.events.zoomed(node);
        this.events.chosen(node);
    }

    private on_wheel(event: WheelEvent): void {
        event.preventDefault();
        if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaY) >= Math.abs(event.deltaX)) {
            this.scroll += this.is_root_below ? -event.deltaY : event.deltaY;
            return this.redraw();
        }
        const span = this.view.right - this.view.left;
        const place = this.view.left + (event.offsetX / this.size.width) * span;
        const zoom = event.ctrlKey || event.metaKey ? Math.exp(event.deltaY * 0.004) : 1;
        const new_span = Math.min(1, Math.max(1e-9, span * zoom));
        const shift = zoom === 1 ? (event.deltaX / this.size.width) * span : 0;
        let left = place - (place - this.view.left) * (new_span / span) + shift;
        left = Math.max(0, Math.min(1 - new_span, left));
        this.view = { left, right: left + new_span };
        this.redraw();
    }

    // ------------------------------------------------------------------ keys

    private on_key(event: KeyboardEvent): void {
        const layout = this.layout;
        if (!layout || event.ctrlKey || event.metaKey || event.altKey) return;
        const node = this.chosen_node;
        const [deeper, up] = this.is_root_below
            ? ['ArrowUp', 'ArrowDown']
            : ['ArrowDown', 'ArrowUp'];
        if (event.key === deeper) this.choose(first_child(layout, node));
        else if (event.key === up) this.choose(layout.tree.parent[node] ?? 0);
        else if (event.key === 'ArrowRight' || event.key === 'ArrowLeft')
            this.choose(sibling(layout, node, event.key === 'ArrowRight' ? 1 : -1));
        else if (event.key === 'Enter' || event.key === ' ') this.activate(node);
        else if (event.key === 'Escape' || event.key === 'Backspace')
            this.activate(event.key === 'Escape' ? 0 : (layout.tree.parent[this.zoom_node] ?? 0));
        else return;
        event.preventDefault();
        event.stopPropagation();
    }

    private choose(node: number): void {
        this.chosen_node = node;
        const y = this.row_y(this.layout?.depth[node] ?? 0);
        if (y < 0) this.scroll += this.is_root_below ? -y : y;
        else if (y + ROW > this.size.height)
            this.scroll += (this.is_root_below ? -1 : 1) * (y + ROW - this.size.height);
        this.events.chosen(node);
        this.redraw();
    }
}

function first_child(layout: FlameLayout, node: number): number {
    const row = layout.rows[(layout.depth[node] ?? 0) + 1];
    const child = row?.[row_find(layout, row, layout.start[node]!)];
    return child !== undefined && layout.tree.parent[child] === node ? child : node;
}

function sibling(layout: FlameLayout, node: number, step: number): number {
    const row = layout.rows[layout.depth[node] ?? 0] ?? new Uint32Array();
    let index = row_find(layout, row, layout.start[node]!);
    while (index < row.length && row[index] !== node) index++;
    return row[index + step] ?? node;
}

export function node_label(layout: FlameLayout, node: number): string {
    const hidden = layout.tree.hidden[node] ?? 0;
    if (hidden) return `${count(hidden)} more`;
    const label = layout.tree.label(node);
    return label.length > 400 ? shortened(label, 400) : visible(shorten_templates(label));
}

// Red has grown, blue has shrunk, and the stronger the larger its part is of all that changed in
// it; without signs, a hue per library and a lightness that tells neighbours apart.
export function box_colour(layout: FlameLayout, node: number): string {
    const { tree } = layout;
    if (layout.is_signed) {
        const weight = layout.width[node]! * layout.total;
        const lean = weight > 0 ? (tree.value[node] ?? 0) / weight : 0;
        const strength = Math.round(Math.min(1, Math.abs(lean)) * 60 + 12);
        const side = colour(lean >= 0 ? 'more' : 'less');
        return `color-mix(in srgb, ${side} ${strength}%, ${colour('panel')})`;
    }
    return category_colour(tree.category(node), node);
}

// Category 0 is the root, 1 the program itself, 2 unknown or system; others are libraries.
const HUES = [205, 150, 265, 325, 185, 100, 235, 290, 60, 345] as const;

export function category_colour(category: number, node: number): string {
    const nudge = (((node * 2654435761) >>> 0) % 5) - 2;
    const light = is_dark() ? 33 : 79;
    if (category === 0) return is_dark() ? '#3a4049' : '#d9dbde';
    if (category === 2)
        return `hsl(215 ${is_dark() ? 9 : 14}% ${light + nudge + (is_dark() ? 0 : 4)}%)`;
    if (category === 1)
        return is_dark()
            ? `hsl(${32 + nudge * 2} 52% ${light + nudge * 1.2}%)`
            : `hsl(${32 + nudge * 2} 84% ${light + nudge * 1.2 - 5}%)`;
    const hue = HUES[(category - 3) % HUES.length] ?? 205;
    return `hsl(${hue} ${is_dark() ? 32 : 52}% ${light + nudge * 1.2}%)`;
}
