// SPDX-License-Identifier: MIT
//
// From the server's timeline to what a chart draws: areas stacked as running sums, and lines, all
// on the same times.
import type { TimelineAnswer } from '../api/types';

export interface Line {
    readonly id: string;
    readonly name: string;
    readonly variable: string;
}

export const LINES: readonly Line[] = [
    { id: 'heap', name: 'Heap', variable: 'text' },
    { id: 'mapped', name: 'Mapped', variable: 's4' },
    { id: 'stack', name: 'Stacks', variable: 's2' },
    { id: 'rss', name: 'RSS', variable: 's3' },
];

// Samples are taken at their own times: the last one at or before each of `times`.
function resample(
    times: readonly number[],
    from: readonly number[],
    values: readonly number[],
): (number | null)[] {
    let next = 0;
    return times.map((time) => {
        while (next < from.length && from[next]! <= time) next++;
        return next > 0 ? values[next - 1]! : null;
    });
}

export function line_values(answer: TimelineAnswer, id: string): (number | null)[] {
    switch (id) {
        case 'heap':
            return answer.high.heap.length ? answer.high.heap : answer.totals.heap;
        case 'mapped':
            return answer.totals.mapped;
        case 'stack':
            return answer.totals.stack;
        default:
            return resample(answer.times, answer.rss.times, answer.rss.client);
    }
}

export function highest(values: readonly (number | null)[]): number {
    let high = 0;
    for (const value of values) high = Math.max(high, value ?? 0);
    return high;
}

// Running sums, outermost (all groups and the rest) first: painted in this order each covers what
// the ones before it must not show.
export function stack_up(answer: TimelineAnswer): number[][] {
    const sums: number[][] = [];
    let below = answer.times.map(() => 0);
    for (const values of [...answer.series, answer.other]) {
        below = below.map((sum, i) => sum + (values[i] ?? 0));
        sums.push(below);
    }
    return sums.reverse();
}

// Lines that tower above the heap are off until asked for: they would squash everything else.
const TOWERS = 4;

export function lines_shown(answer: TimelineAnswer, asked: string): ReadonlySet<string> {
    if (asked) return new Set(asked.split(','));
    const heap = highest(line_values(answer, 'heap'));
    return new Set(
        LINES.filter((line) => {
            const high = highest(line_values(answer, line.id));
            return high > 0 && (heap === 0 || high <= TOWERS * heap);
        }).map((line) => line.id),
    );
}
