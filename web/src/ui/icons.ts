// SPDX-License-Identifier: MIT
//
// Line drawings of 16 by 16, as path data.
import { svg } from './dom';

const PATHS = {
    raven: 'M2 6.5 6 4.2C7.4 2.4 9.8 2 11.4 3.2L14 4.6l-2.4.9c.3 3-1.3 5.6-4 6.5L3 14l1.6-3.2C3.4 9.6 2.6 8 2 6.5Z',
    summary: 'M2.5 2.5h4.5v5H2.5zM9 2.5h4.5v3H9zM9 7.5h4.5v6H9zM2.5 9.5H7v4H2.5z',
    flame: 'M2 3.5h12M2 7h9M2 10.5h6M2 14h3',
    tree: 'M3 3h10M6 6.5h7M6 10h7M9 13.5h4M3 3v7h3M6 10v3.5h3',
    contexts: 'M2 3h12v10H2zM2 6.3h12M2 9.6h12M6.5 6.3V13',
    callers: 'M8 6.2V9.8M3.5 3h9v3h-9zM3 10h4v3H3zM9 10h4v3H9z',
    histogram: 'M2 14h12M3.5 14V9M6.5 14V4M9.5 14V7M12.5 14v-3',
    map: 'M2 3h12v3H2zM2 10h12v3H2zM5 3v3M11 3v3M7 10v3',
    threads: 'M3 2v12M8 2v7M13 5v9M3 5c5 0 0 0 5 0M8 9c5 0 0 0 5 0',
    source: 'M5.5 4 2 8l3.5 4M10.5 4 14 8l-3.5 4',
    diff: 'M5 3v6M2 6h6M9 11h5M3 14 13 2',
    findings: 'M8 2 14.2 13.2H1.8zM8 6.2v3.4M8 11.2v.6',
    leaks: 'M8 2c3 4 4 5.6 4 7.6a4 4 0 0 1-8 0C4 7.6 5 6 8 2Z',
    query: 'M2.5 3.5 6 7.5l-3.5 4M7.5 12.5h6',
    theme: 'M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12',
    help: 'M5.6 6A2.4 2.4 0 1 1 8 8.6V10M8 12.4v.6',
    link: 'M6.5 9.5l3-3M7 4.5 8.8 2.7a3 3 0 0 1 4.4 4.4L11.5 9M9 11.5l-1.8 1.8a3 3 0 0 1-4.4-4.4L4.5 7',
    camera: 'M2 5h3l1-1.5h4L11 5h3v8H2zM8 6.6a2.2 2.2 0 1 0 0 4.4 2.2 2.2 0 0 0 0-4.4Z',
} as const;

export type IconName = keyof typeof PATHS;

export function icon(name: IconName): SVGSVGElement {
    return svg(
        'svg',
        {
            viewBox: '0 0 16 16',
            'aria-hidden': 'true',
            fill: 'none',
            stroke: 'currentColor',
            'stroke-width': 1.4,
            'stroke-linejoin': 'round',
            'stroke-linecap': 'round',
        },
        svg('path', { d: PATHS[name] }),
    );
}
