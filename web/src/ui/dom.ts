// SPDX-License-Identifier: MIT
//
// Elements without a framework: h() makes an element from a tag, properties and children. Data only
// ever becomes text nodes or attribute values, so that a function named `<script>` is a name;
// nothing here parses HTML. Inline style attributes are not used either: they are refused by the
// page's content security policy, while properties set through CSSOM are not.

export type Child = Node | string | number | null | undefined | false | readonly Child[];

type Handler = (event: never) => void;
export type Props = Readonly<
    Record<string, string | number | boolean | undefined | null | Handler>
>;

function set_props(element: Element, props: Props): void {
    for (const [name, value] of Object.entries(props)) {
        if (value === undefined || value === null || value === false) continue;
        if (typeof value === 'function')
            element.addEventListener(name.replace(/^on/, ''), value as unknown as EventListener);
        else if (name.startsWith('--') || name === 'width_px' || name === 'height_px')
            set_style(element as HTMLElement, name, value);
        else if (name === 'value') (element as HTMLInputElement).value = String(value);
        else if (name === 'checked') (element as HTMLInputElement).checked = true;
        else element.setAttribute(name, value === true ? '' : String(value));
    }
}

function set_style(element: HTMLElement, name: string, value: string | number | boolean): void {
    if (name.startsWith('--')) element.style.setProperty(name, String(value));
    else element.style.setProperty(name.replace('_px', ''), `${Number(value)}px`);
}

export function append(parent: Node, ...children: readonly Child[]): void {
    for (const child of children) {
        if (child === null || child === undefined || child === false) continue;
        if (Array.isArray(child)) append(parent, ...(child as readonly Child[]));
        else
            parent.appendChild(
                child instanceof Node ? child : document.createTextNode(String(child)),
            );
    }
}

export function h<K extends keyof HTMLElementTagNameMap>(
    tag: K,
    props: Props = {},
    ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
    const element = document.createElement(tag);
    append(element, ...children);
    set_props(element, props);
    return element;
}

export function svg<K extends keyof SVGElementTagNameMap>(
    tag: K,
    props: Props = {},
    ...children: readonly Child[]
): SVGElementTagNameMap[K] {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    set_props(element, props);
    append(element, ...children);
    return element;
}

export function replace(parent: Element, ...children: readonly Child[]): void {
    parent.textContent = '';
    append(parent, ...children);
}

// A function that runs `work` once, `delay_ms` after it was last called.
export function debounce(delay_ms: number, work: () => void): () => void {
    let timer = 0;
    return () => {
        clearTimeout(timer);
        timer = window.setTimeout(work, delay_ms);
    };
}

// A function that runs `work` at the next frame, however often it is called until then.
export function per_frame(work: () => void): () => void {
    let asked = false;
    return () => {
        if (asked) return;
        asked = true;
        requestAnimationFrame(() => {
            asked = false;
            work();
        });
    };
}

// Calls `changed` with the content size of `element`, now and whenever it changes.
export function on_resize(
    element: Element,
    changed: (width: number, height: number) => void,
): void {
    new ResizeObserver((entries) => {
        const box = entries[0]?.contentRect;
        if (box && box.width > 0 && box.height > 0)
            changed(Math.floor(box.width), Math.floor(box.height));
    }).observe(element);
}
