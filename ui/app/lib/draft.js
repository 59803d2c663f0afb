/** @file Draft of a task: form values as API body, command and summary. Pure. */
import { ceiling, count, isAutoRate, perSecond, span } from './format.js';
import { t } from './i18n.js';
import { flag, sh } from './command.js';

/** Initial form. */
export const BLANK = {
  business: '', name: '', labels: '', kind: 'file', upload: null, total: '1000', url: '', format: 'ndjson',
  rate: '50/s', concurrency: 'auto', window: 'auto', error_budget: '1%', max_attempts: '', backoff: '', timeout: '',
  on_exhausted: 'fail', results: 'off', canary: true, canaryItems: '10', params: '', shards: '', units: '', cost: '', cost_from: '', price: '', start_at: '', deadline: '',
};

const auto = (text) => (/^\d+$/.test(text) ? Number(text) : text);

/** Parses labels such as `a:b, c:d`. */
function labelsOf(text) {
  const pairs = text.split(/[,\s]+/).filter(Boolean).map((one) => one.split(/[:=]/));
  return Object.fromEntries(pairs.map(([name, ...rest]) => [name, rest.join(':')]));
}

function sourceOf(form) {
  if (form.kind === 'file') return { type: 'file', upload: form.upload?.id ?? '' };
  if (form.kind === 'url') return { type: 'url', url: form.url.trim(), format: form.format };
  return { type: 'range', total: Number(form.total) };
}

const list = (text) => text.split(';').map((one) => one.trim()).filter(Boolean);

/** Limits in units and costs, as their lists; null without any. */
function meteringOf(form) {
  const typed = { limits: form.units, cost: form.cost, cost_from: form.cost_from, price: form.price };
  const lists = Object.entries(typed).map(([name, text]) => [name, list(text)]).filter(([, texts]) => texts.length);
  return lists.length ? Object.fromEntries(lists) : null;
}

/** Members that are sent only if they are filled in. */
function optional(form) {
  const typed = { name: form.name.trim(), backoff: form.backoff.trim(), timeout: form.timeout.trim() };
  const members = Object.fromEntries(Object.entries(typed).filter(([, value]) => value));
  if (form.labels.trim()) members.labels = labelsOf(form.labels);
  if (form.max_attempts) members.max_attempts = Number(form.max_attempts);
  const metering = meteringOf(form);
  if (metering) members.metering = metering;
  if (form.shards.trim()) members.shards = auto(form.shards.trim());
  if (form.params.trim()) members.params = JSON.parse(form.params);
  for (const name of ['start_at', 'deadline']) if (form[name]) members[name] = new Date(form[name]).toISOString();
  return members;
}

/** Returns true once the form has the members that the node needs to validate it. */
export function isWhole(form) {
  if (!form.business) return false;
  if (form.kind === 'file') return form.upload != null;
  return form.kind === 'url' ? form.url.trim() !== '' : form.kind === 'open' || Number(form.total) >= 0;
}

/** JSON error of the parameters; null if they are valid. */
export function fault(form) {
  try {
    if (form.params.trim()) JSON.parse(form.params);
    return null;
  } catch (error) {
    return error.message;
  }
}

/** Body of `POST /v1/tasks`. */
export function bodyOf(form, start) {
  return {
    business: form.business,
    ...(form.kind === 'open' ? { open: true } : { source: sourceOf(form) }),
    rate: form.rate.trim(),
    concurrency: auto(form.concurrency.trim()),
    window: auto(form.window.trim()),
    error_budget: form.error_budget.trim(),
    on_exhausted: form.on_exhausted,
    results: form.results,
    ...optional(form),
    ...(form.canary && form.canaryItems ? { canary: { items: Number(form.canaryItems), then: 'stop' } } : {}),
    ...(start ? { start: true } : {}),
  };
}

function sourceFlags(form) {
  if (form.kind === 'file') return flag(form.upload?.kind ?? 'csv', form.upload?.name ?? 'items.csv');
  if (form.kind === 'url') return sh`--url ${form.url} --format ${form.format}`;
  return form.kind === 'open' ? sh`--open` : sh`--total ${form.total}`;
}

/** Equivalent command. */
export function commandOf(form, start) {
  const body = bodyOf(form, start);
  const flags = ['name', 'rate', 'concurrency', 'window', 'error_budget', 'on_exhausted', 'results', 'max_attempts', 'backoff', 'shards', 'start_at', 'deadline']
    .filter((name) => body[name] !== undefined && body[name] !== '')
    .map((name) => flag(name, body[name]));
  const labels = Object.entries(body.labels ?? {}).map(([name, value]) => sh`--label ${`${name}=${value}`}`);
  const costs = [['limit', 'limits'], ['cost', 'cost'], ['cost-from', 'cost_from'], ['price', 'price']]
    .flatMap(([name, of]) => (body.metering?.[of] ?? []).map((text) => flag(name, text)));
  return String(sh`windrow task create ${[form.business || 'BUSINESS', sourceFlags(form), ...flags, ...costs, ...labels,
    body.timeout && sh`--call-timeout ${body.timeout}`, body.params !== undefined && sh`--params ${JSON.stringify(body.params)}`,
    body.canary && sh`--canary ${body.canary.items}`, start && sh`--start`]}`);
}

/** First three items as bodies of test calls; null if they aren't known before the task is created. */
export function firstItems(form) {
  if (form.kind === 'range') return [0, 1, 2].filter((index) => index < Number(form.total)).map((index) => ({ index }));
  if (form.kind !== 'file') return null;
  return Array.isArray(form.upload?.sample) ? form.upload.sample.slice(0, 3).map((data, index) => ({ index, data })) : [];
}

/** Number of items; null if it isn't known yet. */
export function items(form) {
  if (form.kind === 'file') return form.upload?.rows ?? null;
  return form.kind === 'range' ? Number(form.total) || 0 : null;
}

function pace(written) {
  if (perSecond(written) != null) return t('at {rate}', { rate: written });
  if (!isAutoRate(written)) return t('as fast as the handler can');
  const most = ceiling(written);
  return most ? t('at the rate that the autopilot finds, at most {rate}', { rate: most }) : t('at the rate that the autopilot finds');
}

/** Summary sentences. `nowMs` is the assumed start. */
export function summary(form, nowMs) {
  const number = items(form);
  const rate = perSecond(form.rate);
  const seconds = number != null && rate ? number / rate : null;
  return {
    what: number == null
      ? t('sends items to {business}', { business: form.business || '…' })
      : t('sends {n:item|items} to {business}', { n: count(number), business: form.business || '…' }),
    pace: pace(form.rate),
    length: seconds == null ? null : t('about {span}', { span: span(seconds) }),
    end: seconds == null ? null : nowMs + seconds * 1000,
  };
}
