// SPDX-License-Identifier: MIT
//
// The one tool tip of the page, for what canvases show. It follows the pointer and stays inside the
// window.
import { h, replace } from './dom';
import type { Child } from './dom';

const tip = h('div', { class: 'tooltip', hidden: true, role: 'tooltip' });
const MARGIN = 14;

export function show_tip(x: number, y: number, ...content: readonly Child[]): void {
    if (!tip.isConnected) document.body.append(tip);
    replace(tip, ...content);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const right = x + MARGIN + box.width < innerWidth ? x + MARGIN : x - MARGIN - box.width;
    const below = y + MARGIN + box.height < innerHeight ? y + MARGIN : y - MARGIN - box.height;
    tip.style.left = `${Math.max(4, right)}px`;
    tip.style.top = `${Math.max(4, below)}px`;
}

export function hide_tip(): void {
    tip.hidden = true;
}

// Rows of a name and a value, for the body of a tool tip.
export function facts(rows: readonly (readonly [string, string])[]): HTMLElement {
    return h(
        'dl',
        {},
        rows.map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]),
    );
}
