// SPDX-License-Identifier: MIT
//
// From a question to something on the screen: shows that it is under way (only if it takes a
// while), the answer, or a message that says what went wrong. An answer that comes after a newer
// question is dropped; a question that is already answered on the screen is not asked again, so
// that a change elsewhere does not disturb what the user is looking at.
import { ApiError } from '../api/client';
import { h, replace } from './dom';
import type { Child } from './dom';

const QUIET_MS = 120;

export function message(title: string, ...text: readonly Child[]): HTMLElement {
    return h(
        'div',
        { class: 'message', role: 'status' },
        h('h2', {}, title),
        text.map((line) => h('p', {}, line)),
    );
}

const TITLES: Readonly<Record<string, string>> = {
    'no-events': 'Not recorded in that detail',
    'not-in-export': 'Not in this export',
    'bad-file': 'This file cannot be read',
    'bad-parameter': 'That cannot be asked',
    offline: 'No connection',
    unauthorized: 'Not allowed',
    busy: 'Too much at once',
    'too-large': 'Too much at once',
};

export function failure(error: unknown): HTMLElement {
    const code = error instanceof ApiError ? error.code : 'internal';
    const text = error instanceof Error ? error.message : String(error);
    const box = message(TITLES[code] ?? 'Something went wrong', text);
    if (code === 'unauthorized')
        box.append(h('p', {}, 'Open the address that `muninn view` printed, with its token.'));
    box.classList.add('is-error');
    return box;
}

export class Loader {
    private question = '';
    private turn = 0;

    // `body` holds `content`; a message takes its place.
    constructor(
        private readonly body: HTMLElement,
        private readonly content: HTMLElement,
    ) {
        body.classList.add('view-body');
        body.setAttribute('aria-live', 'off');
        replace(body, content);
    }

    // Everything on the screen is out of date.
    reset(): void {
        this.question = '';
    }

    async load<T>(
        question: string,
        ask: () => Promise<T>,
        show: (answer: T) => void,
    ): Promise<void> {
        if (question === this.question) return;
        this.question = question;
        const turn = ++this.turn;
        this.body.dataset['busy'] = '';
        const timer = setTimeout(() => this.body.classList.add('is-loading'), QUIET_MS);
        try {
            const answer = await ask();
            if (turn !== this.turn) return;
            this.show_content();
            show(answer);
        } catch (error) {
            if (turn === this.turn) {
                this.question = '';
                this.show_instead(failure(error));
                if (!(error instanceof ApiError)) console.error(error);
            }
        } finally {
            clearTimeout(timer);
            if (turn === this.turn) {
                this.body.classList.remove('is-loading');
                delete this.body.dataset['busy'];
            }
        }
    }

    show_content(): void {
        if (this.content.parentNode !== this.body) replace(this.body, this.content);
    }

    show_instead(box: HTMLElement): void {
        replace(this.body, box);
    }
}
