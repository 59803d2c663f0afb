/** @file Window of a task as cells: parsed from the API's text, merged if there are too many, painted into pixels. Pure. */

/** API letters of cell states, from best to worst. */
export const LETTERS = 'SPFKRA';
export const SETTLED = 0;
export const FREE = 1;
export const FLYING = 2;
export const PARKED = 3;
export const RETRYING = 4;
export const FAILED = 5;
/** Blank cell between two shards. */
export const GAP = 6;

/** Parses `F1S411P3` into one state per cell. */
export function parse(text) {
  const runs = [...text.matchAll(/([A-Z])(\d+)/g)].map(([, letter, size]) => [LETTERS.indexOf(letter), Number(size)]);
  const cells = new Uint8Array(runs.reduce((sum, [, size]) => sum + size, 0));
  let at = 0;
  for (const [state, size] of runs) {
    cells.fill(Math.max(0, state), at, at + size);
    at += size;
  }
  return cells;
}

/** Number of cells in each state. */
export function tally(cells) {
  const counts = [0, 0, 0, 0, 0, 0];
  for (const cell of cells) counts[cell] += 1;
  return counts;
}

/** Merges neighbours until at most `most` cells are left; each shows the worst of its states. */
export function merge(cells, most) {
  const size = Math.ceil(cells.length / most);
  if (size <= 1) return { cells, size: 1 };
  const merged = new Uint8Array(Math.ceil(cells.length / size));
  cells.forEach((cell, at) => {
    const to = Math.floor(at / size);
    if (cell > merged[to]) merged[to] = cell;
  });
  return { cells: merged, size };
}

/** Distances between cells in CSS pixels, preferred first. */
const PITCHES = [10, 8, 6, 5, 4, 3];

const fits = (width, height, pitch) => Math.floor(width / pitch) * Math.floor(height / pitch);

/**
 * Lays out cells.
 * @param {number} width
 * @param {number} height
 * @param {number} number cells in use
 * @param {number} [before] current pitch: kept until the cells fit twice, to avoid flicker
 */
export function layout(width, height, number, before) {
  const smallest = PITCHES.at(-1);
  let pitch = PITCHES.find((one) => fits(width, height, one) >= number) ?? smallest;
  if (before && pitch > before && fits(width, height, pitch) < number * 2) pitch = before;
  return { pitch, columns: Math.floor(width / pitch), rows: Math.floor(height / pitch) };
}

/** Colour of a cell's pixel: 1 the state's, 2 the background, 0 none. */
function shade(state, x, y, size) {
  const edge = Math.max(1, Math.round(size / 5));
  const isMarked = size >= 5;
  switch (state) {
    case FREE: {
      const dot = Math.max(1, Math.round(size / 4));
      const from = Math.floor((size - dot) / 2);
      return x >= from && x < from + dot && y >= from && y < from + dot ? 1 : 0;
    }
    case FLYING:
      return isMarked && x >= edge && x < size - edge && y >= edge && y < size - edge ? 2 : 1;
    case RETRYING:
      return isMarked && Math.abs(x - (size - 1 - y)) < edge / 1.5 ? 2 : 1;
    case FAILED:
      return isMarked && (Math.abs(x - (size - 1 - y)) < edge / 1.5 || Math.abs(x - y) < edge / 1.5) ? 2 : 1;
    case PARKED:
      return isMarked && Math.abs(x - (size - 1) / 2) <= edge / 1.5 && Math.abs(y - (size - 1) / 2) <= edge / 1.5 ? 2 : 1;
    default:
      return 1;
  }
}

/** Pixels of one cell per state. */
export function glyphs(size, colors, background) {
  return colors.map((own, state) => {
    const glyph = new Uint32Array(size * size);
    for (let y = 0; y < size; y += 1) {
      for (let x = 0; x < size; x += 1) glyph[y * size + x] = [background, own, background][shade(state, x, y, size)];
    }
    return glyph;
  });
}

/**
 * Paints cells.
 * @param {Uint32Array} pixels of an image of `width`
 * @param {{width: number, pitch: number, columns: number, size: number, cells: Uint8Array, glyphs: Uint32Array[]}} what in device pixels
 */
export function paint(pixels, { width, pitch, columns, size, cells, glyphs: shapes }) {
  for (let at = 0; at < cells.length; at += 1) {
    const left = (at % columns) * pitch;
    const top = Math.floor(at / columns) * pitch;
    const glyph = shapes[cells[at]];
    let from = 0;
    for (let row = top * width + left; from < glyph.length; row += width) {
      for (let x = 0; x < size; x += 1, from += 1) pixels[row + x] = glyph[from];
    }
  }
}

/** Displayed cells of a shard: those in use, then as many free ones as fit. */
export function shown(shard, room) {
  const all = parse(shard.cells);
  const used = Math.min(all.length, Math.ceil((shard.high_water - shard.watermark) / shard.items_per_cell));
  const { cells, size } = merge(all.subarray(0, used), room);
  const window = Math.ceil((shard.capacity ?? all.length) / shard.items_per_cell / size);
  const filled = new Uint8Array(Math.min(room, Math.max(cells.length, window))).fill(FREE);
  filled.set(cells);
  return { cells: filled, used: cells.length, perCell: shard.items_per_cell * size, counts: tally(all.subarray(0, used)) };
}

/** Cells of several shards in one row, a blank one between them. Each part has its shard, its first cell and its scale. */
export function together(shards, room) {
  const each = Math.max(1, Math.floor((room + 1) / shards.length) - 1);
  const parts = [];
  let start = 0;
  for (const shard of shards) {
    parts.push({ shard, start, ...shown(shard, each) });
    start += parts.at(-1).cells.length + 1;
  }
  const cells = new Uint8Array(Math.max(0, start - 1)).fill(GAP);
  for (const one of parts) cells.set(one.cells, one.start);
  return { cells, parts, counts: parts.reduce((sum, one) => sum.map((number, state) => number + one.counts[state]), [0, 0, 0, 0, 0, 0]) };
}

/** Items of a cell: their shard, first index and number; null for a blank cell. */
export function itemsAt({ parts }, at) {
  const part = parts.findLast((one) => one.start <= at);
  const cell = at - (part?.start ?? 0);
  return part && cell < part.cells.length ? { shard: part.shard, first: part.shard.watermark + cell * part.perCell, size: part.perCell } : null;
}
