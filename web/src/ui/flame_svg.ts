// SPDX-License-Identifier: MIT
//
// The flame graph as an SVG file: what is zoomed to, as it is on the screen, all rows of it. Each box
// has its name and value as a title. What is too narrow is counted in a line below.
import type { FlameLayout } from '../model/flame';
import { count } from '../model/format';
import { box_colour, node_label } from './flame_canvas';
import { colour } from './theme';

const WIDTH = 1200;
const ROW = 17;
const TOP = 44;
const MARGIN = 10;
const NARROWEST = 0.2; // pixels
const CHAR = 6.7;

const ESCAPES: Readonly<Record<string, string>> = {
    '<': '&lt;',
    '>': '&gt;',
    '&': '&amp;',
    '"': '&quot;',
};

function escape_xml(text: string): string {
    return text.replace(/[<>&"]/g, (c) => ESCAPES[c] ?? '');
}

// Whatever CSS says, as other programs read it: #rrggbb.
function plain_colours(): (css: string) => string {
    const known = new Map<string, string>();
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 1;
    const context = canvas.getContext('2d', { willReadFrequently: true });
    return (css) => {
        let plain = known.get(css);
        if (plain === undefined && context) {
            context.fillStyle = css;
            context.fillRect(0, 0, 1, 1);
            const [red = 0, green = 0, blue = 0] = context.getImageData(0, 0, 1, 1).data;
            plain = `#${[red, green, blue].map((c) => c.toString(16).padStart(2, '0')).join('')}`;
            known.set(css, plain);
        }
        return plain ?? '#cccccc';
    };
}

export interface SvgOptions {
    title: string;
    zoom: number; // the node that is as wide as the picture
    is_root_below: boolean;
    write(node: number): string; // its value
}

export function flame_svg(layout: FlameLayout, options: SvgOptions): string {
    const { tree, start, width, depth } = layout;
    const { zoom } = options;
    const left = start[zoom] ?? 0;
    const scale = (WIDTH - 2 * MARGIN) / Math.max(1e-12, width[zoom] ?? 1);
    const right = left + (width[zoom] ?? 1);
    const shown: number[] = [];
    let [deepest, narrow] = [0, 0];
    for (let node = 0; node < tree.count; node++) {
        const middle = start[node]! + width[node]! / 2;
        if (middle < left || middle > right) continue;
        if (width[node]! * scale < NARROWEST) {
            narrow += Math.max(1, tree.hidden[node] ?? 0);
            continue;
        }
        shown.push(node);
        deepest = Math.max(deepest, depth[node]!);
    }
    const height = TOP + (deepest + 1) * ROW + 30;
    const plain = plain_colours();
    const text_colour = plain(colour('flame-text'));
    const boxes = shown.map((node) => {
        const x = MARGIN + Math.max(0, start[node]! - left) * scale;
        const wide = Math.min(width[node]!, right - left) * scale;
        const row = options.is_root_below ? deepest - depth[node]! : depth[node]!;
        const y = TOP + row * ROW;
        const label = node_label(layout, node);
        const room = Math.floor((wide - 6) / CHAR);
        const text = label.length > room ? `${label.slice(0, Math.max(0, room - 1))}…` : label;
        const fill = plain(tree.hidden[node] ? colour('other') : box_colour(layout, node));
        return (
            `<g><title>${escape_xml(`${label} — ${options.write(node)}`)}</title>` +
            `<rect x="${x.toFixed(2)}" y="${y}" width="${Math.max(0.1, wide - 0.5).toFixed(2)}" ` +
            `height="${ROW - 1}" fill="${fill}"/>` +
            (room > 2
                ? `<text x="${(x + 3).toFixed(2)}" y="${y + 12}">${escape_xml(text)}</text>`
                : '') +
            '</g>\n'
        );
    });
    const ink = plain(colour('text'));
    return (
        `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" ` +
        `viewBox="0 0 ${WIDTH} ${height}" font-family="monospace" font-size="11" ` +
        `fill="${text_colour}">\n` +
        `<rect width="100%" height="100%" fill="${plain(colour('panel'))}"/>\n` +
        `<text x="${MARGIN}" y="24" font-size="14" fill="${ink}">${escape_xml(options.title)}</text>\n` +
        boxes.join('') +
        (narrow
            ? `<text x="${MARGIN}" y="${height - 10}" fill="${ink}">` +
              `${count(narrow)} more are too narrow to be drawn</text>\n`
            : '') +
        '</svg>\n'
    );
}
