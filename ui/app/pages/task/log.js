/** @file Data log of a task. */
import { html } from '../../../vendor/preact-htm.js';
import { part } from '../../lib/api.js';
import { Icon } from '../../parts/icon.js';
import { LogView } from '../../parts/log_view.js';

/** Data log tab. */
export function Log({ task }) {
  const exports = html`<a class="button" download href=${`/v1/tasks/${task.id}/export/log?format=csv`}><${Icon} name="down" />CSV</a>`;
  return html`<${LogView} at=${`/v1/tasks/${part(task.id)}/logs`} exports=${exports} />`;
}
