// SPDX-License-Identifier: MIT
//
// The page around the views: header, list of views, timeline, selection. It knows which file is
// shown and what is known of it, gives that to the views, and tells them when the URL or the file
// changes.
import { Api } from '../api/client';
import type { Params } from '../api/client';
import { follow_live } from '../api/live';
import type { FileInfo, FilesAnswer, FindingsInfo, HeapAnswer, LiveChange } from '../api/types';
import { duration, set_clock, shortened, visible } from '../model/format';
import { heap_info } from '../model/heap';
import type { HeapInfo } from '../model/heap';
import { has_course, selection_params, Store } from '../model/state';
import { SelectionBar } from '../views/selection_bar';
import { Timeline } from '../views/timeline';
import { view_of, VIEWS } from '../views/registry';
import type { App, View, ViewKind } from '../views/view';
import { h, replace } from './dom';
import { Header } from './header';
import { icon } from './icons';
import { bind_keys } from './keys';
import { failure, message } from './loader';
import { hide_tip } from './tooltip';
import { on_theme } from './theme';

const LIVE_EVERY_MS = 1000;

// What files of other programs do not tell, by format. The views show what follows from the rest.
const NOT_TOLD: Readonly<Record<string, string>> = {
    massif:
        'A massif.out has snapshots only: counts, sizes, lifetimes, addresses and threads of blocks ' +
        'are not in it, and what is shown of them is a guess.',
    pprof:
        'A pprof profile is one moment: when blocks were allocated, their addresses and threads are ' +
        'not in it, and what is shown of them is a guess.',
};

export class Shell implements App {
    readonly api = new Api();
    readonly store = new Store();
    files: readonly FileInfo[] = [];
    heap: HeapInfo | null = null;
    findings: FindingsInfo | null = null;
    is_connected = true;
    private muninn = '';
    private info_of = -1;
    private readonly made = new Map<string, View>();
    private readonly nav = h('nav', { class: 'nav', 'aria-label': 'Views' });
    private readonly notices = h('div', { role: 'status' });
    private readonly read_warnings = new Set<number>(); // ids of files
    private readonly host = h('main', { class: 'view' });
    private readonly announcer = h('div', { class: 'visually-hidden', 'aria-live': 'polite' });
    private header!: Header;
    private timeline!: Timeline;
    private bar!: SelectionBar;
    private live_timer = 0;

    constructor(private readonly root: HTMLElement) {}

    get file(): FileInfo {
        const id = this.store.number('f') ?? 0;
        return this.files.find((file) => file.id === id) ?? this.files[0]!;
    }

    get is_following(): boolean {
        return this.file.live && this.store.get('follow') !== '0';
    }

    selection(): Params {
        const end = this.file.live ? (this.heap?.duration_ns ?? null) : null;
        return selection_params(this.store, end);
    }

    announce(text: string): void {
        this.announcer.textContent = text;
    }

    async start(): Promise<void> {
        try {
            const answer = await this.api.get<FilesAnswer>('/api/files');
            this.files = answer.files;
            this.muninn = answer.muninn;
        } catch (error) {
            this.root.classList.add('is-bare');
            return replace(this.root, h('div', { class: 'header' }, 'Muninn'), failure(error));
        }
        if (this.files.length === 0)
            return replace(this.root, message('No files', 'Give `muninn view` a recording.'));
        this.build();
        this.store.subscribe(() => void this.update());
        on_theme(() => this.view_now()?.update());
        bind_keys(this, () => this.view_now());
        if (this.files.some((file) => file.live) && !this.api.is_export) this.follow();
        await this.update();
    }

    private build(): void {
        this.header = new Header(this, this);
        this.timeline = new Timeline(this);
        this.bar = new SelectionBar(this);
        replace(
            this.root,
            this.header.element,
            this.nav,
            h(
                'div',
                { class: 'content' },
                this.notices,
                this.timeline.element,
                this.bar.element,
                this.host,
            ),
            this.announcer,
        );
    }

    private kind_now(): ViewKind {
        return view_of(this.store.view, this.file.kind === 'findings' ? 'findings' : 'heap');
    }

    private view_now(): View | undefined {
        return this.made.get(this.kind_now().id);
    }

    // The URL has changed: load what is known of the file, then show the view.
    private async update(): Promise<void> {
        hide_tip();
        const file = this.file;
        if (this.info_of !== file.id) {
            this.heap = this.findings = null;
            this.made.clear();
            try {
                await this.load_info(file);
            } catch (error) {
                this.draw_frame();
                return replace(this.host, failure(error));
            }
        }
        this.draw_frame();
        const kind = this.kind_now();
        if (this.file.kind === 'unreadable') return this.show_unreadable();
        try {
            this.show_view(kind, file);
        } catch (error) {
            console.error(error);
            replace(this.host, failure(error));
        }
    }

