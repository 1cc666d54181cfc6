// SPDX-License-Identifier: MIT
//
// How numbers and names are written. Every view uses these, so that a quantity looks the same
// wherever it stands: bytes in powers of 1024 with three significant digits, times with a unit,
// names with everything that could mislead the eye made visible.
import type { Clock } from '../api/types';

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const;

function digits(value: number): string {
    return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function bytes(value: number): string {
    const size = Math.abs(value);
    let unit = 0;
    let scaled = size;
    while (scaled >= (unit === 0 ? 1024 : 999.5) && unit < BYTE_UNITS.length - 1) {
        scaled /= 1024;
        unit++;
    }
    const text = unit === 0 ? String(Math.round(size)) : digits(scaled);
    return `${value < 0 ? '−' : ''}${text} ${BYTE_UNITS[unit] ?? ''}`;
}

export function bytes_exact(value: number): string {
    return `${count(value)} B`;
}

export function count(value: number): string {
    const text = Math.abs(Math.round(value))
        .toString()
        .replace(/\B(?=(\d{3})+$)/g, ',');
    return value < 0 ? `−${text}` : text;
}

export function signed(value: number, write: (value: number) => string): string {
    return value > 0 ? `+${write(value)}` : write(value);
}

// The least value that is written with the unit, the unit, its name.
const COUNT_UNITS = [
    [1e12, 1e12, 'T'],
    [1e9, 1e9, 'G'],
    [1e6, 1e6, 'M'],
    [1e4, 1e3, 'k'],
] as const;

// A count for narrow places: 12.3 M.
export function count_short(value: number): string {
    for (const [least, size, name] of COUNT_UNITS)
        if (Math.abs(value) >= least)
            return `${value < 0 ? '−' : ''}${digits(Math.abs(value) / size)} ${name}`;
    return count(value);
}

export function percent(part: number, whole: number): string {
    if (!whole) return '–';
    const value = (part / whole) * 100;
    const size = Math.abs(value);
    if (size > 0 && size < 0.05) return '< 0.1 %';
    return `${value < 0 ? '−' : ''}${size >= 99.95 ? size.toFixed(0) : size.toFixed(1)} %`;
}

const TIME_UNITS = [
    [3600e9, 'h'],
    [60e9, 'min'],
    [1e9, 's'],
    [1e6, 'ms'],
    [1e3, 'µs'],
] as const;

// What the clock of the file counts. massif may count bytes or instructions: then a byte stands as a
// microsecond and an instruction as a nanosecond.
let clock: Clock = 'ns';

export function set_clock(unit: Clock): void {
    clock = unit;
}

const BYTE_NS = 1000;

// What a unit of the clock stands as.
export function clock_unit_ns(): number {
    return clock === 'bytes' ? BYTE_NS : 1;
}

export function duration(ns: number): string {
    if (clock === 'bytes') return bytes(ns / BYTE_NS);
    if (clock === 'instructions') return `${count_short(ns)} instructions`;
    for (const [size, name] of TIME_UNITS)
        if (Math.abs(ns) >= size) return `${digits(ns / size)} ${name}`;
    return `${Math.round(ns)} ns`;
}

// A moment of the run, precise enough to be told from its neighbours in a span of `span_ns`.
export function moment(ns: number, span_ns: number): string {
    if (clock === 'bytes') return bytes(ns / BYTE_NS);
    if (clock === 'instructions') return count_short(ns);
    if (span_ns < 2e6) return `${(ns / 1e3).toFixed(1)} µs`;
    if (span_ns < 2e9) return `${(ns / 1e6).toFixed(span_ns < 2e8 ? 2 : 1)} ms`;
    return `${(ns / 1e9).toFixed(span_ns < 2e10 ? 3 : 2)} s`;
}

export function address(value: number | string): string {
    return typeof value === 'string' ? value : `0x${value.toString(16)}`;
}

export function plural(value: number, one: string, many = `${one}s`): string {
    return `${count(value)} ${value === 1 ? one : many}`;
}

// Control characters, and those that reorder or hide text, as escapes: `a\u202eb`. What remains is
// shown as it is, by the browser, as text.
const MISLEADING =
    /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export function visible(name: string): string {
    return name.replace(MISLEADING, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

// For tool tips and the like, where a name of 10,000 characters helps nobody.
export function shortened(name: string, limit = 300): string {
    const text = visible(name.length > limit * 2 ? name.slice(0, limit * 2) : name);
    return text.length > limit ? `${text.slice(0, limit)}…` : text;
}

// `std::vector<std::pair<int, int>, A>::push_back(T&&)` → `std::vector<…>::push_back(T&&)`. A `<` that
// no name stands before opens nothing: `<Vec<T> as Drop>::drop` of Rust, `operator<`.
export function shorten_templates(name: string): string {
    if (name.length > 4096) return name;
    let depth = 0;
    let out = '';
    for (let i = 0; i < name.length; i++) {
        const c = name[i] ?? '';
        const opens =
            c === '<' && /\w/.test(name[i - 1] ?? '') && /[\w(&*:'\[]/.test(name[i + 1] ?? '');
        if (opens && !name.slice(0, i).endsWith('operator')) {
            if (depth++ === 0) out += '<…>';
        } else if (depth > 0) {
            if (c === '<') depth++;
            if (c === '>' && name[i - 1] !== '-') depth--;
        } else {
            out += c;
        }
    }
    return depth === 0 ? out : name;
}

export function base_name(path: string): string {
    return path.slice(path.lastIndexOf('/') + 1);
}

const SIGNALS: Record<number, string> = {
    1: 'SIGHUP',
    2: 'SIGINT',
    3: 'SIGQUIT',
    4: 'SIGILL',
    5: 'SIGTRAP',
    6: 'SIGABRT',
    7: 'SIGBUS',
    8: 'SIGFPE',
    9: 'SIGKILL',
    11: 'SIGSEGV',
    13: 'SIGPIPE',
    14: 'SIGALRM',
    15: 'SIGTERM',
};

export function signal_name(number: number): string {
    return SIGNALS[number] ?? `signal ${number}`;
}
