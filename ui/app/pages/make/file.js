/** @file File with items: dropped or chosen, uploaded as it is, and shown as the node parsed it. */
import { html, useRef, useState } from '../../../vendor/preact-htm.js';
import { ApiError, uniqueKey } from '../../lib/api.js';
import { bytes, count } from '../../lib/format.js';
import { t } from '../../lib/i18n.js';
import { Problem } from '../../parts/basic.js';
import { Icon } from '../../parts/icon.js';

const TYPES = { csv: 'text/csv', ndjson: 'application/x-ndjson', jsonl: 'application/x-ndjson', txt: 'text/plain' };

/** Media type of a file by its name. */
export function typeOf(name) {
  const plain = name.toLowerCase().replace(/\.(gz|zst|bz2|xz)$/, '');
  return TYPES[plain.split('.').pop()] ?? 'text/plain';
}

/** Uploads a file and calls `tell` with the bytes sent. `fetch` reports no upload progress, hence XMLHttpRequest. */
function send(file, tell) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', '/v1/uploads');
    request.setRequestHeader('content-type', typeOf(file.name));
    request.setRequestHeader('windrow-client', 'ui');
    request.setRequestHeader('idempotency-key', uniqueKey());
    request.upload.onprogress = (event) => tell(event.loaded);
    request.onerror = () => reject(new ApiError({ title: t('The node is not responding'), status: 0 }));
    request.onload = () => {
      const answer = JSON.parse(request.responseText || '{}');
      if (request.status < 300) resolve(answer);
      else reject(new ApiError({ title: `${request.status}`, status: request.status, ...answer }));
    };
    request.send(file);
  });
}

/** First rows as the node parsed them. */
function Sample({ upload }) {
  const rows = Array.isArray(upload.sample) ? upload.sample.slice(0, 3) : [];
  const columns = upload.columns.length ? upload.columns : null;
  return html`<div class="stack">
    <p><strong>${upload.name}</strong> ${t('{n:item|items}', { n: count(upload.rows) })} <span class="soft">${bytes(upload.bytes)} ${upload.kind} ${upload.compression}</span></p>
    <div class="sample" tabindex="0" role="region" aria-label=${t('First rows')}>${columns
      ? html`<table class="table"><thead><tr>${columns.map((name) => html`<th scope="col" key=${name}>${name}</th>`)}</tr></thead>
          <tbody>${rows.map((row, at) => html`<tr key=${at}>${columns.map((name) => html`<td key=${name}><code>${String(row[name] ?? '')}</code></td>`)}</tr>`)}</tbody></table>`
      : rows.map((row, at) => html`<pre key=${at}>${typeof row === 'string' ? row : JSON.stringify(row)}</pre>`)}</div></div>`;
}

/** Drop zone for a file. */
export function File({ form, set }) {
  const field = useRef(null);
  const [state, setState] = useState({ sent: 0, size: 0, error: null, isOver: false });
  const take = async (file) => {
    if (!file) return;
    set({ upload: null });
    setState({ sent: 0, size: file.size, error: null, isOver: false });
    try {
      const upload = await send(file, (sent) => setState((old) => ({ ...old, sent })));
      set({ upload: { ...upload, name: file.name } });
      setState({ sent: 0, size: 0, error: null, isOver: false });
    } catch (error) {
      setState({ sent: 0, size: 0, error, isOver: false });
    }
  };
  const over = (isOver) => (event) => { event.preventDefault(); setState((old) => ({ ...old, isOver })); };
  return html`<div class=${`drop ${state.isOver ? 'is-over' : ''}`} onDragOver=${over(true)} onDragLeave=${over(false)}
      onDrop=${(event) => { event.preventDefault(); take(event.dataTransfer.files[0]); }}>
    <input type="file" class="hidden-text" ref=${field} id="file" accept=".csv,.ndjson,.jsonl,.txt,.gz,.zst,.bz2,.xz" onChange=${(event) => take(event.target.files[0])} />
    <label class="button" for="file"><${Icon} name="plus" />${form.upload ? t('Choose another file') : t('Choose file')}</label>
    <span class="soft">${t('or drop it here: CSV, NDJSON or one item per line, compressed or not')}</span>
    ${state.size > 0 && html`<p role="status">${t('{sent} of {size} uploaded', { sent: bytes(state.sent), size: bytes(state.size) })}</p>`}
  </div>
  ${state.error && html`<${Problem} error=${state.error} />`}
  ${form.upload && html`<${Sample} upload=${form.upload} />`}`;
}
