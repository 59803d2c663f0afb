/** @file Form for a new task, with a summary that the node validates. */
import { html, useEffect, useState } from '../../../vendor/preact-htm.js';
import { ApiError, call } from '../../lib/api.js';
import { now } from '../../lib/clock.js';
import { BLANK, bodyOf, commandOf, fault, isWhole, summary } from '../../lib/draft.js';
import { near } from '../../lib/format.js';
import { t } from '../../lib/i18n.js';
import { useResource } from '../../lib/resource.js';
import { go, route } from '../../lib/router.js';
import { may } from '../../lib/session.js';
import { Copy, Empty, Problem } from '../../parts/basic.js';
import { Icon } from '../../parts/icon.js';
import { Page } from '../../parts/shell.js';
import { toast } from '../../parts/toast.js';
import { Business, Items, More, Pace, Safety } from './blocks.js';
import { Trial } from './trial.js';

/** Dry run of the form on the node, shortly after the last keystroke. */
function useJudgement(form) {
  const [judged, setJudged] = useState({ error: null, would: null, of: '' });
  const isAsked = isWhole(form) && !fault(form);
  const text = isAsked ? JSON.stringify(bodyOf(form, false)) : '';
  useEffect(() => {
    if (!text) return setJudged({ error: null, would: null, of: '' });
    const timer = setTimeout(() => {
      call('POST', '/v1/tasks?dry_run=true', JSON.parse(text)).then(
        ({ would }) => setJudged({ error: null, would, of: text }),
        (error) => setJudged({ error, would: null, of: text }),
      );
    }, 400);
    return () => clearTimeout(timer);
  }, [text]);
  return { ...judged, isFresh: judged.of === text && text !== '' };
}

/** Errors by member. */
function faultsOf(error) {
  return Object.fromEntries((error?.problem?.errors ?? []).map((one) => [one.pointer.replace(/^\//, '').split('/')[0], `${one.detail}${one.try ? ` ${one.try}` : ''}`]));
}

function Summary({ form, judged, submit, isPending }) {
  const will = summary(form, now.value);
  const { error } = judged;
  const isAllowed = may('operator');
  const isHeld = !isWhole(form) || fault(form) != null || isPending || !isAllowed;
  return html`<aside class="summary" aria-label=${t('Summary')}>
    <h2>${t('Summary')}</h2>
    <ul class="stack">
      <li class="strong">${will.what}</li><li>${will.pace}${will.length && `, ${will.length}`}</li>
      ${will.end && html`<li>${t('done at about {time} if started now', { time: near(will.end) })}</li>`}
      ${form.canary && html`<li>${t('runs a canary of {n:item|items} first, then pauses for review', { n: form.canaryItems || '…' })}</li>`}
      <li>${form.on_exhausted === 'stop' ? t('stops when an item runs out of retries') : t('marks items failed when retries run out, and continues')}</li>
      ${form.error_budget !== 'none' && html`<li>${t('error budget {budget}', { budget: form.error_budget })}</li>`}
      ${(judged.would?.warnings ?? []).map((one) => html`<li key=${one.pointer} class="warn">${one.detail} ${one.advice}</li>`)}
    </ul>
    ${judged.isFresh && !error && html`<p class="row"><${Icon} name="check" class="ok" />${t('The node accepts this task.')}</p>`}
    ${error && !error.problem?.errors?.length && html`<${Problem} error=${error} />`}
    ${error?.problem?.errors?.length > 0 && html`<p class="bad">${t('Some fields are invalid.')}</p>`}
    <div class="row wrap">
      <button type="button" class="button" disabled=${isHeld} onClick=${() => submit(false)}>${t('Create')}</button>
      <button type="button" class="button is-main" disabled=${isHeld} onClick=${() => submit(true)}>${isPending ? t('Waiting for the node…') : t('Create and start')}</button>
    </div>
    ${!isAllowed && html`<p class="soft">${t('requires the {role} role', { role: t('operator') })}</p>`}
    ${!fault(form) && html`<p><${Copy} text=${commandOf(form, true)}>${t('Copy as command')}<//></p>`}
  </aside>`;
}

/** Page for a new task. */
export function NewTask() {
  const [form, setForm] = useState({ ...BLANK, business: route.value.query.get('business') ?? '' });
  const [state, setState] = useState({ isPending: false, error: null });
  const businesses = useResource('/v1/businesses?limit=200');
  const names = (businesses.data?.items ?? []).filter((one) => !one.archived_at);
  const set = (members) => setForm((old) => ({ ...old, ...members }));
  useEffect(() => {
    if (!form.business && names.length === 1) set({ business: names[0].name });
  }, [businesses.data]);
  const judged = useJudgement(form);
  const submit = async (start) => {
    setState({ isPending: true, error: null });
    try {
      const task = await call('POST', '/v1/tasks', bodyOf(form, start));
      toast(t('{id} created', { id: task.id }));
      go(`/tasks/${task.id}`);
    } catch (error) {
      setState({ isPending: false, error: error instanceof ApiError ? error : new ApiError({ title: String(error), status: 0 }) });
    }
  };
  const props = { form, set, faults: faultsOf(state.error ?? judged.error) };
  const up = [['/tasks', t('Tasks')]];
  if (businesses.data && !names.length) {
    return html`<${Page} title=${t('New task')} up=${up}><${Empty} say=${t('No businesses yet. Register one to handle the items.')}
      commands=${['windrow init python', 'windrow biz register hello --url http://127.0.0.1:9000']}><p><a href="/businesses/new">${t('Register a business')}</a></p><//><//>`;
  }
  return html`<${Page} title=${t('New task')} up=${up}><div class="make">
    <div><${Business} ...${props} names=${names} /><${Items} ...${props} /><${Pace} ...${props} /><${Safety} ...${props} /><${More} ...${props} /><${Trial} form=${form} /></div>
    <div>${state.error && html`<${Problem} error=${state.error} />`}<${Summary} form=${form} judged=${judged} submit=${submit} isPending=${state.isPending} /></div>
  </div><//>`;
}
