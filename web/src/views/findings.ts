// SPDX-License-Identifier: MIT
//
// What memcheck found, by source line. At the left what to show: kinds, modules, and with a
// baseline what is new, known or fixed.
import { query_string } from '../api/client';
import type { Params } from '../api/client';
import type { FindingGroup, FindingsAnswer, SourceAnswer } from '../api/types';
import { base_name, count, plural, shortened } from '../model/format';
import { choose, refresh_all, search } from '../ui/controls';
import { h, replace } from '../ui/dom';
import { failure, Loader, message } from '../ui/loader';
import { group_box } from './finding_card';
import { SourceText } from './source_text';
import type { App, View, ViewKind } from './view';

const PAGE = 100;
const STATUSES = ['new', 'known', 'fixed'] as const;

class FindingsView implements View {
    readonly element: HTMLElement;
    private readonly find;
    private readonly baseline;
    private readonly facets = h('div', { class: 'scroll' });
    private readonly list = h('div', { class: 'scroll', tabindex: 0, 'aria-label': 'Findings' });
    private readonly sum = h('span', { class: 'muted' });
    private readonly loader: Loader;
    private params: Params = {};
    private all_kinds: FindingsAnswer['kinds'] = [];

    private source = ''; // that is shown instead: its number and line

    constructor(private readonly app: App) {
        const { store } = app;
        this.find = search(store, 'find.q', 'Search findings', 'Search  ( / )');
        this.baseline = choose(store, 'find.base', 'Baseline', () => this.baselines());
        const body = h('div', {});
        this.loader = new Loader(body, this.list);
        this.element = h(
            'div',
            { class: 'view' },
            h(
                'div',
                { class: 'bar' },
                this.sum,
                h('span', { class: 'spacer' }),
                this.baseline.element,
                this.find.element,
            ),
            h('div', { class: 'split is-findings' }, this.facets, body),
        );
    }

    on_key(event: KeyboardEvent): boolean {
        if (event.key !== '/') return false;
        this.find.focus();
        return true;
    }

    update(): void {
        const { store, api } = this.app;
        refresh_all([this.find, this.baseline]);
        const base_f = store.get('find.base');
        this.params = {
            f: this.app.file.id,
            kind: store.get('find.kind'),
            module: store.get('find.module'),
            search: store.get('find.q'),
            base_f,
            status: base_f ? store.get('find.status') : '',
        };
        const whole = { f: this.app.file.id, base_f };
        const place = store.get('find.src');
        if (!place && this.source) {
            this.source = '';
            this.loader.show_content();
        }
        const version = this.app.findings?.version ?? 0;
        void this.loader.load(
            `${version} ${query_string(this.params)}`,
            () =>
                Promise.all([
                    api.get<FindingsAnswer>('/api/findings', {
                        ...this.params,
                        offset: 0,
                        limit: PAGE,
                    }),
                    api.get<FindingsAnswer>('/api/findings', { ...whole, limit: 1 }),
                ]),
            ([answer, all]) => {
                this.all_kinds = all.kinds;
                this.draw_facets(all);
                this.draw(answer);
                this.source = '';
                if (place) void this.show_source(place);
            },
        );
        if (place && this.all_kinds.length > 0) void this.show_source(place);
    }

    private baselines(): { id: string; name: string }[] {
        return [
            { id: '', name: 'none' },
            ...this.app.files
                .filter((file) => file.kind === 'findings' && file.id !== this.app.file.id)
                .map((file) => ({ id: String(file.id), name: shortened(file.name, 50) })),
        ];
    }

    private level_of = (kind: string): string =>
        this.all_kinds.find((other) => other.id === kind)?.level ?? 'note';

    // ------------------------------------------------------------------ facets

    private draw_facets(all: FindingsAnswer): void {
        const { store } = this.app;
        const kinds = new Set(store.get('find.kind').split(',').filter(Boolean));
        const facet = (title: string, ...rows: (Node | null)[]): HTMLElement =>
            h('fieldset', { class: 'facet' }, h('h3', {}, title), rows);
        replace(
            this.facets,
            all.baseline &&
                facet(
                    'Against the baseline',
                    ...STATUSES.map((status) =>
                        this.option('find.status', status, status, all.baseline?.[status] ?? 0),
                    ),
                ),
            facet(
                'Kind',
                ...all.kinds.map((kind) =>
                    this.box(
                        kind.title,
                        kind.findings,
                        kinds.has(kind.id),
                        (on) => {
                            if (on) kinds.add(kind.id);
                            else kinds.delete(kind.id);
                            store.set({ 'find.kind': [...kinds].join() });
                        },
                        kind.level,
                    ),
                ),
            ),
            all.modules.length > 0 &&
                facet(
                    'Module',
                    ...all.modules
                        .slice(0, 40)
                        .map((module) =>
                            this.option(
                                'find.module',
                                module.object,
                                base_name(module.object),
                                module.findings,
                            ),
                        ),
                ),
        );
    }

