/** @file Button with a menu. A click elsewhere, Escape, or a choice closes it. */
import { html, useEffect, useRef } from '../../vendor/preact-htm.js';
import { t } from '../lib/i18n.js';
import { Icon } from './icon.js';

/** @param {{children: any}} props buttons and links */
export function Menu({ children }) {
  const place = useRef(null);
  useEffect(() => {
    const close = () => { place.current.open = false; };
    const onClick = (event) => event.target.closest('summary') && place.current.contains(event.target) || close();
    const onKey = (event) => {
      if (event.key !== 'Escape' || !place.current.open) return;
      close();
      place.current.querySelector('summary').focus();
    };
    document.addEventListener('click', onClick);
    document.addEventListener('keydown', onKey);
    return () => {
      document.removeEventListener('click', onClick);
      document.removeEventListener('keydown', onKey);
    };
  }, []);
  return html`<details class="menu" ref=${place}><summary class="button" aria-label=${t('More')}><${Icon} name="more" /></summary>
    <div class="items">${children}</div></details>`;
}
