// SPDX-License-Identifier: MIT
//
// Asks the server, or the answers embedded in an export. Answers are kept, a few dozen of them, so
// that going back to a view costs nothing; those of a live file go stale when it grows. The same
// question asked twice while it is under way is one request.
import { find_exported, load_export } from './exported';
import type { ExportedAnswers } from './exported';

export type Params = Readonly<Record<string, string | number | boolean | null | undefined>>;

export class ApiError extends Error {
    constructor(
        readonly code: string,
        message: string,
        readonly status: number,
    ) {
        super(message);
    }
}

const ANSWERS_KEPT = 60;
const PATIENCE_MS = 30_000;

interface Pending {
    pending: true;
    progress: number;
    retry_ms: number;
}

// Parameters in alphabetical order, without those that say nothing.
export function query_string(params: Params): string {
    return Object.entries(params)
        .filter(
            ([, value]) => value !== null && value !== undefined && value !== '' && value !== false,
        )
        .map(([name, value]) => [name, value === true ? '1' : String(value)] as const)
        .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
        .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
        .join('&');
}

// A question in short. Ids of nodes are of one question: in the address it stands beside them.
export function question_mark(params: Params): string {
    let hash = 0;
    for (const c of query_string(params)) hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
    return hash.toString(36);
}

async function read_failure(response: Response): Promise<ApiError> {
    try {
        const body = (await response.json()) as { error?: { code?: string; message?: string } };
        return new ApiError(
            body.error?.code ?? 'internal',
            body.error?.message ?? response.statusText,
            response.status,
        );
    } catch {
        return new ApiError('internal', `the server answered ${response.status}`, response.status);
    }
}

export class Api {
    private readonly kept = new Map<string, Promise<unknown>>();
    private readonly exported: ExportedAnswers | null;
    // Told of work that takes longer, from 0 to 1.
    on_progress: (progress: number) => void = () => undefined;

    constructor() {
        this.exported = load_export();
    }

    get is_export(): boolean {
        return this.exported !== null;
    }

    get<T>(path: string, params: Params = {}): Promise<T> {
        const query = query_string(params);
        const url = query ? `${path}?${query}` : path;
        let answer = this.kept.get(url) as Promise<T> | undefined;
        if (answer) {
            this.kept.delete(url); // to the end: it has just been used
        } else {
            answer = this.exported
                ? find_exported<T>(this.exported, path, params)
                : this.fetch<T>(url);
            answer.catch(() => this.kept.delete(url));
        }
        this.kept.set(url, answer);
        for (const oldest of this.kept.keys()) {
            if (this.kept.size <= ANSWERS_KEPT) break;
            this.kept.delete(oldest);
        }
        return answer;
    }

    // Forgets what was answered for a file, which has changed.
    forget(): void {
        this.kept.clear();
    }

    async post<T>(path: string, params: Params): Promise<T> {
        if (this.exported)
            throw new ApiError('refused', 'this page is an export: there is no program to ask', 0);
        const response = await this.request(`${path}?${query_string(params)}`, {
            method: 'POST',
            headers: { 'X-Muninn-Action': '1' },
        });
        if (!response.ok) throw await read_failure(response);
        return (await response.json()) as T;
    }

    private async request(url: string, init: RequestInit): Promise<Response> {
        try {
            return await fetch(url.replace(/^\//, ''), { ...init, credentials: 'same-origin' });
        } catch {
            throw new ApiError(
                'offline',
                'The server does not answer. Does `muninn view` still run?',
                0,
            );
        }
    }

    private async fetch<T>(url: string): Promise<T> {
        const deadline = performance.now() + PATIENCE_MS;
        for (;;) {
            const response = await this.request(url, {});
            if (!response.ok) throw await read_failure(response);
            const body = (await response.json()) as T | Pending;
            if (response.status !== 202) {
                this.on_progress(1);
                return body as T;
            }
            if (performance.now() > deadline)
                throw new ApiError('busy', 'This takes too long. Narrow the selection.', 503);
            const pending = body as Pending;
            this.on_progress(pending.progress);
            await new Promise((done) => setTimeout(done, pending.retry_ms));
        }
    }
}
