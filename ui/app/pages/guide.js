/** @file The guide: the documentation of this version, with a search over its sections. */
import { h, html, useEffect, useMemo, useRef, useState } from '../../vendor/preact-htm.js';
import { fetchSearch, file } from '../lib/guide.js';
import { language, t } from '../lib/i18n.js';
import { useResource } from '../lib/resource.js';
import { filter, route } from '../lib/router.js';
import { Empty, Whole } from '../parts/basic.js';
import { Page } from '../parts/shell.js';

const RESULTS_MAX = 30;

/** Page in the list: its name, title, summary, and language; Chinese if the dashboard and the page are. */
function entry([name, title, summary, chinese, chineseSummary]) {
  if (language.value === 'en' || !chinese) return { name, title, summary, file: name, lang: 'en' };
  return { name, title: chinese, summary: chineseSummary, file: `${name}.${language.value}`, lang: language.value };
}

/** Nodes of a page, which the build sends as `[tag, attributes, …content]`. */
const tree = (node) => (typeof node === 'string' ? node : h(node[0], node[1], ...node.slice(2).map(tree)));

function Chapters({ chapters, current, isFull }) {
  return chapters.map(([title, pages]) => html`<div key=${title}><h2>${t(title)}</h2><ul>${pages.map((page) => html`<li key=${page.name}>
    <a class="link" href=${`/guide/${page.name}`} lang=${page.lang} aria-current=${page.name === current ? 'page' : undefined}>${page.title}</a>
    ${isFull && html`<p class="soft" lang=${page.lang}>${page.summary}</p>`}</li>`)}</ul></div>`);
}

function Headings({ of }) {
  if (of.length < 3) return null;
  return html`<nav class="contents" aria-label=${t('On this page')}><ul>${of.map(([tag, { id }, ...text]) => html`<li key=${id} class=${`is-${tag}`}><a class="link" href=${`#${id}`}>${text.map(tree)}</a></li>`)}</ul></nav>`;
}

function Article({ page }) {
  const of = useResource(file(page.file));
  const { hash } = route.value;
  useEffect(() => {
    if (!of.data) return;
    const place = document.getElementById(hash) ?? document.querySelector('h1');
    place.tabIndex = -1;
    place.focus({ preventScroll: true });
    if (place.id) place.scrollIntoView();
  }, [of.data, hash]);
  return html`<${Whole} of=${of}>${([, ...nodes]) => html`<article class="guide-text" lang=${page.lang}>
    <${Headings} of=${nodes.filter(([tag]) => /^h[2-4]$/.test(tag))} />${nodes.map(tree)}</article>`}<//>`;
}

const Marked = ({ parts }) => parts.map((part, at) => (at % 2 ? html`<mark key=${at}>${part}</mark>` : part));

function Result({ of: [at, id, heading, shown], pages, marks }) {
  const { name, title, lang } = pages[at];
  return html`<li lang=${lang}><a class="link" data-result href=${`/guide/${name}${id && `#${id}`}`}>${heading !== title && html`${title} › `}<${Marked} parts=${marks(heading)} /></a>
    <p class="soft"><${Marked} parts=${marks(shown)} /></p></li>`;
}

/** Functions of the search once they are fetched, or the error of the fetch. */
function useSearch() {
  const [state, setState] = useState({});
  useEffect(() => {
    fetchSearch().then((search) => setState({ data: search }), (error) => setState({ error }));
  }, []);
  return state;
}

function Results({ pages, text }) {
  const search = useSearch();
  const english = useResource(file('index'));
  const others = useResource(language.value === 'en' ? null : file(`index.${language.value}`));
  const found = useMemo(() => {
    const own = (sections, lang) => (sections ?? []).filter(([at]) => pages[at].lang === lang);
    return search.data?.find([...own(others.data, language.value), ...own(english.data, 'en')], pages.map((page) => page.title), text) ?? [];
  }, [search.data, english.data, others.data, text, pages]);
  const shown = ({ marker }) => html`<p class="soft" role="status">${t('{n:section|sections} found', { n: found.length })}</p>
    ${found.length ? html`<ol class="results">${found.slice(0, RESULTS_MAX).map((one) => html`<${Result} key=${`${one[0]}#${one[1]}`} of=${one} pages=${pages} marks=${marker(text)} />`)}</ol>`
      : html`<${Empty} say=${t('No section has all of these words.')} />`}`;
  return html`<${Whole} of=${english}>${() => html`<${Whole} of=${search}>${shown}<//>`}<//>`;
}

/** Moves from the field through the results with the arrow keys; Enter in the field opens the first. */
function onKey(event) {
  const places = [...document.querySelectorAll('[data-guide-search], [data-result]')];
  const at = places.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
  if (at === 0 && event.key === 'Enter') places[1]?.click();
  else if (at < 0 || !places[to]) return;
  else places[to].focus();
  event.preventDefault();
}

function Search({ text }) {
  const field = useRef(null);
  useEffect(() => {
    // While somebody types, the address lags behind the field.
    if (document.activeElement !== field.current) field.current.value = text;
  }, [text]);
  return html`<input ref=${field} type="search" class="stretch" data-guide-search placeholder=${t('Search the guide')} aria-label=${t('Search the guide')}
    onInput=${(event) => filter({ q: event.target.value.trim() })} />`;
}

/** The guide: its contents, a page, or what a search found. */
export function Guide({ page: name }) {
  const list = useResource(file('list'));
  const chapters = useMemo(() => (list.data ?? []).map(([title, pages]) => [title, pages.map(entry)]), [list.data, language.value]);
  const pages = chapters.flatMap(([, inner]) => inner);
  const text = route.value.query.get('q') ?? '';
  const page = pages.find((one) => one.name === name);
  const shown = () => {
    if (text) return html`<${Results} pages=${pages} text=${text} />`;
    if (page) return html`<${Article} key=${page.file} page=${page} />`;
    return name ? html`<${Empty} say=${t('There is no page at this address.')} />` : html`<div class="chapters"><${Chapters} chapters=${chapters} isFull=${true} /></div>`;
  };
  return html`<${Page} title=${page && !text ? page.title : t('Guide')} up=${page && !text ? [['/guide', t('Guide')]] : []}>
    <div class="guide" onKeyDown=${onKey}>
      <div class="guide-side"><${Search} text=${text} />${(name || text) && html`<nav aria-label=${t('Guide')}><${Chapters} chapters=${chapters} current=${name} /></nav>`}</div>
      <div class="guide-main"><${Whole} of=${list}>${shown}<//></div></div><//>`;
}
Guide.keepsState = true;
