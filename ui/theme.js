// Applies the chosen theme before the first paint. Not a module, so that it runs first.
(() => {
  try {
    const theme = localStorage.getItem('windrow.theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch { /* Storage may be blocked: the system's theme applies. */ }
})();
