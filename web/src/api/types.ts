// SPDX-License-Identifier: MIT
//
// The answers of the server. Made by scripts/make_schema from docs/schema/http-api.schema.json: change
// that, and run `make schema`. docs/user/http-api.md says what they mean; names are those on the wire.
// Times are nanoseconds since the start of the run, sizes are bytes.

export type Clock = 'ns' | 'bytes' | 'instructions';

// The id of a kind; a tool may bring kinds of its own.
export type FindingKind =
    | 'uninit-branch' | 'uninit-value' | 'invalid-read' | 'invalid-write'
    | 'invalid-jump' | 'syscall-param' | 'client-check' | 'invalid-free'
    | 'mismatched-free' | 'overlap' | 'invalid-pool' | 'fishy-size' | 'realloc-zero'
    | 'bad-alignment' | 'bad-size' | 'zero-size' | 'size-mismatch'
    | 'alignment-mismatch' | 'leak-definite' | 'leak-indirect' | 'leak-possible'
    | 'leak-reachable' | 'fd-bad-close' | 'fd-not-closed' | 'fd-bad-use'
    | (string & {});

export type Metric =
    | 'live' | 'peak' | 'allocated' | 'allocations' | 'temporary' | 'leaked'
    | 'growth';

export type SpaceName = 'heap' | 'mapped' | 'stack';

export type Group = 'context' | 'function' | 'file' | 'library' | 'thread';

export interface FileInfo {
    id: number;
    name: string;
    path: string;
    kind: 'heap' | 'findings' | 'unreadable';
    format: string;
    live: boolean;
    pid: number;
    command: string | null;
    bytes: number;
    warnings: string[];
    error: string | null;
}

export interface FilesAnswer {
    version: number;
    muninn: string;
    export: boolean;
    files: FileInfo[];
}

export interface StateMark {
    index: number;
    reason: string;
    label: string | null;
    ns: number;
    heap: number;
    mapped: number;
    stack: number;
}

export interface Peak {
    ns: number;
    heap: number;
    mapped: number;
    stack: number;
    blocks: number;
}

export interface HeapAnswer {
    id: number;
    version: number;
    tool: string;
    command: string | null;
    options: string | null;
    executable: string | null;
    pid: number;
    start_unix_ns: number;
    duration_ns: number;
    clock: Clock;
    live: boolean;
    end: {
        known: boolean;
        kind: 'exit' | 'signal' | 'killed' | 'executed' | 'unknown';
        status: number;
        signal: number;
    };
    counts_instructions: boolean;
    pages_as_heap: boolean;
    has_stacks: boolean;
    events: number;
    events_kept_since_ns: number;
    events_kept: 'all' | 'some' | 'none';
    contexts: number;
    sites: number;
    frames: number;
    threads: number;
    modules: number;
    totals: {
        allocated: number;
        allocations: number;
        frees: number;
        temporary: number;
        reallocations: number;
        leaked: number;
        leaked_blocks: number;
    }; // Null on the wire if it is not known; the shell puts zeros.
    peak: Peak | null; // null: nothing is known of it
    rss_peak: number;
    spaces: SpaceName[];
    states: StateMark[];
    only_code: string[];
}

export interface FindingsInfo {
    id: number;
    version: number;
    tool: string;
    command: string;
    pid: number;
    live: boolean;
    status: string;
    errors: number;
    contexts: number;
    findings: number;
    leaked: number;
    leaked_blocks: number;
}

export interface TimelineGroup {
    name: string;
    key: string;
    context: number | null;
    function: string | null;
    file: string | null;
    object: string | null;
    thread: number | null;
    value: number;
    via?: string[];
    contexts: number;
    line: number;
}

export interface TimelineAnswer {
    from: number;
    to: number;
    times: number[];
    totals: {
        heap: number[];
        mapped: number[];
        stack: number[];
    };
    high: {
        heap: number[];
        mapped: number[];
        stack: number[];
    };
    groups: TimelineGroup[];
    series: number[][];
    other: number[];
    other_groups: number;
    rss: {
        times: number[];
        client: number[];
        process: number[];
    };
    peak: {
        ns: number;
        value: number;
    } | null;
}

export interface TreeAnswer {
    metric: Metric;
    unit: 'bytes' | 'count';
    total: number;
    base_total: number;
    root: number;
    nodes: number;
    all_nodes: number;
    names: string[];
    files: string[];
    objects: string[];
    id: number[];
    parent: number[];
    name: number[];
    file: number[];
    line: number[];
    object: number[];
    value: number[];
    self: number[];
    count: number[];
    more: number[];
    first: number[];
    context: number[];
    flags: number[];
    base: number[];
    finding?: number[]; // of /api/leaks
}

export interface Sums {
    live: number;
    blocks: number;
    peak: number;
    peak_own: number;
    allocated: number;
    allocations: number;
    freed: number;
    frees: number;
    temporary: number;
    reallocations: number;
    leaked: number;
    growth: number;
}

export interface ContextRow {
    live: number;
    blocks: number;
    peak: number;
    peak_own: number;
    allocated: number;
    allocations: number;
    freed: number;
    frees: number;
    temporary: number;
    reallocations: number;
    leaked: number;
    growth: number;
    key: string;
    name: string;
    function: string | null;
    file: string | null;
    line: number;
    object: string | null;
    context: number | null;
    via?: string[]; // of a context: who leads to it
    thread: number | null;
    contexts: number;
    average: number;
    first_ns: number;
    last_ns: number;
    base?: {
        live?: number;
        blocks?: number;
        peak?: number;
        peak_own?: number;
        allocated?: number;
        allocations?: number;
        freed?: number;
        frees?: number;
        temporary?: number;
        reallocations?: number;
        leaked?: number;
        growth?: number;
    } | null;
    spark?: number[];
    base_only?: boolean; // only the base has it
}

