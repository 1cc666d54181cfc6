// SPDX-License-Identifier: MIT
//
// All views, in the order of the list at the left.
import { callers_view } from './callers';
import { contexts_view } from './contexts';
import { diff_view } from './diff';
import { findings_view } from './findings';
import { flame_view } from './flame';
import { histograms_view } from './histograms';
import { leaks_view } from './leaks';
import { map_view } from './map';
import { query_view } from './query';
import { source_view } from './source';
import { summary_view } from './summary';
import { threads_view } from './threads';
import { tree_view } from './tree';
import type { ViewKind } from './view';

export const VIEWS: readonly ViewKind[] = [
    summary_view,
    flame_view,
    tree_view,
    contexts_view,
    callers_view,
    diff_view,
    histograms_view,
    map_view,
    threads_view,
    source_view,
    query_view,
    findings_view,
    leaks_view,
];

// The view of this name that fits the kind of file, else the first that does.
export function view_of(id: string, files: 'heap' | 'findings'): ViewKind {
    return (
        VIEWS.find((view) => view.id === id && view.files === files) ??
        VIEWS.find((view) => view.files === files) ??
        VIEWS[0]!
    );
}
