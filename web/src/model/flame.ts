// SPDX-License-Identifier: MIT
//
// Where the boxes of a flame graph lie. A tree comes as columns in which a parent stands before its
// children; the layout gives each node a place on [0, 1] and each depth its nodes from left to
// right. Zooming is a window on that line, so the layout is made once per tree.
//
// What must stay true
//   F1  A node's children lie inside it, side by side from its left edge, in the order given
//       (largest first), so that the small ones of one parent are neighbours.
//   F2  A row is sorted by place: everything on screen is found by bisection.
//
// In a tree of changes values have signs and cancel out; there a box is as wide as the sum of all
// changes in it, whatever their sign, so that F1 holds.

export interface FlameTree {
    readonly count: number;
    readonly parent: ArrayLike<number>; // of the root: 0
    readonly value: ArrayLike<number>;
    readonly self: ArrayLike<number>;
    readonly blocks: ArrayLike<number>;
    readonly hidden: ArrayLike<number>; // > 0: stands for so many siblings that were not sent
    readonly label: (node: number) => string;
    readonly category: (node: number) => number; // picks a colour; see FlameTheme
}

export interface FlameLayout {
    readonly tree: FlameTree;
    readonly start: Float64Array;
    readonly width: Float64Array;
    readonly depth: Uint16Array;
    readonly rows: readonly Uint32Array[];
    readonly total: number; // the weight that the width 1 stands for
    readonly is_signed: boolean;
}

// The weight of each node: its value or, where values have signs, the sum of changes below it.
function weigh(tree: FlameTree, is_signed: boolean): Float64Array {
    const weight = new Float64Array(tree.count);
    if (!is_signed) {
        for (let i = 0; i < tree.count; i++) weight[i] = Math.max(0, tree.value[i] ?? 0);
        return weight;
    }
    for (let i = 0; i < tree.count; i++)
        weight[i] = Math.abs((tree.hidden[i] ? tree.value[i] : tree.self[i]) ?? 0);
    for (let i = tree.count - 1; i > 0; i--) weight[tree.parent[i] ?? 0]! += weight[i]!;
    return weight;
}

export function flame_layout(tree: FlameTree): FlameLayout {
    let is_signed = false;
    for (let i = 0; i < tree.count && !is_signed; i++) is_signed = (tree.value[i] ?? 0) < 0;

    const weight = weigh(tree, is_signed);
    const total = weight[0] ?? 0;
    const start = new Float64Array(tree.count);
    const width = new Float64Array(tree.count);
    const depth = new Uint16Array(tree.count);
    const next = new Float64Array(tree.count); // where the next child of a node begins
    const lists: number[][] = [];
    for (let i = 0; i < tree.count; i++) {
        const up = tree.parent[i] ?? 0;
        width[i] = total > 0 ? weight[i]! / total : i === 0 ? 1 : 0;
        if (i > 0) {
            depth[i] = depth[up]! + 1;
            start[i] = next[up]!;
            next[up] = start[i]! + width[i]!;
        }
        next[i] = start[i]!;
        (lists[depth[i]!] ??= []).push(i);
    }
    const rows = lists.map((list) => {
        const row = Uint32Array.from(list);
        for (let i = 1; i < row.length; i++)
            if (start[row[i]!]! < start[row[i - 1]!]!)
                return row.sort((a, b) => start[a]! - start[b]! || a - b);
        return row;
    });
    return { tree, start, width, depth, rows, total, is_signed };
}

// The first index of `row` whose node ends after `place`, or row.length.
export function row_find(layout: FlameLayout, row: Uint32Array, place: number): number {
    let low = 0;
    let high = row.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        const node = row[middle]!;
        if (layout.start[node]! + layout.width[node]! <= place) low = middle + 1;
        else high = middle;
    }
    return low;
}

// A run of siblings, [first, end) in their row, too narrow to be drawn one by one.
export interface SmallRun {
    readonly first: number;
    readonly end: number;
    readonly start: number;
    readonly width: number;
}

// From the small node at `index` on: F1 makes all later siblings small as well.
export function small_run(layout: FlameLayout, row: Uint32Array, index: number): SmallRun {
    const { tree, start, width } = layout;
    const parent = tree.parent[row[index]!];
    let low = index + 1;
    let high = row.length;
    const limit = start[parent ?? 0]! + width[parent ?? 0]!;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (start[row[middle]!]! < limit && tree.parent[row[middle]!] === parent) low = middle + 1;
        else high = middle;
    }
    const last = row[low - 1]!;
    const from = start[row[index]!]!;
    return { first: index, end: low, start: from, width: start[last]! + width[last]! - from };
}

export interface SearchResult {
    readonly matches: Uint8Array; // 1: the node's own label matches
    readonly count: number;
    readonly value: number; // of outermost matching nodes: nothing is counted twice
}

export function flame_search(layout: FlameLayout, test: (label: string) => boolean): SearchResult {
    const { tree } = layout;
    const matches = new Uint8Array(tree.count);
    const inside = new Uint8Array(tree.count);
    let count = 0;
    let value = 0;
    for (let i = 1; i < tree.count; i++) {
        const up = tree.parent[i] ?? 0;
        inside[i] = inside[up]! | matches[up]!;
        if (!tree.hidden[i] && test(tree.label(i))) {
            matches[i] = 1;
            count++;
            if (!inside[i]) value += tree.value[i] ?? 0;
        }
    }
    return { matches, count, value };
}