export interface ContextsAnswer {
    rows_total: number;
    offset: number;
    totals: Sums;
    rows: ContextRow[];
}

export interface Frame {
    pc: string;
    function: string | null;
    file: string | null;
    directory: string | null;
    line: number;
    object: string | null;
    object_offset?: string;
    inlined: boolean;
    source?: number | null;
}

export interface StackAnswer {
    context: number;
    frames: Frame[];
}

export interface FunctionRow {
    id: number;
    function: string;
    file: string | null;
    line: number;
    object: string | null;
    total: number;
    self: number;
    count: number;
    base?: number;
}

export interface FunctionsAnswer {
    rows_total: number;
    offset: number;
    total: number;
    unit: 'bytes' | 'count';
    rows: FunctionRow[];
}

export interface CallRow {
    id: number;
    function: string;
    file: string | null;
    line: number;
    object: string | null;
    value: number;
    count: number;
}

export interface FunctionAnswer {
    id: number;
    function: string;
    file: string | null;
    line: number;
    object: string | null;
    total: number;
    self: number;
    count: number;
    base?: number;
    unit: 'bytes' | 'count';
    callers: CallRow[];
    callees: CallRow[];
    lines: {
        file: string;
        line: number;
        value: number;
    }[];
}

export interface SizeBucket {
    low: number;
    high: number;
    count: number;
    bytes?: number | null;
}

export interface HistogramAnswer {
    exact: boolean;
    sizes: SizeBucket[];
    lifetimes: SizeBucket[];
    largest: number | null;
    allocations: number;
    frees: number;
}

export interface Region {
    start: string;
    end: string;
    kind: string;
    bytes: number;
    usable: number;
    blocks: number;
    pages: number;
    used_pages: number;
    cell_bytes: number;
    cell_live: number[];
    cell_blocks: number[];
}

export interface MapAnswer {
    at: number;
    blocks: number;
    bytes: number;
    usable: number;
    regions: Region[];
    regions_more: number;
    fragmentation: {
        used_pages: number;
        full_pages: number;
        page_bytes: number;
        live_bytes: number;
        lost: number;
        fill: number[];
        holes: number;
        largest_hole: number;
        pinned: {
            context: number;
            name: string;
            pages: number;
            bytes: number;
        }[];
    };
}

export interface BlocksAnswer {
    rows_total: number;
    at: number;
    rows: {
        address: string;
        size: number;
        usable: number;
        born_ns: number;
        died_ns: number | null;
        context: number;
        thread: number;
        name: string;
    }[];
    offset: number;
}

export interface ThreadRow {
    number: number;
    tid: number;
    name: string | null;
    start_ns: number;
    end_ns: number | null;
    live: number;
    blocks: number;
    peak: number;
    allocated: number;
    allocations: number;
    frees: number;
    temporary: number;
    leaked: number;
    growth: number;
    spark?: number[];
    freed: number;
    peak_own: number;
    reallocations: number;
}

export interface ThreadsAnswer {
    rows: ThreadRow[];
    rows_total: number;
}

export interface SourceRow {
    id: number;
    file: string;
    directory: string | null;
    total: number;
    self: number;
    lines: number;
    readable: boolean;
}

export interface SourcesAnswer {
    rows_total: number;
    rows: SourceRow[];
}

export interface SourceAnswer {
    id: number;
    file: string;
    directory: string | null;
    readable: boolean;
    error: string | null;
    newer: boolean;
    text: string[] | null;
    lines: {
        line: number;
        total: number;
        self: number;
        count: number;
        functions: string[];
    }[];
}

export interface SqlTable {
    name: string;
    help: string;
    columns: {
        name: string;
        type: string;
        help: string;
    }[];
}

export interface TablesAnswer {
    tables: SqlTable[];
    examples: {
        title: string;
        query: string;
    }[];
}

export type SqlValue = number | string | null;

export interface SqlAnswer {
    columns: string[];
    rows: SqlValue[][];
    truncated: boolean;
    ms: number;
}

export interface Excerpt {
    first: number;
    marked: number;
    text: string[];
}

export interface Finding {
    id: number;
    kind: FindingKind;
    tool: string;
    what: string;
    fingerprint: string;
    count: number;
    status: 'new' | 'known' | 'fixed' | null;
    thread: {
        id: number;
        name: string | null;
    } | null;
    leak: {
        bytes: number;
        blocks: number;
        held_by: {
            text: string;
            bytes: number;
            blocks: number;
        }[];
    } | null;
    stack: Frame[];
    parts: {
        kind: string;
        text: string;
        stack: Frame[] | null;
        excerpt: Excerpt | null;
    }[];
    suppression: string | null;
}

export interface FindingGroup {
    key: string;
    file: string | null;
    directory: string | null;
    line: number;
    function: string | null;
    object: string | null;
    source: number | null;
    count: number;
    excerpt: Excerpt | null;
    findings: Finding[];
    findings_total: number;
    inlined?: boolean;
    pc?: string;
}

export interface FindingsAnswer {
    groups_total: number;
    findings_total: number;
    errors: number;
    offset: number;
    kinds: {
        id: string;
        title: string;
        level: string;
        findings: number;
        count: number;
    }[];
    modules: {
        object: string;
        findings: number;
    }[];
    baseline: {
        new: number;
        known: number;
        fixed: number;
    } | null;
    groups: FindingGroup[];
}

export interface LiveChange {
    f: number;
    version: number;
    duration_ns: number;
    heap: number;
    mapped: number;
    stack: number;
    events: number;
}

export interface ActionAnswer {
    status: number;
    text: string;
}
