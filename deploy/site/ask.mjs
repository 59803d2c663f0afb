/** @file Puts a new user's questions to the site's own search; one that none of the first three pages answers is an error. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import vm from 'node:vm';

const HITS = 3;
/** Questions as typed into the search, each with the pages or sections that answer it. */
const QUESTIONS = [
  ['Docker', 'faq.html#does-it-run-in-docker', 'containers.html'],
  ['macOS', 'faq.html#does-it-run-on-macos-or-windows'],
  ['why slow', 'faq.html#it-is-slower-than-my-rate', 'faq.html#why-is-it-slow-autopilot', 'faq.html#why-is-it-slow-a-limit-in-units'],
  ['resume', 'faq.html#how-do-i-resume', 'jobs.html#resuming'],
  ['only failures', 'faq.html#how-do-i-run-only-the-failures', 'jobs.html#failures'],
  ['several nodes', 'operations.html#a-cluster', 'faq.html#how-many-nodes'],
  ['notify', 'faq.html#can-it-notify-me', 'handlers.html#hooks', 'notifications.html'],
  ['delete a person', 'personal-data.html'],
  ['sizing', 'sizing.html'],
  ['tokens per minute', 'recipes.html#an-llm-job-with-requests-and-tokens-per-minute-and-a-total-in-money', 'concepts.html#limits-in-units',
    'faq.html#can-i-limit-tokens-per-minute-or-money'],
];

/** Starts the worker that a browser would start; returns a function that sends it a message and awaits the answer. */
function start(site) {
  const folder = join(site, 'assets/javascripts/workers');
  const file = readdirSync(folder).find((name) => /^search\..*\.min\.js$/.test(name));
  let hear, answer;
  const worker = {
    console,
    addEventListener: (_, listener) => { hear = listener; },
    postMessage: (message) => answer(message),
  };
  worker.self = worker;
  vm.runInNewContext(readFileSync(join(folder, file), 'utf8'), worker, { filename: file });
  return (message) => new Promise((resolve) => {
    answer = resolve;
    hear({ data: message });
  });
}

const site = process.argv[2];
const index = JSON.parse(readFileSync(join(site, 'search/search_index.json'), 'utf8'));
const SETUP = 0, QUERY = 2;
const send = start(site);
await send({ type: SETUP, data: { ...index, options: { suggest: true } } });

let unanswered = 0;
for (const [question, ...answers] of QUESTIONS) {
  const { data } = await send({ type: QUERY, data: question });
  const pages = data.items.slice(0, HITS).map((group) => group.map((hit) => hit.location));
  const isAnswered = pages.flat().some((location) => answers.some((place) => location === place || location.startsWith(`${place}#`)));
  unanswered += !isAnswered;
  console.log(`${isAnswered ? '✓' : '✗'} ${question}`);
  for (const [first, ...others] of pages) console.log(`    ${first}${others.length ? `  (and ${others.slice(0, 3).join(', ')})` : ''}`);
}
console.log(`${QUESTIONS.length - unanswered} of ${QUESTIONS.length} questions are answered by one of the first ${HITS} pages`);
process.exit(unanswered ? 1 : 0);