    private show_view(kind: ViewKind, file: FileInfo): void {
        let view = this.made.get(kind.id);
        if (!view) this.made.set(kind.id, (view = kind.create(this)));
        if (view.element.parentNode !== this.host) replace(this.host, view.element);
        view.update();
        this.host.dataset['shown'] = location.hash;
        document.title = `${kind.title} · ${shortened(file.name, 60)} · Muninn`;
    }

    private async load_info(file: FileInfo): Promise<void> {
        this.info_of = file.id;
        if (file.kind === 'heap')
            this.heap = heap_info(await this.api.get<HeapAnswer>('/api/info', { f: file.id }));
        else if (file.kind === 'findings')
            this.findings = await this.api.get<FindingsInfo>('/api/info', { f: file.id });
        set_clock(this.heap?.clock ?? 'ns');
    }

    private draw_frame(): void {
        const kind = this.kind_now();
        const has_timeline = this.heap !== null && kind.has_timeline && has_course(this.heap);
        this.draw_nav(kind);
        this.header.update();
        replace(
            this.notices,
            this.warnings(),
            !this.is_connected &&
                h('div', { class: 'notice is-error' }, 'The server does not answer. Trying again…'),
        );
        const has_bar = this.heap !== null && kind.has_timeline;
        this.timeline.element.hidden = !has_timeline;
        this.bar.element.hidden = !has_bar;
        if (has_timeline) this.timeline.update();
        if (has_bar) this.bar.update();
    }

    // One line, however much there is to say; it goes when it has been read.
    private warnings(): HTMLElement | null {
        const words = [NOT_TOLD[this.file.format] ?? '', ...this.file.warnings].filter(Boolean);
        if (words.length === 0 || this.read_warnings.has(this.file.id)) return null;
        return h(
            'div',
            { class: 'notice', title: shortened(words.join('\n'), 4000) },
            h('span', { class: 'cut' }, shortened(words.join(' '), 1000)),
            h(
                'button',
                {
                    type: 'button',
                    class: 'quiet',
                    'aria-label': 'Hide what is said of this file',
                    onclick: () => {
                        this.read_warnings.add(this.file.id);
                        this.draw_frame();
                    },
                },
                'Hide',
            ),
        );
    }

    private draw_nav(current: ViewKind): void {
        const sections = [
            ['heap', 'Memory'],
            ['findings', 'Findings'],
        ] as const;
        replace(
            this.nav,
            sections.map(([kind, title]) => {
                const file =
                    this.file.kind === kind
                        ? this.file
                        : this.files.find((other) => other.kind === kind);
                if (!file) return null;
                return [
                    h('h2', {}, title),
                    VIEWS.filter((view) => view.files === kind).map((view) =>
                        h(
                            'a',
                            {
                                href: this.link_to(view, file),
                                'aria-current':
                                    view === current && file === this.file ? 'page' : undefined,
                            },
                            icon(view.icon),
                            view.title,
                        ),
                    ),
                ];
            }),
            h('div', { class: 'foot' }, `Muninn ${this.muninn}`),
        );
    }

    // A selection of time means nothing in another file.
    private link_to(view: ViewKind, file: FileInfo): string {
        const other =
            file !== this.file
                ? {
                      from: null,
                      to: null,
                      at: null,
                      a: null,
                      b: null,
                      f: file.id === 0 ? null : file.id,
                  }
                : {};
        return this.store.link(view.id, other);
    }

    private show_unreadable(): void {
        const box = message('This file cannot be read', shortened(this.file.error ?? '', 1000));
        box.classList.add('is-error');
        box.append(h('p', { class: 'faint' }, visible(this.file.path)));
        document.title = `${shortened(this.file.name, 60)} · Muninn`;
        this.host.dataset['shown'] = location.hash;
        replace(this.host, box);
    }

    // ------------------------------------------------------------------ live

    private follow(): void {
        follow_live({
            changed: (change) => this.on_change(change, false),
            ended: (change) => this.on_change(change, true),
            lost: (is_lost) => {
                if (is_lost === this.is_connected) {
                    this.is_connected = !is_lost;
                    this.draw_frame();
                }
            },
        });
    }

    private on_change(change: LiveChange, has_ended: boolean): void {
        const file = this.files.find((other) => other.id === change.f);
        if (!file) return;
        if (has_ended) {
            file.live = false;
            this.announce(`${file.command} has ended after ${duration(change.duration_ns)}`);
        }
        if (change.f !== this.file.id || (!has_ended && !this.is_following) || this.live_timer)
            return;
        this.live_timer = window.setTimeout(
            () => {
                this.live_timer = 0;
                if (has_ended || this.is_following) void this.refresh_live();
            },
            has_ended ? 0 : LIVE_EVERY_MS,
        );
    }

    async refresh_live(): Promise<void> {
        this.api.forget();
        this.info_of = -1;
        const made = new Map(this.made);
        try {
            await this.load_info(this.file);
        } catch {
            return; // the next change, or the notice of a lost connection, tells
        }
        for (const [id, view] of made) this.made.set(id, view);
        await this.update();
    }
}
