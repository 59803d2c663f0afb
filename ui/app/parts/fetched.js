/** @file Lazily fetched parts of the dashboard. */
import { html, useEffect, useState } from '../../vendor/preact-htm.js';
import { ApiError } from '../lib/api.js';
import { t } from '../lib/i18n.js';
import { Loading, Problem } from './basic.js';

/** Fetched modules by file. */
const fetched = new Map();

/** Module of a file below pages/, or the error of its fetch. */
function useFile(file) {
  const [state, setState] = useState({ file: '', error: null, round: 0 });
  useEffect(() => {
    if (fetched.has(file)) return;
    import(`../pages/${file}.js`).then(
      (module) => { fetched.set(file, module); setState((old) => ({ ...old, file, error: null })); },
      () => setState((old) => ({ ...old, file, error: new ApiError({ title: t('The page could not be loaded'), status: 0, try: [t('reload the page')] }) })),
    );
  }, [file, state.round]);
  const again = () => setState((old) => ({ file: '', error: null, round: old.round + 1 }));
  return { module: fetched.get(file), error: state.file === file ? state.error : null, again };
}

/**
 * Renders an export of a file once it is fetched.
 * @param {{file: string, name: string, props: object, id: string, next?: string}} props
 * id: a change resets the state; next: file to prefetch
 */
export function Fetched({ file, name, props, id, next }) {
  useEffect(() => {
    if (next) import(`../pages/${next}.js`).catch(() => { /* The component that shows it fetches again and reports the error. */ });
  }, [next]);
  const { module, error, again } = useFile(file);
  if (error) return html`<${Problem} error=${error} retry=${again} />`;
  if (!module) return html`<${Loading} />`;
  const Shown = module[name];
  return html`<${Shown} ...${props} key=${Shown.keepsState ? name : id} />`;
}
