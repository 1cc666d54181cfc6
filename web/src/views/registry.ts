// SPDX-License-Identifier: MIT
//
// All views, in the order of the list at the left.
import { contexts_view } from './contexts';
import { flame_view } from './flame';
import type { ViewKind } from './view';

export const VIEWS: readonly ViewKind[] = [flame_view, contexts_view];

// The view of this name that fits the kind of file, else the first that does.
export function view_of(id: string, files: 'heap' | 'findings'): ViewKind {
    return VIEWS.find((view) => view.id === id && view.files === files) ??
        VIEWS.find((view) => view.files === files) ?? VIEWS[0]!;
}
