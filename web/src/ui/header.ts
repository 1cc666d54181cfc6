// SPDX-License-Identifier: MIT
//
// The top line: which file, of what, its main numbers; for a running program the buttons that ask
// something of it; theme, link and help.
import type { ActionAnswer } from '../api/types';
import { bytes, duration, plural, shortened, visible } from '../model/format';
import { has_course } from '../model/state';
import type { App } from '../views/view';
import { copy_text, help_dialog, text_dialog } from './dialogs';
import { h, replace } from './dom';
import { icon } from './icons';
import { toggle_theme } from './theme';

interface Follower {
    readonly is_following: boolean;
}

export class Header {
    readonly element = h('header', { class: 'header' });
    private readonly facts = h('div', { class: 'facts' });
    private readonly command = h('div', { class: 'command cut grow' });
    private readonly live = h('div', { class: 'facts' });
    private readonly files: HTMLSelectElement;

    constructor(
        private readonly app: App,
        private readonly follower: Follower,
    ) {
        this.files = h(
            'select',
            { 'aria-label': 'File', onchange: () => this.choose_file() },
            app.files.map((file) => h('option', { value: file.id }, shortened(file.name, 60))),
        );
        replace(
            this.element,
            h('a', { class: 'brand', href: '#/' }, icon('raven'), 'Muninn'),
            app.files.length > 1 && this.files,
            this.command,
            this.live,
            this.facts,
            h(
                'div',
                {},
                this.button('link', 'Copy a link to this state', () => void this.copy_link()),
                this.button('theme', 'Light or dark (d)', toggle_theme),
                this.button('help', 'Keys and help (?)', help_dialog),
            ),
        );
    }

    update(): void {
        const { file, heap, findings } = this.app;
        this.files.value = String(file.id);
        this.command.textContent = shortened(file.command || file.name, 500);
        this.command.title = shortened(`${file.command}\n${file.path}`, 1000);
        if (heap)
            replace(
                this.facts,
                fact('peak', heap.peak.heap ? bytes(heap.peak.heap) : '–'),
                fact('leaked', bytes(heap.totals.leaked)),
                has_course(heap) && fact('ran', duration(heap.duration_ns)),
            );
        else if (findings)
            replace(
                this.facts,
                fact('', plural(findings.errors, 'error')),
                fact('leaked', bytes(findings.leaked)),
            );
        else replace(this.facts);
        this.draw_live();
    }

    private draw_live(): void {
        if (!this.app.file.live) return replace(this.live);
        replace(
            this.live,
            h('span', { class: 'badge is-live' }, `running, pid ${this.app.file.pid}`),
            h(
                'button',
                {
                    type: 'button',
                    'aria-pressed': String(this.follower.is_following),
                    title: 'Show what is new as it comes',
                    onclick: () =>
                        this.app.store.set({ follow: this.follower.is_following ? '0' : null }),
                },
                'Follow',
            ),
            this.app.heap
                ? this.action_button('snapshot', 'Snapshot')
                : this.action_button('leak-check', 'Leak check'),
        );
    }

    private action_button(what: 'snapshot' | 'leak-check', title: string): HTMLElement {
        return h('button', { type: 'button', onclick: () => void this.act(what, title) }, title);
    }

    private button(name: 'link' | 'theme' | 'help', label: string, work: () => void): HTMLElement {
        return h(
            'button',
            {
                type: 'button',
                class: 'icon quiet',
                title: label,
                'aria-label': label,
                onclick: work,
            },
            icon(name),
        );
    }

    private choose_file(): void {
        this.app.store.go('', {
            f: this.files.value === '0' ? null : this.files.value,
            from: null,
            to: null,
            at: null,
            a: null,
            b: null,
        });
    }

    private async copy_link(): Promise<void> {
        await copy_text(location.href, 'The link');
        this.app.announce('Link copied');
    }

    private async act(what: 'snapshot' | 'leak-check', title: string): Promise<void> {
        try {
            const answer = await this.app.api.post<ActionAnswer>('/api/action', {
                f: this.app.file.id,
                do: what,
            });
            const words = answer.status === 0 ? title : `${title} failed`;
            text_dialog(words, visible_lines(answer.text) || 'Done.');
            await this.app.refresh_live();
        } catch (error) {
            text_dialog(`${title} failed`, error instanceof Error ? error.message : String(error));
        }
    }
}

function visible_lines(text: string): string {
    return text.split('\n').map(visible).join('\n');
}

function fact(name: string, value: string): HTMLElement {
    return h('span', { class: 'muted' }, name && `${name} `, h('b', { class: 'fact' }, value));
}
