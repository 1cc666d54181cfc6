// SPDX-License-Identifier: MIT
//
// The address space at a moment: each cell is a stretch of memory, the darker the more of it is
// live. Beside it, how much of the pages in use is lost between blocks, and who keeps pages from
// being given back. A click zooms into a stretch and lists its blocks.
import { query_string } from '../api/client';
import type { BlocksAnswer, MapAnswer, Region } from '../api/types';
import {
    bytes,
    bytes_exact,
    count,
    moment,
    percent,
    plural,
    shorten_templates,
    shortened,
} from '../model/format';
import { h, on_resize, replace } from '../ui/dom';
import { Loader, message } from '../ui/loader';
import { array_source, DataTable } from '../ui/table';
import { colour } from '../ui/theme';
import { facts, hide_tip, show_tip } from '../ui/tooltip';
import type { App, View, ViewKind } from './view';

const CELL = 9;
type Block = BlocksAnswer['rows'][number];

// Addresses fit in a double up to 2^53; the client's lie below 2^47.
const number_of = (address: string): number => Number.parseInt(address, 16);
const hex = (address: number): string => `0x${address.toString(16)}`;

function draw_cells(canvas: HTMLCanvasElement, region: Region, width: number): void {
    const columns = Math.max(1, Math.floor(width / CELL));
    const rows = Math.ceil(region.cell_live.length / columns);
    const pixels = devicePixelRatio || 1;
    canvas.width = Math.round(width * pixels);
    canvas.height = Math.round((rows * CELL + 1) * pixels);
    canvas.style.height = `${rows * CELL + 1}px`;
    const context = canvas.getContext('2d');
    if (!context) return;
    context.scale(pixels, pixels);
    region.cell_live.forEach((live, i) => {
        const fill = Math.min(1, live / region.cell_bytes);
        context.globalAlpha = fill > 0 ? 0.18 + 0.82 * fill : 1;
        context.fillStyle =
            fill > 0 ? colour(region.kind === 'heap' ? 'accent' : 's4') : colour('hover');
        context.fillRect(
            (i % columns) * CELL + 1,
            Math.floor(i / columns) * CELL + 1,
            CELL - 1,
            CELL - 1,
        );
    });
}

function cell_at(region: Region, width: number, x: number, y: number): number | null {
    const columns = Math.max(1, Math.floor(width / CELL));
    const index = Math.floor(y / CELL) * columns + Math.floor(x / CELL);
    return x < columns * CELL && index < region.cell_live.length ? index : null;
}

class MapView implements View {
    readonly element: HTMLElement;
    private readonly regions = h('div', { class: 'regions scroll' });
    private readonly side = h('aside', { class: 'side', 'aria-label': 'Fragmentation' });
    private readonly bar = h('div', { class: 'bar' });
    private readonly loader: Loader;
    private readonly blocks: DataTable<Block>;
    private answer: MapAnswer | null = null;

    constructor(private readonly app: App) {
        const body = h('div', {});
        this.loader = new Loader(body, h('div', { class: 'row-of' }, this.regions, this.side));
        this.element = h('div', { class: 'view' }, this.bar, body);
        this.blocks = new DataTable<Block>({
            label: 'Blocks',
            empty: 'No block is live here.',
            key: (row) => row.address,
            title: (row) => shortened(row.name),
            columns: () => [
                {
                    id: 'address',
                    label: 'Address',
                    width: '112px',
                    sorts: false,
                    cell: (row) => h('span', { class: 'mono' }, row.address),
                },
                {
                    id: 'size',
                    label: 'Size',
                    width: '76px',
                    is_number: true,
                    sorts: false,
                    cell: (row) => h('span', { title: bytes_exact(row.size) }, bytes(row.size)),
                },
                {
                    id: 'name',
                    label: 'Allocated by',
                    width: 'minmax(120px, 1fr)',
                    sorts: false,
                    cell: (row) => shortened(row.name, 120),
                },
            ],
            on_open: (row) =>
                app.store.go('contexts', { 'ctx.key': `c${row.context}`, 'ctx.group': null }),
        });
        on_resize(this.regions, () => this.draw_regions());
    }

