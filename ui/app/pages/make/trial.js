/** @file Preview of a task that isn't created yet: test calls of its business with the first items of the form. */
import { html, useEffect, useState } from '../../../vendor/preact-htm.js';
import { call, part } from '../../lib/api.js';
import { firstItems } from '../../lib/draft.js';
import { t } from '../../lib/i18n.js';
import { may } from '../../lib/session.js';
import { Problem, Section } from '../../parts/basic.js';
import { Table } from '../../parts/table.js';
import { columns } from '../task/preview.js';

const NONE = { isPending: false, replies: [], error: null };

/** Section with the replies. A business takes one test call at a time. */
export function Trial({ form }) {
  const [state, setState] = useState(NONE);
  const items = firstItems(form);
  useEffect(() => setState(NONE), [form.business, form.kind, form.upload?.id]);
  const run = async () => {
    setState({ ...NONE, isPending: true });
    try {
      for (const item of items) {
        const reply = await call('POST', `/v1/businesses/${part(form.business)}/tries`, item);
        setState((old) => ({ ...old, replies: [...old.replies, reply] }));
      }
      setState((old) => ({ ...old, isPending: false }));
    } catch (error) {
      setState((old) => ({ ...old, isPending: false, error }));
    }
  };
  return html`<${Section} title=${`5 ${t('Preview')}`} aside=${t('Calls the handler with the first three items in preview mode; nothing is counted.')}>
    <p><button type="button" class="button" disabled=${!items?.length || !form.business || state.isPending || !may('operator')} onClick=${run}>${state.isPending ? t('Calling the handler…') : t('Preview 3 items')}</button>
      ${!items && html` <span class="soft">${t('The items are known once the task is created.')}</span>`}</p>
    ${state.error && html`<${Problem} error=${state.error} />`}
    ${state.replies.length > 0 && html`<${Table} columns=${columns()} rows=${state.replies} id=${(one) => String(one.index)} label=${t('Preview')} />`}<//>`;
}
