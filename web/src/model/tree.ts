// SPDX-License-Identifier: MIT
//
// A tree of frames as the server sends it, in columns, which grows when the user opens what was
// left out: the children of a "N more" node are appended, the node itself becomes nothing.
import type { TreeAnswer } from '../api/types';
import type { FlameTree } from './flame';
import { base_name } from './format';

export const CATEGORY_ROOT = 0;
export const CATEGORY_OWN = 1;
export const CATEGORY_SYSTEM = 2;

const SYSTEM = /^(libc|libpthread|ld-linux|libm|libdl|libgcc_s|linux-vdso|libstdc\+\+)\b/;
const COLUMNS = [
    'id',
    'line',
    'value',
    'self',
    'count',
    'more',
    'first',
    'context',
    'flags',
] as const;

export class FrameTree implements FlameTree {
    readonly parent: number[];
    readonly value: number[];
    readonly self: number[];
    readonly blocks: number[];
    readonly hidden: number[];
    private readonly categories: number[] = [];

    // `own`: whether an object is the user's code.
    constructor(
        readonly columns: TreeAnswer,
        private readonly own: (object: string) => boolean,
    ) {
        this.parent = columns.parent;
        this.value = columns.value;
        this.self = columns.self;
        this.blocks = columns.count;
        this.hidden = columns.more;
    }

    get is_change(): boolean {
        return this.columns.metric === 'growth' || this.columns.base.length > 0;
    }

    get count(): number {
        return this.columns.id.length;
    }

    readonly label = (node: number): string => {
        if (node === 0) return 'all';
        return this.columns.names[this.columns.name[node] ?? 0] || '???';
    };

    readonly category = (node: number): number => {
        if (node === 0) return CATEGORY_ROOT;
        const index = this.columns.object[node] ?? 0;
        return (this.categories[index] ??= this.categorise(this.columns.objects[index] ?? ''));
    };

    private categorise(object: string): number {
        const name = base_name(object);
        // Some files name sources and no objects: then nothing can be told apart.
        if (!object && this.columns.objects.every((other) => !other)) return CATEGORY_OWN;
        if (!object || SYSTEM.test(name)) return CATEGORY_SYSTEM;
        if (this.own(object)) return CATEGORY_OWN;
        let hash = 0;
        for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
        return 3 + (hash % 10);
    }

    object(node: number): string {
        return this.columns.objects[this.columns.object[node] ?? 0] ?? '';
    }

    // "app.c:12", "app.c" or ''.
    place(node: number): string {
        const file = this.columns.files[this.columns.file[node] ?? 0] ?? '';
        const line = this.columns.line[node] ?? 0;
        return file && line ? `${file}:${line}` : file;
    }

    file(node: number): string {
        return this.columns.files[this.columns.file[node] ?? 0] ?? '';
    }

    // The labels from the root to a node, and back: ids do not survive a new question.
    path(node: number): string[] {
        const path: string[] = [];
        for (let at = node; at > 0; at = this.parent[at] ?? 0) path.unshift(this.label(at));
        return path;
    }

    find_id(id: number): number {
        return Math.max(0, this.columns.id.indexOf(id));
    }

    find_path(path: readonly string[]): number {
        let at = 0;
        for (const label of path) {
            let found = -1;
            for (let i = at + 1; i < this.count && found < 0; i++)
                if (this.parent[i] === at && this.label(i) === label) found = i;
            if (found < 0) return at;
            at = found;
        }
        return at;
    }

    // `answer` is the parent of the hidden node `node` with the children that were left out.
    graft(node: number, answer: TreeAnswer): void {
        const { columns } = this;
        const base = this.count;
        const parent = this.parent[node] ?? 0;
        const [names, files, objects] = [
            columns.names.length,
            columns.files.length,
            columns.objects.length,
        ];
        columns.names.push(...answer.names);
        columns.files.push(...answer.files);
        columns.objects.push(...answer.objects);
        for (let i = 1; i < answer.id.length; i++) {
            const up = answer.parent[i] ?? 0;
            columns.parent.push(up === 0 ? parent : base + up - 1);
            columns.name.push(names + (answer.name[i] ?? 0));
            columns.file.push(files + (answer.file[i] ?? 0));
            columns.object.push(objects + (answer.object[i] ?? 0));
            for (const column of COLUMNS) columns[column].push(answer[column][i] ?? 0);
            if (columns.base.length) columns.base.push(answer.base[i] ?? 0);
        }
        columns.value[node] = columns.more[node] = columns.self[node] = 0;
    }
}

// Patterns of objects as the server names the user's own, as one for `only`.
export function only_pattern(patterns: readonly string[]): string {
    if (patterns.length <= 1) return patterns[0] ?? '';
    const escaped = patterns.map((pattern) =>
        pattern
            .replace(/[.+^${}()|[\]\\/]/g, '\\$&')
            .replace(/\*/g, '.*')
            .replace(/\?/g, '.'),
    );
    return `/(^|\\/)(${escaped.join('|')})$/`;
}

export function is_own(
    patterns: readonly string[],
    executable: string,
): (object: string) => boolean {
    const names = new Set(patterns.map((pattern) => base_name(pattern)));
    return (object) => object === executable || names.has(base_name(object));
}
