/** @file Form of a business to register, as API body and command. Pure. */
import { flag, sh } from './command.js';

/** Initial form. */
export const BLANK = {
  name: '', display_name: '', kind: 'url', url: 'http://', call: 'POST https://', json: '', result: '', command: '', headers: '', secret_headers: '', secrets: '',
  hooks: [], hookUrl: '', rate: '', timeout: '', limit: '', insecure: false, check: 'require',
};

/** Hooks that a business may have. */
export const HOOKS = ['validate', 'prepare', 'stopped', 'finished', 'reduce'];

/** Lines with a name and a value as members of an object. */
function pairs(text, separator) {
  const lines = text.split('\n').map((line) => line.trim()).filter(Boolean);
  return Object.fromEntries(lines.map((line) => {
    const at = line.indexOf(separator);
    return at < 0 ? [line, ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  }));
}

/** Members without empty ones. */
const filled = (members) => Object.fromEntries(Object.entries(members).filter(([, value]) => (typeof value === 'object' ? Object.keys(value).length : value)));

const HANDLERS = {
  url: (form) => ({ url: form.url.trim(), headers: pairs(form.headers, ':'), secret_headers: pairs(form.secret_headers, ':') }),
  request: (form) => ({ request: filled({ call: form.call.trim(), headers: pairs(form.headers, ':'), json: form.json.trim(), result: form.result.trim() }), request_secrets: pairs(form.secrets, '=') }),
  command: (form) => ({ command: form.command.trim() }),
};

/** Body of `POST /v1/businesses`. */
export function bodyOf(form) {
  const hook = filled({ url: form.hookUrl.trim() });
  return filled({
    name: form.name.trim(),
    display_name: form.display_name.trim(),
    ...HANDLERS[form.kind](form),
    insecure_skip_verify: form.insecure,
    hooks: Object.fromEntries(form.hooks.map((name) => [name, hook])),
    defaults: filled({ rate: form.rate, timeout: form.timeout }),
    limits: filled({ rate: form.limit }),
  });
}

/** Equivalent command. Secrets are read from files there, so it names the files and never the values. */
export function commandOf(form) {
  const body = bodyOf(form);
  const { request = {} } = body;
  return String(sh`windrow biz register ${[form.name || 'NAME',
    body.url && flag('url', body.url), body.command && flag('command', body.command), request.call && flag('request', request.call),
    request.json && flag('json', request.json), request.result && flag('result', request.result),
    ...Object.entries(body.headers ?? request.headers ?? {}).map(([name, value]) => flag('header', `${name}: ${value}`)),
    body.secret_headers && sh`--secret-header-file secret-headers.txt`,
    ...Object.keys(body.request_secrets ?? {}).map((name) => flag('secret', `${name}=@${name}.txt`)),
    ...form.hooks.map((name) => flag('hook', form.hookUrl.trim() ? `${name}=${form.hookUrl.trim()}` : name)),
    form.insecure && sh`--insecure-skip-verify`, form.rate && flag('rate', form.rate), form.timeout && flag('call_timeout', form.timeout), form.limit && flag('limit_rate', form.limit)]}`);
}
