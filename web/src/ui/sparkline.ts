// SPDX-License-Identifier: MIT
//
// A curve the size of a word, on a canvas of its own: there are only as many as rows in sight.
import { h } from './dom';
import { colour } from './theme';

export function sparkline(values: readonly number[], width: number, height = 18): HTMLElement {
    const canvas = h('canvas', {
        role: 'img',
        'aria-label': 'live bytes over time',
        width_px: width,
    });
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const context = canvas.getContext('2d');
    let high = 0;
    for (const value of values) high = Math.max(high, value);
    if (!context || high === 0 || values.length < 2) return canvas;
    context.scale(scale, scale);
    const step = width / (values.length - 1);
    const y = (value: number): number => height - 1 - (value / high) * (height - 3);
    context.beginPath();
    context.moveTo(0, height);
    values.forEach((value, i) => context.lineTo(i * step, y(value)));
    context.lineTo(width, height);
    context.fillStyle = colour('accent-soft');
    context.fill();
    context.beginPath();
    values.forEach((value, i) =>
        i ? context.lineTo(i * step, y(value)) : context.moveTo(0, y(value)),
    );
    context.strokeStyle = colour('accent');
    context.lineWidth = 1;
    context.stroke();
    return canvas;
}
