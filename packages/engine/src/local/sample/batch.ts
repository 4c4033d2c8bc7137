/**
 * The rows of one model that are decoded together: all of them by the base weights, or each by the adapter of its version. Rows join by a
 * prefill of their prompts and leave when they are done.
 */
import type { Tensor } from 'onnxruntime-node';
import { maskedOut } from '../models/mask.js';
import { type Compiled, type Feeds, floats, integers } from '../ort/runtime.js';
import { pastInput } from './decode-graph.js';
import type { FusedAdapter } from './fused-adapter.js';
import { type HeadKind, headKinds } from './head-graph.js';
import type { InferenceModel } from './inference-model.js';
import type { Prefill, Prefills } from './prefill.js';
import type { Row } from './row.js';
import type { RowCache } from './row-cache.js';
import type { Snapshot } from './snapshot.js';
import { drawTruncated } from './truncation.js';
import { VersionStack } from './version-stack.js';

/** The beginning of a prompt, its last token left out, with the rows that go on from it; it is prefilled once for all of them. */
export interface PromptRows {
  readonly snapshot: Snapshot;
  readonly tokens: Int32Array;
  readonly rows: Row[];
}

export class DecodeBatch {
  readonly #model: InferenceModel;
  readonly #isAdapted: boolean;
  #rows: Row[] = [];
  readonly #cache: RowCache;
  readonly #prefills: Prefills;
  readonly #stack: VersionStack;

  /** @param first one of the versions that it is to decode */
  constructor({ model, fused }: Snapshot, prefills: Prefills) {
    this.#model = model;
    this.#isAdapted = fused.isAdapted;
    this.#prefills = prefills;
    this.#cache = model.takeCache();
    this.#stack = new VersionStack(model.tensors);
  }

  /** Whether rows of this version can be among its own. */
  takes({ model, fused }: Snapshot): boolean {
    return model === this.#model && fused.isAdapted === this.#isAdapted;
  }

  /** Versions that have rows now. */
  get snapshots(): Snapshot[] {
    return [...new Set(this.#rows.map((row) => row.snapshot))];
  }

  get size(): number {
    return this.#rows.length;
  }

  /** Gives the memory back; the batch may not be used after it. */
  release(): void {
    this.#model.giveCache(this.#cache);
    this.#stack.clear();
  }

  /** Prefills prompts where that was not done lately, and lets their rows join. The last prompt token is left to the first decoding step. */
  async join(prompts: readonly PromptRows[]): Promise<void> {
    const joining = prompts.flatMap(({ rows }) => rows);
    const first = this.#rows.length;
    this.#cache.reserve(first + joining.length, Math.max(...joining.map((row) => row.cached + 1)));
    try {
      let row = first;
      for (const { snapshot, tokens, rows } of prompts) {
        if (tokens.length > 0) this.#write(await this.#prefills.get(snapshot, tokens), { row, count: rows.length });
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
    const { tensors, config } = this.#model;
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
    const { program, adapters } = await this.#adapters(padded);
    const feeds: Feeds = {
      ...adapters,
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
    const outputs = await program.run(feeds, ['hidden', 'rows']);
    this.#cache.writeStep(floats(outputs, 'rows'), lengths.slice(0, rows.length));
    await this.#draw(floats(outputs, 'hidden'));
    if (rows.some((row) => row.isBroken)) this.#cache.scrub();
    this.removeRows((row) => row.stopReason !== undefined);
  }

  /** The program for these rows, with what it takes besides them. */
  async #adapters(rows: readonly Row[]): Promise<{ readonly program: Compiled; readonly adapters: Feeds }> {
    const model = this.#model;
    if (!this.#isAdapted) return { program: await model.decode('none'), adapters: {} };
    const { snapshots } = this;
    const [first] = snapshots;
    if (snapshots.length === 1 && !model.decodesVersions) {
      return { program: await model.decode('one'), adapters: first!.fused.decode };
    }
    const slots = this.#stack.hold(snapshots.map(({ fused }) => fused));
    const slotOf = new Map(snapshots.map((snapshot, i) => [snapshot, slots[i]!]));
    const members: number[][] = Array.from({ length: this.#stack.size }, () => []);
    rows.forEach((row, b) => {
      members[slotOf.get(row.snapshot)!]!.push(b);
    });
    const [V, R] = [members.length, Math.max(2, ...members.map(({ length }) => length))]; // two at least, see below
    const place = new BigInt64Array(rows.length);
    const filled = new BigInt64Array(V * R);
    members.forEach((list, v) => {
      for (let r = 0; r < R; r++) filled[v * R + r] = BigInt(list[r] ?? list[0] ?? 0);
      list.forEach((b, r) => {
        place[b] = BigInt(v * R + r);
      });
    });
    const { tensors } = model;
    const where = {
      version_rows: tensors.int(filled, [V, R]),
      version_place: tensors.int(place, [rows.length]),
    };
    return { program: await model.decode('versions'), adapters: { ...this.#stack.feeds(), ...where } };
  }

  async #draw(hidden: Float32Array): Promise<void> {
    const width = this.#model.config.hiddenSize;
    // Few adapters reach the head; rows of those that do are drawn by themselves.
    const heads = new Set(this.#rows.map((row) => row.snapshot.fused.head));
    for (const [kind, headAdapter] of headKinds.flatMap((each) => [...heads].map((head) => [each, head] as const))) {
      const chosen = this.#rows.flatMap((row, b) =>
        row.kind === kind && row.snapshot.fused.head === headAdapter ? [b] : [],
      );
      if (chosen.length === 0) continue;
      let part = hidden;
      if (chosen.length < this.#rows.length) {
        const places = atLeastTwo(chosen);
        part = new Float32Array(places.length * width);
        for (const [i, b] of places.entries()) part.set(hidden.subarray(b * width, (b + 1) * width), i * width);
      }
      await this.#drawKind(
        kind,
        headAdapter,
        chosen.map((b) => this.#rows[b]!),
        part,
      );
    }
  }

  async #drawKind(
    kind: HeadKind,
    headAdapter: FusedAdapter['head'],
    rows: readonly Row[],
    hidden: Float32Array,
  ): Promise<void> {
    const model = this.#model;
    const { tensors, config } = model;
    const padded = atLeastTwo(rows);
    const B = padded.length;
    const feeds: Record<string, Tensor> = {
      hidden: tensors.float(hidden, [B, config.hiddenSize]),
      ...(headAdapter === undefined ? {} : { 'head.A': headAdapter.A, 'head.B': headAdapter.B }),
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
    const head = await model.head(kind, headAdapter !== undefined);
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
