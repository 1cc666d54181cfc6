// SPDX-License-Identifier: MIT
//
// What is drawn over the timeline: the peak, moments that somebody marked, the selection.
import type uPlot from 'uplot';
import { bytes, shortened } from '../model/format';
import { selected } from '../model/state';
import { colour } from '../ui/theme';
import type { App } from './view';

function vertical(u: uPlot, ns: number, stroke: string, dash: number[], label: string): void {
    const { left, top, width, height } = u.bbox;
    const x = u.valToPos(ns, 'x', true);
    const pixels = devicePixelRatio || 1;
    if (x < left - 1 || x > left + width + 1) return;
    const { ctx } = u;
    ctx.strokeStyle = stroke;
    ctx.lineWidth = pixels;
    ctx.setLineDash(dash.map((length) => length * pixels));
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    ctx.setLineDash([]);
    if (!label) return;
    ctx.font = `${11 * pixels}px system-ui, sans-serif`;
    const text_width = ctx.measureText(label).width;
    const is_left = x + text_width + 6 * pixels > left + width;
    ctx.textAlign = is_left ? 'right' : 'left';
    ctx.textBaseline = 'bottom';
    ctx.fillStyle = stroke;
    ctx.fillText(label, x + (is_left ? -3 : 3) * pixels, top - pixels);
}

function shade(u: uPlot, from: number, to: number): void {
    const { left, top, width, height } = u.bbox;
    const x0 = Math.max(left, u.valToPos(from, 'x', true));
    const x1 = Math.min(left + width, u.valToPos(to, 'x', true));
    if (x1 <= x0) return;
    u.ctx.fillStyle = colour('accent');
    u.ctx.globalAlpha = 0.2;
    u.ctx.fillRect(x0, top, x1 - x0, height);
    u.ctx.globalAlpha = 1;
}

export function draw_marks(u: uPlot, app: App): void {
    const heap = app.heap;
    if (!heap) return;
    u.ctx.save();
    for (const state of heap.states)
        if (state.reason === 'asked' || state.reason === 'threshold')
            vertical(u, state.ns, colour('faint'), [1, 2], shortened(state.label ?? '', 24));
    if (heap.peak.heap > 0)
        vertical(u, heap.peak.ns, colour('bad'), [4, 3], `peak ${bytes(heap.peak.heap)}`);
    const time = selected(app.store);
    if (time.kind === 'range') {
        shade(u, time.from, time.to);
        vertical(u, time.from, colour('accent'), [], '');
        vertical(u, time.to, colour('accent'), [], '');
    } else if (time.kind === 'moment') {
        const ns =
            time.at === 'peak' ? heap.peak.ns : time.at === 'end' ? heap.duration_ns : time.at;
        vertical(u, ns, colour('accent'), [], '');
    } else if (time.kind === 'difference') {
        shade(u, Math.min(time.a, time.b), Math.max(time.a, time.b));
        vertical(u, time.a, colour('less'), [], 'A');
        vertical(u, time.b, colour('more'), [], 'B');
    }
    u.ctx.restore();
}