    update(): void {
        const { store, api } = this.app;
        const [start, end] = [store.get('map.start'), store.get('map.end')];
        const params = { ...this.app.selection(), start, end, cells: 4096 };
        if (this.app.file.format !== 'muninn') {
            this.loader.reset();
            return this.loader.show_instead(
                message(
                    'No addresses',
                    `Where blocks lie is not in a file of ${this.app.file.format}: ` +
                        'muninn --tool=massif records it.',
                ),
            );
        }
        void this.loader.load(
            query_string(params),
            () => api.get<MapAnswer>('/api/map', params),
            (answer) => {
                this.answer = answer;
                this.draw();
                if (start) void this.load_blocks();
            },
        );
        if (this.answer) this.draw_regions();
    }

    private draw(): void {
        const answer = this.answer!;
        const is_zoomed = this.app.store.get('map.start') !== '';
        if (answer.regions.length === 0)
            return this.loader.show_instead(
                message(
                    'Nothing is live here',
                    'No block is live at this moment, or the addresses were not recorded.',
                ),
            );
        replace(
            this.bar,
            h(
                'span',
                {},
                `At ${moment(answer.at, this.app.heap?.duration_ns ?? 1)}: `,
                h('strong', {}, bytes(answer.bytes)),
                ` in ${plural(answer.blocks, 'block')}, `,
                `${bytes(answer.usable - answer.bytes)} more given by the allocator`,
            ),
            h('span', { class: 'spacer' }),
            is_zoomed &&
                h(
                    'button',
                    {
                        type: 'button',
                        onclick: () => this.app.store.set({ 'map.start': null, 'map.end': null }),
                    },
                    'Show all',
                ),
        );
        this.draw_regions();
        if (!is_zoomed) this.draw_side(answer);
    }

    private draw_regions(): void {
        const { answer } = this;
        const width = this.regions.clientWidth - 34;
        if (!answer || width < 50) return;
        replace(
            this.regions,
            answer.regions.map((region) => this.region(region, width)),
            answer.regions_more > 0 &&
                h(
                    'p',
                    { class: 'muted' },
                    `${plural(answer.regions_more, 'smaller region')} more.`,
                ),
        );
    }

    private region(region: Region, width: number): HTMLElement {
        const canvas = h('canvas', {
            role: 'img',
            'aria-label': `${region.kind} from ${region.start}`,
            onpointermove: (event: PointerEvent) => this.on_hover(region, width, event),
            onpointerleave: hide_tip,
            onclick: (event: MouseEvent) => this.on_click(region, width, event),
        });
        draw_cells(canvas, region, width);
        return h(
            'section',
            { class: 'region' },
            h(
                'div',
                { class: 'region-title' },
                h('b', {}, region.kind),
                h('span', { class: 'mono muted' }, `${region.start} – ${region.end}`),
                h('span', { class: 'num' }, bytes(number_of(region.end) - number_of(region.start))),
                h(
                    'span',
                    { class: 'num' },
                    `${bytes(region.bytes)} live in ${plural(region.blocks, 'block')}`,
                ),
                h(
                    'span',
                    { class: 'num muted' },
                    `${count(region.used_pages)} of ${plural(region.pages, 'page')} used`,
                ),
                h('span', { class: 'num muted' }, `a cell is ${bytes(region.cell_bytes)}`),
            ),
            canvas,
        );
    }

    private on_hover(region: Region, width: number, event: PointerEvent): void {
        const cell = cell_at(region, width, event.offsetX, event.offsetY);
        if (cell === null) return hide_tip();
        const start = number_of(region.start) + cell * region.cell_bytes;
        const live = region.cell_live[cell] ?? 0;
        show_tip(
            event.clientX,
            event.clientY,
            h('b', { class: 'mono' }, hex(start)),
            facts([
                ['live', `${bytes(live)} of ${bytes(region.cell_bytes)}`],
                ['filled', percent(live, region.cell_bytes)],
                ['blocks', count(region.cell_blocks[cell] ?? 0)],
            ]),
        );
    }

