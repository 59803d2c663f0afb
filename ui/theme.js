// Puts the chosen theme on the page before anything is painted. Not a module, so that it runs first.
(() => {
  try {
    const theme = localStorage.getItem('windrow.theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch { /* Storage may be forbidden: the system's theme holds. */ }
})();
