// SPDX-License-Identifier: MIT
//
// One group of findings: a source line with its excerpt, and below it each finding with stacks,
// origin and what can be done with it.
import type { Excerpt, Finding, FindingGroup } from '../api/types';
import { bytes, count, plural, shortened, visible } from '../model/format';
import { copy_text } from '../ui/dialogs';
import { h } from '../ui/dom';
import { stack_list } from './names';

const STATUS_CLASS = { new: 'is-bad', known: '', fixed: 'is-good' } as const;

export function excerpt_box(excerpt: Excerpt | null): HTMLElement | null {
    if (!excerpt || excerpt.text.length === 0) return null;
    return h(
        'div',
        { class: 'excerpt', role: 'img', 'aria-label': `Source around line ${excerpt.marked}` },
        excerpt.text.map((line, i) => {
            const number = excerpt.first + i;
            return h(
                'div',
                { class: number === excerpt.marked ? 'is-marked' : '' },
                h('span', { class: 'gutter' }, number),
                h('span', {}, visible(line.slice(0, 500).replace(/\t/g, '    '))),
            );
        }),
    );
}

// Where the pointers to a leak's blocks are.
function holders(finding: Finding): HTMLElement | null {
    const held_by = finding.leak?.held_by ?? [];
    if (held_by.length === 0) return null;
    return h(
        'div',
        { class: 'part' },
        h('p', {}, 'Held by'),
        h(
            'ul',
            { class: 'holders' },
            held_by.map((holder) =>
                h(
                    'li',
                    {},
                    h('span', { class: 'cut' }, shortened(holder.text, 300)),
                    h(
                        'span',
                        { class: 'num muted' },
                        `${bytes(holder.bytes)} in ${plural(holder.blocks, 'block')}`,
                    ),
                ),
            ),
        ),
    );
}

function finding_body(finding: Finding): (Node | null | false | undefined)[] {
    return [
        stack_list(finding.stack),
        ...finding.parts.map((part) =>
            h(
                'div',
                { class: 'part' },
                h('p', {}, shortened(part.text, 1000)),
                excerpt_box(part.excerpt),
                part.stack && part.stack.length > 0 && stack_list(part.stack),
            ),
        ),
        holders(finding),
        h(
            'div',
            { class: 'finding-actions' },
            finding.suppression &&
                h(
                    'button',
                    {
                        type: 'button',
                        onclick: (event: Event) => {
                            const button = event.currentTarget as HTMLButtonElement;
                            void copy_text(finding.suppression ?? '', 'The suppression').then(
                                () => {
                                    button.textContent = 'Copied';
                                },
                            );
                        },
                    },
                    'Copy as suppression',
                ),
            h('span', { class: 'faint mono' }, finding.fingerprint),
        ),
    ];
}

function finding_box(
    finding: Finding,
    is_open: boolean,
    level: string,
    toggled: (finding: Finding, is_open: boolean) => void,
): HTMLElement {
    const box = h('details', { class: 'finding', 'data-id': finding.id });
    const fill = (): void => {
        if (box.open && box.childElementCount === 1)
            for (const child of finding_body(finding)) if (child) box.append(child);
    };
    box.append(
        h(
            'summary',
            {},
            h('span', { class: `badge is-${level}` }, visible(finding.kind)),
            h('span', { class: 'grow' }, shortened(finding.what, 400)),
            finding.status &&
                h('span', { class: `badge ${STATUS_CLASS[finding.status]}` }, finding.status),
            finding.leak &&
                h(
                    'span',
                    { class: 'num' },
                    `${bytes(finding.leak.bytes)} in ${plural(finding.leak.blocks, 'block')}`,
                ),
            finding.thread &&
                finding.thread.id > 1 &&
                h('span', { class: 'muted' }, `thread ${finding.thread.id}`),
            finding.count > 1 && h('span', { class: 'num muted' }, `× ${count(finding.count)}`),
        ),
    );
    box.open = is_open;
    fill();
    box.addEventListener('toggle', fill);
    // A click, not the toggle: the latter also tells what we have opened ourselves.
    box.querySelector('summary')?.addEventListener('click', () => toggled(finding, !box.open));
    return box;
}

export function group_box(
    group: FindingGroup,
    level_of: (kind: string) => string,
    is_open: (finding: Finding) => boolean,
    events: {
        open_source(group: FindingGroup): void;
        toggled(finding: Finding, is_open: boolean): void;
    },
): HTMLElement {
    const place = group.file
        ? `${group.file}:${group.line}`
        : (group.function ?? group.object ?? 'no source line');
    return h(
        'section',
        { class: 'finding-group' },
        h(
            'div',
            { class: 'finding-head' },
            h(
                'h2',
                {},
                group.source !== null
                    ? h(
                          'button',
                          {
                              type: 'button',
                              class: 'link',
                              onclick: () => events.open_source(group),
                          },
                          shortened(place, 200),
                      )
                    : shortened(place, 200),
            ),
            h(
                'span',
                { class: 'muted cut grow' },
                group.file && group.function ? shortened(group.function, 160) : '',
            ),
            h(
                'span',
                { class: 'num muted' },
                plural(group.findings.length, 'finding'),
                ', ',
                plural(group.count, 'time'),
            ),
        ),
        excerpt_box(group.excerpt),
        group.findings.map((finding) =>
            finding_box(finding, is_open(finding), level_of(finding.kind), events.toggled),
        ),
    );
}