    private box(
        label: string,
        findings: number,
        is_on: boolean,
        changed: (on: boolean) => void,
        level = '',
    ): HTMLElement {
        const input = h('input', {
            type: 'checkbox',
            checked: is_on,
            onchange: () => changed(input.checked),
        });
        return h(
            'label',
            { title: shortened(label) },
            input,
            h('span', { class: 'cut' }, shortened(label, 80)),
            level && h('span', { class: `dot is-${level}`, title: level }),
            h('span', { class: 'num' }, count(findings)),
        );
    }

    // One of a list, or none.
    private option(key: string, value: string, label: string, findings: number): HTMLElement {
        const { store } = this.app;
        return this.box(label, findings, store.get(key) === value, (on) =>
            store.set({ [key]: on ? value : null }),
        );
    }

    // ------------------------------------------------------------------ groups

    private draw(answer: FindingsAnswer): void {
        this.sum.textContent =
            `${plural(answer.findings_total, 'finding')} at ${plural(answer.groups_total, 'source line')}, ` +
            `${plural(answer.errors, 'error')}`;
        if (answer.groups.length === 0)
            return replace(
                this.list,
                this.all_kinds.length === 0
                    ? message('Nothing was found', 'The tool reported no error and no leak.')
                    : message(
                          'Nothing matches',
                          'Choose other kinds or modules, or search for something else.',
                      ),
            );
        replace(
            this.list,
            answer.groups.map((group, i) => this.group(group, i === 0)),
            this.more_button(answer),
        );
        const opened = this.app.store.get('find.open').split(',')[0];
        if (opened) this.list.querySelector(`[data-id="${CSS.escape(opened)}"]`)?.scrollIntoView();
    }

    // Those that were opened are in the address; until one is, the first is open.
    private group(group: FindingGroup, is_first: boolean): HTMLElement {
        const opened = this.app.store.get('find.open').split(',').filter(Boolean);
        return group_box(
            group,
            this.level_of,
            (finding) =>
                opened.length > 0
                    ? opened.includes(String(finding.id))
                    : is_first && finding === group.findings[0],
            {
                open_source: (chosen) =>
                    this.app.store.set({ 'find.src': `${chosen.source}:${chosen.line}` }),
                toggled: (finding, is_open) => this.keep_open(finding.id, is_open),
            },
        );
    }

    private keep_open(id: number, is_open: boolean): void {
        const { store } = this.app;
        const others = store
            .get('find.open')
            .split(',')
            .filter((other) => other && other !== String(id));
        const opened = is_open ? [String(id), ...others] : others;
        store.set({ 'find.open': opened.slice(0, 20).join() || null }, true);
    }

    private more_button(answer: FindingsAnswer): HTMLElement | null {
        const shown = answer.offset + answer.groups.length;
        if (shown >= answer.groups_total) return null;
        const row = h(
            'div',
            { class: 'pad' },
            h(
                'button',
                {
                    type: 'button',
                    onclick: () => {
                        void this.app.api
                            .get<FindingsAnswer>('/api/findings', {
                                ...this.params,
                                offset: shown,
                                limit: PAGE,
                            })
                            .then((more) => {
                                row.remove();
                                this.list.append(
                                    ...more.groups.map((group) => this.group(group, false)),
                                );
                                const next = this.more_button(more);
                                if (next) this.list.append(next);
                            });
                    },
                },
                `${plural(answer.groups_total - shown, 'more line')}…`,
            ),
        );
        return row;
    }

    // The whole file, in place of its excerpt.
    private async show_source(place: string): Promise<void> {
        if (place === this.source) return;
        this.source = place;
        const [id, line] = place.split(':').map(Number);
        const back = h(
            'button',
            { type: 'button', onclick: () => this.app.store.set({ 'find.src': null }) },
            'Back',
        );
        const text = new SourceText(count);
        const title = h('div', { class: 'pane-title' }, back);
        const box = h('div', { class: 'view-body' }, title, text.element);
        this.loader.show_instead(box);
        try {
            const answer = await this.app.api.get<SourceAnswer>('/api/source', {
                f: this.app.file.id,
                id: id ?? 0,
            });
            if (place !== this.source) return;
            title.append(shortened(`${answer.directory ?? ''}/${answer.file ?? ''}`, 200));
            if (!answer.text)
                replace(box, title, message('The source cannot be read', answer.error ?? ''));
            else text.show(answer.text, [], line ?? 0);
        } catch (error) {
            replace(box, title, failure(error));
        }
    }
}

export const findings_view: ViewKind = {
    id: 'findings',
    title: 'Findings',
    icon: 'findings',
    files: 'findings',
    has_timeline: false,
    create: (app) => new FindingsView(app),
};
