/** @file Use of the units that a task counts. */
import { html } from '../../../vendor/preact-htm.js';
import { amount, near, share } from '../../lib/format.js';
import { t } from '../../lib/i18n.js';

const isSome = (text) => Number(text) > 0;

/** Share of the total that is used, with what calls may have used; null without a total. */
function usedShare(cost) {
  const total = Number(cost.total ?? 0);
  return total > 0 ? (Number(cost.actual) + Number(cost.unsure)) / total : null;
}

function Cost({ unit, cost }) {
  const used = usedShare(cost);
  return html`<span class=${cost.nearly_used ? 'warn' : ''}><b>${amount(cost.actual)}</b> ${unit}
    ${used != null && ` ${t('of {total} ({share} used)', { total: amount(cost.total), share: share(used) })}`}
    ${cost.allowance && ` ${t('{used} of {limit}', { used: amount(cost.allowance.used), limit: cost.allowance.limit })}`}
    ${cost.allowance?.used_up && ` ${t('(next period: {at})', { at: near(cost.allowance.next) })}`}
    ${isSome(cost.unsure) && ` ${t('+ {n} unsure', { n: amount(cost.unsure) })}`}
    ${isSome(cost.out) && ` ${t('+ {n} expected of calls in flight', { n: amount(cost.out) })}`}</span>`;
}

/** Line with the use of each unit; a total of which 80 % is used warns. */
export function Costs({ task }) {
  const costs = Object.entries(task.costs ?? {});
  if (costs.length === 0) return null;
  return html`<p class="legend costs fresh"><span>${t('Used')}</span>${costs.map(([unit, cost]) => html`<${Cost} key=${unit} unit=${unit} cost=${cost} />`)}</p>`;
}
