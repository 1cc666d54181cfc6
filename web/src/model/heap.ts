// SPDX-License-Identifier: MIT
//
// A recording as the views see it: what the server does not know of it is filled in.
import type { HeapAnswer, Peak } from '../api/types';

export interface HeapInfo extends HeapAnswer {
    peak: Peak;
}

// A recording that was cut off may not say where its peak was.
export function heap_info(answer: HeapAnswer): HeapInfo {
    return { ...answer, peak: answer.peak ?? { ns: 0, heap: 0, mapped: 0, stack: 0, blocks: 0 } };
}
