/** @file Evidence on which an item was failed, in one sentence; the command line uses the same text. */
import { count } from './format.js';
import { t } from './i18n.js';

const meanwhile = (others) => (others === 1 ? t('1 other call was answered meanwhile') : t('{n} other calls were answered meanwhile', { n: count(others) }));

function counted({ attempts, charged }) {
  if (charged === 0) return t('no attempt counts');
  if (charged < attempts) return t('{n} of {all} attempts counted', { n: count(charged), all: count(attempts) });
  return attempts === 1 ? t('1 attempt, counted') : t('{all} attempts, all counted', { all: count(attempts) });
}

/** Sentence for a failure from the API. Older versions didn't count responses for other items. */
export function judgement(failure) {
  const others = failure.others_answered ?? 0;
  if (failure.unconfirmed) return others ? t('unconfirmed: {answered}, too few to tell', { answered: meanwhile(others) }) : t('unconfirmed: no other call was answered to compare it with');
  return others ? t('{counted}: {answered}', { counted: counted(failure), answered: meanwhile(others) }) : counted(failure);
}
