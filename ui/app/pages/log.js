/** @file Data log of all tasks. */
import { html } from '../../vendor/preact-htm.js';
import { t } from '../lib/i18n.js';
import { LogView } from '../parts/log_view.js';
import { Page } from '../parts/shell.js';

/** Data log page. */
export function DataLog() {
  return html`<${Page} title=${t('Data log')}><${LogView} at="/v1/logs" isGlobal=${true} /><//>`;
}
