// SPDX-License-Identifier: MIT
//
// What all uPlot charts share: axes in bytes and time, colours of the theme.
import type uPlot from 'uplot';
import { bytes, clock_unit_ns, moment } from '../model/format';
import { colour } from './theme';

// 1, 2, 4, 8 … for axes in bytes: ticks at whole KiB and MiB.
export const BYTE_STEPS: number[] = Array.from({ length: 52 }, (_, i) => 2 ** i);

const FONT = '11px system-ui, sans-serif';

export function axis(extra: uPlot.Axis): uPlot.Axis {
    return {
        stroke: () => colour('muted'),
        font: FONT,
        grid: { stroke: () => colour('line-soft'), width: 1 },
        ticks: { stroke: () => colour('line'), width: 1, size: 4 },
        gap: 4,
        ...extra,
    };
}

export function byte_axis(): uPlot.Axis {
    return axis({
        size: 66,
        incrs: BYTE_STEPS,
        space: 26,
        values: (_, values) => values.map((value) => bytes(value)),
    });
}

const DECIMAL_STEPS = [1, 2, 5]
    .flatMap((k) => Array.from({ length: 16 }, (_, i) => k * 10 ** i))
    .sort((a, b) => a - b);

function time_steps(): number[] {
    const unit = clock_unit_ns();
    return unit === 1 ? DECIMAL_STEPS : BYTE_STEPS.map((step) => step * unit);
}

// The x scale is in ns.
export function time_axis(span_ns: () => number): uPlot.Axis {
    return axis({
        size: 24,
        space: 70,
        incrs: () => time_steps(),
        values: (_, values) => values.map((value) => short_time(value, span_ns())),
    });
}

function short_time(ns: number, span_ns: number): string {
    return moment(ns, span_ns)
        .replace(/\.?0+ /, ' ')
        .replace(/^0 .*/, '0');
}
