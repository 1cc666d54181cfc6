// SPDX-License-Identifier: MIT
//
// What a view is, and what it may use of the page around it.
import type { Api, Params } from '../api/client';
import type { FileInfo, FindingsInfo } from '../api/types';
import type { HeapInfo } from '../model/heap';
import type { Store } from '../model/state';
import type { IconName } from '../ui/icons';

export interface App {
    readonly api: Api;
    readonly store: Store;
    readonly files: readonly FileInfo[];
    readonly file: FileInfo; // the one that `f` of the URL means
    readonly heap: HeapInfo | null; // of it, or null: it is not a heap recording
    readonly findings: FindingsInfo | null;
    // The selection, as parameters; pinned to what is on the screen if the file grows.
    selection(): Params;
    announce(text: string): void; // to screen readers
    // What was measured again: every view asks anew.
    refresh_live(): Promise<void>;
}

export interface View {
    readonly element: HTMLElement;
    update(): void; // the URL, the file or the theme has changed
    on_key?(event: KeyboardEvent): boolean;
}

export interface ViewKind {
    readonly id: string;
    readonly title: string;
    readonly icon: IconName;
    readonly files: 'heap' | 'findings'; // what kind of file it shows
    readonly has_timeline: boolean;
    create(app: App): View;
}
