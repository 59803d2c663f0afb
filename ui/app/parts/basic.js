/** @file Basic components: sections, times, copy buttons, empty states, problems. */
import { html, useState } from '../../vendor/preact-htm.js';
import { now } from '../lib/clock.js';
import { age, stamp } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { Icon } from './icon.js';

/** Section of a page under a hairline. */
export function Section({ title, aside, end, children, class: extra = '', id }) {
  return html`<section class=${`section ${extra}`} id=${id} aria-label=${title}>
    ${(title || end) && html`<header>
      ${title && html`<h2>${title}</h2>`}
      ${aside && html`<span class="aside">${aside}</span>`}
      ${end && html`<span class="end">${end}</span>`}
    </header>`}
    ${children}
  </section>`;
}

/** Relative time, with date and time on hover. With `isSaid`, for sentences, it ends with "ago". */
export function Ago({ at, isSaid = false }) {
  if (!at) return html`<span class="soft">–</span>`;
  const seconds = (now.value - Date.parse(at)) / 1000;
  const text = seconds < -1 ? t('in {span}', { span: age(-seconds) }) : seconds < 2 ? t('now') : isSaid ? t('{age} ago', { age: age(seconds) }) : age(seconds);
  return html`<time datetime=${at} title=${stamp(at)} class="nowrap">${text}</time>`;
}

/** Date and time. */
export function Stamp({ at }) {
  return at ? html`<time datetime=${at} class="nowrap">${stamp(at)}</time>` : html`<span class="soft">–</span>`;
}

async function toClipboard(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

function useCopy(text) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await toClipboard(text);
    setDone(true);
    setTimeout(() => setDone(false), 1200);
  };
  return { isDone, copy };
}

/** Copy button. It has a text if it has children, else only an icon. */
export function Copy({ text, what, children }) {
  const { isDone, copy } = useCopy(text);
  if (!children) {
    return html`<button type="button" class="copy" onClick=${copy} title=${what ?? t('Copy')} aria-label=${what ?? t('Copy')}>
      <${Icon} name=${isDone ? 'check' : 'copy'} /></button>`;
  }
  return html`<button type="button" class="tool" onClick=${copy} title=${text}><${Icon} name=${isDone ? 'check' : 'copy'} />${children}</button>`;
}

/** Command to run in a terminal. */
export function Command({ text }) {
  return html`<div class="command"><code>${text}</code><${Copy} text=${text} what=${t('Copy command')} /></div>`;
}

/** Empty state: the reason, and commands to begin with. */
export function Empty({ say, children, commands = [] }) {
  return html`<div class="empty"><p class="say">${say}</p>${children}
    ${commands.map((text) => html`<${Command} key=${String(text)} text=${String(text)} />`)}</div>`;
}

/** Loading state. */
export const Loading = () => html`<p class="loading" role="status">${t('Loading…')}</p>`;

/** Error with its cause and remedies. */
export function Problem({ error, retry }) {
  const { problem } = error;
  if (!problem) return html`<div class="problem" role="alert"><p>${String(error.message ?? error)}</p></div>`;
  return html`<div class="problem" role="alert">
    <p><strong>${problem.title}</strong></p>
    ${problem.detail && html`<p>${problem.detail}</p>`}
    ${problem.errors?.map((one) => html`<p key=${one.pointer}><code>${one.pointer}</code> ${one.detail}${one.try && `: ${one.try}`}</p>`)}
    ${problem.try?.length > 0 && html`<ul>${problem.try.map((text) => html`<li key=${text}>${text}</li>`)}</ul>`}
    <p class="row wrap">
      ${retry && html`<button type="button" class="button is-small" onClick=${retry}>${t('Try again')}</button>`}
      ${problem.type?.startsWith('/problems/') && html`<a class="link" href=${problem.type} target="_blank" rel="noopener">${t('About this error')}</a>`}
      ${problem.request_id && html`<span class="soft mono">${problem.request_id}</span>`}
    </p>
  </div>`;
}

/** Content of a resource, or its loading or error state. Old content stays below an error; the page's bar reports a silent node. */
export function Whole({ of, children }) {
  if (!of.data) return of.error ? html`<${Problem} error=${of.error} retry=${of.reload} />` : html`<${Loading} />`;
  return html`${of.error && of.error.status !== 0 && html`<div class="problem" role="status">
    <p>${t('Data is {age} old: {why}', { age: age((now.value - of.at) / 1000), why: of.error.problem?.title ?? of.error.message })}</p></div>`}
  ${children(of.data)}`;
}

/** List of names and values. */
export function Pairs({ of, isTight = false }) {
  return html`<dl class=${`pairs ${isTight ? 'is-tight' : ''}`}>${of.filter(Boolean).map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value ?? html`<span class="soft">–</span>`}</dd>`)}</dl>`;
}

/** JSON as text. */
export function Json({ value, label }) {
  return html`<pre class="json" tabindex="0" role="region" aria-label=${label ?? 'JSON'}>${JSON.stringify(value, null, 2)}</pre>`;
}

/** Tabs. */
export function Tabs({ label, items }) {
  return html`<nav class="tabs" aria-label=${label}>${items.filter(Boolean).map(
    (item) => html`<a key=${item.href} href=${item.href} aria-current=${item.isCurrent ? 'page' : undefined}>${item.text}
      ${item.tally != null && html` <span class="soft">${item.tally}</span>`}</a>`,
  )}</nav>`;
}

/** Segmented control. */
export function Segments({ label, items }) {
  return html`<div class="segments" role="group" aria-label=${label}>${items.map(
    (item) => html`<a key=${item.href} href=${item.href} aria-current=${item.isCurrent ? 'true' : undefined}>${item.text}</a>`,
  )}</div>`;
}
