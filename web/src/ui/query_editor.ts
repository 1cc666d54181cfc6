// SPDX-License-Identifier: MIT
//
// A text area for SQL that completes names: the list opens while typing or with Ctrl and space,
// arrows choose, Tab or Enter takes, Escape closes. Ctrl and Enter runs the query.
import type { SqlTable } from '../api/types';
import { complete, word_before } from '../model/sql_words';
import type { Completion } from '../model/sql_words';
import { h, replace } from './dom';

export class QueryEditor {
    readonly element: HTMLElement;
    readonly input: HTMLTextAreaElement;
    tables: readonly SqlTable[] = [];
    private readonly list = h('ul', {
        class: 'completions',
        role: 'listbox',
        id: 'completions',
        hidden: true,
    });
    private items: Completion[] = [];
    private chosen = 0;

    constructor(private readonly run: () => void) {
        this.input = h('textarea', {
            'aria-label': 'SQL query',
            spellcheck: 'false',
            autocomplete: 'off',
            role: 'combobox',
            'aria-autocomplete': 'list',
            'aria-controls': 'completions',
            'aria-expanded': 'false',
            placeholder: 'SELECT …    Ctrl+Enter runs, Ctrl+Space completes',
            oninput: () => this.update(false),
            onblur: () => this.close(),
            onkeydown: (event: KeyboardEvent) => this.on_key(event),
        });
        this.element = h('div', { class: 'query-edit' }, this.input, this.list);
    }

    get value(): string {
        return this.input.value;
    }

    set value(text: string) {
        if (this.input.value !== text) this.input.value = text;
    }

    private update(is_asked: boolean): void {
        const caret = this.input.selectionStart;
        const { word, qualifier } = word_before(this.input.value, caret);
        this.items =
            word || qualifier || is_asked ? complete(this.input.value, caret, this.tables) : [];
        this.chosen = 0;
        if (this.items.length === 0) return this.close();
        this.place(caret);
        this.draw();
    }

    // Below the caret, as well as a fixed-width font lets us know where that is.
    private place(caret: number): void {
        const before = this.input.value.slice(0, caret).split('\n');
        const column = before[before.length - 1]?.length ?? 0;
        this.list.style.setProperty(
            '--left',
            `${Math.min(10 + column * 7.9, this.input.clientWidth - 240)}px`,
        );
        this.list.style.setProperty(
            '--top',
            `${8 + before.length * 19.5 - this.input.scrollTop}px`,
        );
    }

    private draw(): void {
        replace(
            this.list,
            this.items.map((item, i) =>
                h(
                    'li',
                    {
                        role: 'option',
                        'aria-selected': String(i === this.chosen),
                        onpointerdown: (event: Event) => {
                            event.preventDefault();
                            this.take(item);
                        },
                    },
                    item.text,
                    h('span', {}, item.note),
                ),
            ),
        );
        this.list.hidden = false;
        this.input.setAttribute('aria-expanded', 'true');
        this.list.children[this.chosen]?.scrollIntoView({ block: 'nearest' });
    }

    private close(): void {
        this.list.hidden = true;
        this.items = [];
        this.input.setAttribute('aria-expanded', 'false');
    }

    private take(item: Completion): void {
        const caret = this.input.selectionStart;
        const { start } = word_before(this.input.value, caret);
        this.input.setRangeText(item.text, start, caret, 'end');
        this.close();
    }

    private on_key(event: KeyboardEvent): void {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            this.close();
            return this.run();
        }
        if (event.key === ' ' && event.ctrlKey) {
            event.preventDefault();
            return this.update(true);
        }
        const item = this.items[this.chosen];
        if (!item) return;
        if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
            const step = event.key === 'ArrowDown' ? 1 : -1;
            this.chosen = (this.chosen + step + this.items.length) % this.items.length;
            this.draw();
        } else if (event.key === 'Tab' || event.key === 'Enter') {
            this.take(item);
        } else if (event.key === 'Escape') {
            this.close();
        } else {
            return;
        }
        event.preventDefault();
        event.stopPropagation();
    }
}
