/** @file Records the events and responses of a node once and replays them at the speed of the page's clock. Runs in the page. */

/** Script that is injected first: it passes everything through until `replay.isOn`, then responds itself. */
export function record() {
  const known = new Map();
  const told = new Map();
  const replay = { isOn: false, asked: 0, sent: 0, opened: 0 };
  globalThis.replay = replay;
  const [ask, Real] = [globalThis.fetch.bind(globalThis), globalThis.EventSource];
  /** Counter for new task IDs, so that anything that keeps tasks by ID would grow. */
  let number = 1000;

  const series = (url, text) => {
    const step = Number.parseFloat(url.searchParams.get('step') ?? '1');
    const from = Math.ceil(Date.parse(url.searchParams.get('from')) / 1000 / step) * step;
    const times = [];
    for (let at = from; at <= Date.now() / 1000; at += step) times.push(at);
    const whole = JSON.parse(text);
    for (const name of Object.keys(whole.series)) whole.series[name] = times.map((at) => (name === 'time' ? new Date(at * 1000).toISOString() : 10 + Math.sin(at)));
    return JSON.stringify(whole);
  };

  globalThis.fetch = async (input, init) => {
    const url = new URL(input, location.href);
    if (replay.isOn) {
      replay.asked += 1;
      const text = known.get(url.pathname) ?? '{"items":[]}';
      return new Response(url.pathname.endsWith('/stats') ? series(url, text) : text, { headers: { 'content-type': 'application/json' } });
    }
    const reply = await ask(input, init);
    if (/json/.test(reply.headers.get('content-type') ?? '')) known.set(url.pathname, await reply.clone().text());
    return reply;
  };

  const KINDS = ['snapshot', 'stats', 'status', 'failure', 'log', 'audit', 'node'];

  /** Stream of the recorded events with increasing counts. */
  class Stream extends EventTarget {
    constructor(address) {
      super();
      replay.opened += 1;
      const url = new URL(address, location.href);
      this.topics = url.searchParams.get('topics').split(',');
      this.readyState = 1;
      if (!replay.isOn) return this.record(new Real(address));
      setTimeout(() => { this.onopen?.(); this.topics.forEach((topic) => this.tell(topic, 'snapshot')); });
      let round = 0;
      this.timer = setInterval(() => {
        round += 1;
        this.topics.forEach((topic) => {
          this.tell(topic, 'stats');
          for (const [kind, every] of [['failure', 20], ['status', 240], ['audit', 480]]) if (round % every === 0) this.tell(topic, kind);
        });
        if (round % (60 * Number(url.searchParams.get('hz'))) === 0) this.dispatchEvent(new MessageEvent('bye', { data: '{}' }));
      }, 1000 / Number(url.searchParams.get('hz')));
    }

    record(real) {
      this.real = real;
      for (const kind of KINDS) {
        real.addEventListener(kind, (event) => {
          const { topic, data } = JSON.parse(event.data);
          told.set(`${topic} ${kind}`, data);
          this.dispatchEvent(new MessageEvent(kind, { data: event.data }));
        });
      }
      real.onopen = () => this.onopen?.();
      real.onerror = () => this.onerror?.();
    }

    tell(topic, kind) {
      const snapshot = told.get(`${topic} snapshot`);
      const spare = topic.startsWith('task:') && snapshot ? { stats: { counts: snapshot.counts }, status: { status: snapshot.status }, failure: {}, audit: {} }[kind] : null;
      const data = structuredClone(told.get(`${topic} ${kind}`) ?? spare);
      if (!data) return;
      replay.sent += 1;
      const go = (task) => {
        if (!task.counts) return;
        task.counts.succeeded += replay.sent % 1000;
        task.counts.pending -= replay.sent % 1000;
      };
      if (topic === 'tasks' && kind === 'snapshot') {
        const first = data.tasks.find((task) => task.live);
        for (let more = 0; more < 400; more += 1) data.tasks.push({ ...structuredClone(first), id: `t${number += 1}` });
      }
      (Array.isArray(data.tasks) ? data.tasks : [data]).forEach(go);
      this.dispatchEvent(new MessageEvent(kind, { data: JSON.stringify({ topic, data }) }));
    }

    close() {
      this.readyState = 2;
      clearInterval(this.timer);
      this.real?.close();
    }
  }
  Stream.CLOSED = 2;
  globalThis.EventSource = Stream;
}
