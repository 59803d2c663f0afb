/** @file Parts of the dashboard that are fetched when they are first shown. */
import { html, useEffect, useState } from '../../vendor/preact-htm.js';
import { ApiError } from '../lib/api.js';
import { t } from '../lib/i18n.js';
import { Loading, Problem } from './basic.js';

/** What was fetched, by file. */
const fetched = new Map();

/** A file below pages/, or why it isn't there. */
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
 * What a file exports, once it is there.
 * @param {{file: string, name: string, props: object, id: string, next?: string}} props
 * id: another one begins anew; next: a file that it will want, fetched along with it
 */
export function Fetched({ file, name, props, id, next }) {
  useEffect(() => {
    if (next) import(`../pages/${next}.js`).catch(() => { /* Whoever shows it asks again, and says what is wrong. */ });
  }, [next]);
  const { module, error, again } = useFile(file);
  if (error) return html`<${Problem} error=${error} retry=${again} />`;
  if (!module) return html`<${Loading} />`;
  const Shown = module[name];
  return html`<${Shown} ...${props} key=${Shown.keepsState ? name : id} />`;
}
