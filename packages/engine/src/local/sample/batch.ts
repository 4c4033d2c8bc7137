/** The rows of one snapshot that are decoded together. Rows join by a prefill of their prompts and leave when they are done. */
import type { Tensor } from 'onnxruntime-node';
import { maskedOut } from '../models/mask.js';
import { type Feeds, floats, integers } from '../ort/runtime.js';
import { pastInput } from './decode-graph.js';
import { type HeadKind, headKinds } from './head-graph.js';
import type { Prefill, Prefills } from './prefill.js';
import type { Row } from './row.js';
import type { RowCache } from './row-cache.js';
import type { Snapshot } from './snapshot.js';
import { drawTruncated } from './truncation.js';

/** The beginning of a prompt, its last token left out, with the rows that go on from it; it is prefilled once for all of them. */
export interface PromptRows {
  readonly tokens: Int32Array;
  readonly rows: Row[];
}

export class DecodeBatch {
  readonly snapshot: Snapshot;
  #rows: Row[] = [];
  readonly #cache: RowCache;
  readonly #prefills: Prefills;

  constructor(snapshot: Snapshot, prefills: Prefills) {
    this.snapshot = snapshot;
    this.#prefills = prefills;
    this.#cache = snapshot.model.takeCache();
  }

  get size(): number {
    return this.#rows.length;
  }

  /** Gives the memory back; the batch may not be used after it. */
  release(): void {
    this.snapshot.model.giveCache(this.#cache);
  }

  /** Prefills prompts where that was not done lately, and lets their rows join. The last prompt token is left to the first decoding step. */
  async join(prompts: readonly PromptRows[]): Promise<void> {
    const joining = prompts.flatMap(({ rows }) => rows);
    const first = this.#rows.length;
    this.#cache.reserve(first + joining.length, Math.max(...joining.map((row) => row.cached + 1)));
    try {
      let row = first;
      for (const { tokens, rows } of prompts) {
        if (tokens.length > 0)
          this.#write(await this.#prefills.get(this.snapshot, tokens), { row, count: rows.length });
        row += rows.length;
      }
    } catch (error) {
      this.#cache.keepRows(first);
      throw error;
    }
    this.#rows.push(...joining);
  }

  #write({ arrays, stride, count: positions }: Prefill, { row, count }: { row: number; count: number }): void {
    arrays.forEach((source, index) => {
      for (let r = row; r < row + count; r++) this.#cache.writePrompt(index, r, source, { stride, count: positions });
    });
  }

  /** Decodes one token for every row; rows that are done leave. */
  async step(): Promise<void> {
    const { model, fused } = this.snapshot;
    const { tensors, config } = model;
    const rows = this.#rows;
    const padded = atLeastTwo(rows);
    const B = padded.length;
    this.#cache.reserve(B, Math.max(...rows.map((row) => row.cached + 1)));
    const T = this.#cache.positions;
    const lengths = padded.map((row) => row.cached);
    const mask = new Float32Array(B * T).fill(maskedOut);
    lengths.forEach((length, b) => {
      mask.fill(0, b * T, b * T + length);
    });
    const dims = [B, config.kvHeads, T, config.headDim];
    const feeds: Feeds = {
      ...fused.decode,
      ids: tensors.int(
        BigInt64Array.from(padded, (row) => BigInt(row.newest)),
        [B, 1],
      ),
      positions: tensors.int(BigInt64Array.from(lengths, BigInt), [B, 1]),
      mask: tensors.float(mask, [B, 1, 1, T]),
    };
    for (let layer = 0; layer < config.layers; layer++) {
      feeds[pastInput(layer, 'keys')] = tensors.float(this.#cache.view(2 * layer, B), dims);
      feeds[pastInput(layer, 'values')] = tensors.float(this.#cache.view(2 * layer + 1, B), dims);
    }
    const outputs = await (await model.decode(fused.isAdapted)).run(feeds, ['hidden', 'rows']);
    this.#cache.writeStep(floats(outputs, 'rows'), lengths.slice(0, rows.length));
    await this.#draw(floats(outputs, 'hidden'));
    if (rows.some((row) => row.isBroken)) this.#cache.scrub();
    this.removeRows((row) => row.stopReason !== undefined);
  }

  async #draw(hidden: Float32Array): Promise<void> {
    const width = this.snapshot.model.config.hiddenSize;
    for (const kind of headKinds) {
      const chosen = this.#rows.flatMap((row, b) => (row.kind === kind ? [b] : []));
      if (chosen.length === 0) continue;
      let part = hidden;
      if (chosen.length < this.#rows.length) {
        const places = atLeastTwo(chosen);
        part = new Float32Array(places.length * width);
        for (const [i, b] of places.entries()) part.set(hidden.subarray(b * width, (b + 1) * width), i * width);
      }
      await this.#drawKind(
        kind,
        chosen.map((b) => this.#rows[b]!),
        part,
      );
    }
  }

  async #drawKind(kind: HeadKind, rows: readonly Row[], hidden: Float32Array): Promise<void> {
    const { model, fused } = this.snapshot;
    const { tensors, config } = model;
    const padded = atLeastTwo(rows);
    const B = padded.length;
    const feeds: Record<string, Tensor> = {
      hidden: tensors.float(hidden, [B, config.hiddenSize]),
      ...(fused.head === undefined ? {} : { 'head.A': fused.head.A, 'head.B': fused.head.B }),
    };
    if (kind === 'draw' || kind === 'scaled')
      feeds.u = tensors.float(
        Float32Array.from(padded, (row) => row.draw),
        [B, 1],
      );
    if (kind === 'scaled')
      feeds.inverse_temperature = tensors.float(
        Float32Array.from(padded, (row) => 1 / row.params.temperature),
        [B, 1],
      );
    const head = await model.head(kind, fused.head !== undefined);
    if (kind === 'logits') {
      const logits = floats(await head.run(feeds, ['logits']), 'logits');
      rows.forEach((row, b) => {
        const drawn = drawTruncated(
          logits.subarray(b * config.vocabSize, (b + 1) * config.vocabSize),
          row.params,
          row.draw,
        );
        row.push(drawn.token, drawn.logprob);
      });
      return;
    }
    const outputs = await head.run(feeds, ['token', 'probability']);
    const [tokens, probabilities] = [integers(outputs, 'token'), floats(outputs, 'probability')];
    rows.forEach((row, b) => {
      row.push(Number(tokens[b]), Math.log(probabilities[b]!));
    });
  }

  /** Takes rows out; the last ones move into the gaps. */
  removeRows(leaves: (row: Row) => boolean): void {
    const rows = this.#rows;
    for (let b = rows.length - 1; b >= 0; b--) {
      if (!leaves(rows[b]!)) continue;
      const last = rows.length - 1;
      if (b !== last) {
        this.#cache.copyRow(last, b);
        rows[b] = rows[last]!;
      }
      rows.pop();
    }
    this.#cache.keepRows(rows.length);
  }
}

/**
 * A single row goes twice: the runtime multiplies one row by a matrix in another order than several, so that a row by itself would
 * have other last bits than beside others. Reading the weights is the cost of both.
 */
function atLeastTwo<T>(rows: readonly T[]): readonly T[] {
  return rows.length === 1 ? [...rows, ...rows] : rows;
}
