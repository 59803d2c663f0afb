/** @file Search of the guide. Fetched at the first search, like the index. */

/** Splits a text into lower-case words, as the index does: without single letters. */
const wordsOf = (text) => text.toLowerCase().match(/\p{Script=Han}+|(?:(?!\p{Script=Han})[\p{L}\p{N}_]){2,}/gu) ?? [];

/** Expression that finds a word, or the beginning of one. Chinese has no spaces, so its words begin anywhere. */
const finder = (word, end = '') => new RegExp(`${/\p{Script=Han}/u.test(word) ? '' : '(?<![\\p{L}\\p{N}])'}${word}${end}`, 'iu');
const WHOLE = '(?![\\p{L}\\p{N}])';

/** Weight of a word in the title of the page, the heading and the text: as a whole, or as a beginning. */
const WEIGHTS = [[4, 2], [12, 6], [2, 1]];

function weight(places, [whole, beginning]) {
  return Math.max(...places.map((text, at) => (whole.test(text) ? WEIGHTS[at][0] : beginning.test(text) ? WEIGHTS[at][1] : 0)));
}

/**
 * Returns the sections that have all words, best first. A word may be the beginning of one.
 * @param {[number, string, string, string, string][]} sections of the index: page, anchor, heading, beginning, other words
 * @param {string[]} titles of the pages
 * @param {string} text
 */
export function find(sections, titles, text) {
  const words = wordsOf(text);
  if (!words.length) return [];
  const finders = words.map((word) => [finder(word, WHOLE), finder(word)]);
  const phrase = finder(words.join('[^\\p{L}\\p{N}]+'));
  const found = sections.map((section) => {
    const [page, , heading, shown, others] = section;
    const weights = finders.map((one) => weight([titles[page], heading, `${shown} ${others}`], one));
    const whole = phrase.test(heading) ? 20 : phrase.test(shown) ? 3 : 0;
    return { section, weight: weights.includes(0) ? 0 : weights.reduce((sum, one) => sum + one, whole) };
  });
  return found.filter((one) => one.weight).sort((a, b) => b.weight - a.weight).map((one) => one.section);
}

/** Returns a function that splits a text at the words searched for: every other part is one. */
export function marker(text) {
  const words = wordsOf(text).map((word) => finder(word).source);
  return (shown) => (words.length ? shown.split(new RegExp(`(${words.join('|')})`, 'iu')) : [shown]);
}
