// SPDX-License-Identifier: MIT
//
// Follows running programs: the server says when a recording has grown, and when the program ended.
import type { LiveChange } from './types';

export interface LiveHandlers {
    changed(change: LiveChange): void;
    ended(change: LiveChange): void;
    lost(is_lost: boolean): void; // the connection; the browser tries again by itself
}

export function follow_live(handlers: LiveHandlers): () => void {
    const source = new EventSource('api/events');
    const read = (event: MessageEvent<string>): LiveChange => JSON.parse(event.data) as LiveChange;
    source.addEventListener('change', (event) =>
        handlers.changed(read(event as MessageEvent<string>)),
    );
    source.addEventListener('end', (event) => handlers.ended(read(event as MessageEvent<string>)));
    source.addEventListener('open', () => handlers.lost(false));
    source.addEventListener('error', () => handlers.lost(true));
    return () => source.close();
}