    // Zooms into 64 cells around the pointer; the last step lists blocks of a page or so.
    private on_click(region: Region, width: number, event: MouseEvent): void {
        const cell = cell_at(region, width, event.offsetX, event.offsetY);
        if (cell === null) return;
        const middle = number_of(region.start) + cell * region.cell_bytes;
        const half = Math.max(2048, region.cell_bytes * 32);
        const start = Math.max(number_of(region.start), middle - half);
        this.app.store.set({ 'map.start': hex(start), 'map.end': hex(start + 2 * half) });
    }

    private async load_blocks(): Promise<void> {
        const { store, api } = this.app;
        const params = {
            ...this.app.selection(),
            start: store.get('map.start'),
            end: store.get('map.end'),
            limit: 1000,
        };
        const answer = await api.get<BlocksAnswer>('/api/blocks', params);
        replace(
            this.side,
            h(
                'div',
                { class: 'pane-title' },
                'Blocks',
                h('span', { class: 'muted' }, `${count(answer.rows_total)} live`),
            ),
            this.blocks.element,
        );
        this.blocks.set_source(array_source(answer.rows));
    }

    private draw_side(answer: MapAnswer): void {
        const f = answer.fragmentation;
        const high = Math.max(1, ...f.fill);
        replace(
            this.side,
            h('div', { class: 'pane-title' }, 'Fragmentation'),
            h(
                'div',
                { class: 'scroll pad' },
                h(
                    'dl',
                    { class: 'facts-list' },
                    (
                        [
                            ['Lost', `${percent(f.lost, 1)} of the pages in use`],
                            ['In use', `${bytes(f.page_bytes)} in ${plural(f.used_pages, 'page')}`],
                            [
                                'Full pages',
                                `${count(f.full_pages)}, ${percent(f.full_pages, f.used_pages)}`,
                            ],
                            ['Holes', `${count(f.holes)}, the largest ${bytes(f.largest_hole)}`],
                        ] as const
                    ).map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]),
                ),
                h('h3', { class: 'side-title' }, 'How full pages are'),
                h(
                    'div',
                    { class: 'fill', role: 'img', 'aria-label': 'Pages by how full they are' },
                    f.fill.map((pages, i) =>
                        h('div', {
                            '--part': `${(100 * pages) / high}%`,
                            title: `${plural(pages, 'page')} ${i * 10} % to ${i * 10 + 10} % full`,
                        }),
                    ),
                ),
                h('div', { class: 'scale' }, h('span', {}, 'empty'), h('span', {}, 'full')),
                h('h3', { class: 'side-title' }, 'Who keeps nearly empty pages'),
                f.pinned.length === 0
                    ? h('p', { class: 'muted' }, 'No page is less than a tenth full.')
                    : this.pinned(answer),
            ),
        );
    }

    private pinned(answer: MapAnswer): HTMLElement {
        return h(
            'table',
            { class: 'plain-table' },
            h(
                'thead',
                {},
                h(
                    'tr',
                    {},
                    h('th', {}, 'Context'),
                    h('th', { class: 'num' }, 'Pages'),
                    h('th', { class: 'num' }, 'Bytes'),
                ),
            ),
            h(
                'tbody',
                {},
                answer.fragmentation.pinned.map((row) =>
                    h(
                        'tr',
                        {},
                        h(
                            'td',
                            {},
                            h(
                                'button',
                                {
                                    type: 'button',
                                    class: 'link',
                                    onclick: () =>
                                        this.app.store.go('contexts', {
                                            'ctx.key': `c${row.context}`,
                                            'ctx.group': null,
                                        }),
                                },
                                shortened(shorten_templates(row.name), 90),
                            ),
                        ),
                        h('td', { class: 'num' }, count(row.pages)),
                        h('td', { class: 'num' }, bytes(row.bytes)),
                    ),
                ),
            ),
        );
    }
}

export const map_view: ViewKind = {
    id: 'map',
    title: 'Address map',
    icon: 'map',
    files: 'heap',
    has_timeline: true,
    create: (app) => new MapView(app),
};
