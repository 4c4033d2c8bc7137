/**
 * The adapters of several versions side by side, as a decoding step over rows of all of them takes them: each input of a fused adapter
 * with the version as first axis, A [V,P,16,in] and B [V,out,16·P], zeros beyond a version's own ranks. A product with zeros behind
 * a row's own numbers changes no bit of it.
 *
 * A version keeps its slot while it has rows, so that one that comes costs one copy of its adapter, and none that stays is copied again.
 */
import type { Feeds, TensorFactory } from '../ort/runtime.js';
import type { FusedAdapter } from './fused-adapter.js';

type Adapter = Pick<FusedAdapter, 'decode'>;

/** One input: its numbers, slot by slot. */
interface Stack {
  readonly data: Float32Array;
  /** Of one slot, without the axis of versions. */
  readonly dims: readonly number[];
}

export class VersionStack {
  readonly #tensors: TensorFactory;
  #slots: (Adapter | undefined)[] = [];
  #stacks = new Map<string, Stack>();
  #feeds: Feeds | undefined;

  constructor(tensors: TensorFactory) {
    this.#tensors = tensors;
  }

  /** Slots in use or free between ones in use: V. */
  get size(): number {
    return this.#slots.length;
  }

  /** Takes the versions that have rows now. Returns the slot of each. */
  hold(adapters: readonly Adapter[]): number[] {
    this.#slots = this.#slots.map((held) => (held !== undefined && adapters.includes(held) ? held : undefined));
    const slots = adapters.map((adapter) => {
      const known = this.#slots.indexOf(adapter);
      if (known >= 0) return known;
      const free = this.#slots.indexOf(undefined);
      const slot = free >= 0 ? free : this.#slots.length;
      this.#slots[slot] = adapter;
      this.#write(slot, adapter);
      return slot;
    });
    while (this.#slots.length > 0 && this.#slots.at(-1) === undefined) this.#slots.pop();
    if (this.#feeds !== undefined && firstAxis(this.#feeds) !== this.size) this.#feeds = undefined;
    return slots;
  }

  /** By the names of a fused adapter's inputs. */
  feeds(): Feeds {
    if (this.#feeds !== undefined) return this.#feeds;
    const feeds: Feeds = {};
    for (const [name, { data, dims }] of this.#stacks) {
      const size = sizeOf(dims);
      feeds[name] = this.#tensors.float(data.subarray(0, this.size * size), [this.size, ...dims]);
    }
    this.#feeds = feeds;
    return feeds;
  }

  /** Forgets all, the memory included. */
  clear(): void {
    this.#slots = [];
    this.#stacks = new Map();
    this.#feeds = undefined;
  }

  #write(slot: number, { decode }: Adapter): void {
    this.#feeds = undefined;
    for (const [name, tensor] of Object.entries(decode)) {
      const found = this.#stacks.get(name);
      const wanted = found === undefined ? tensor.dims : larger(found.dims, tensor.dims);
      const size = sizeOf(wanted);
      const isRoomy = found !== undefined && sizeOf(found.dims) === size && found.data.length >= (slot + 1) * size;
      const stack = isRoomy ? found : grown(found, { dims: wanted, slots: Math.max(slot + 1, this.#slots.length) });
      if (!isRoomy) this.#stacks.set(name, stack);
      const place = stack.data.subarray(slot * size, (slot + 1) * size);
      place.fill(0);
      copyInto(place, wanted, tensor.data as Float32Array, tensor.dims); // true: adapters are float32
    }
  }
}

/** The same slots with room for more of them, or for slots of more ranks. */
function grown(found: Stack | undefined, { dims, slots }: { dims: readonly number[]; slots: number }): Stack {
  const size = sizeOf(dims);
  const data = new Float32Array(slots * size);
  if (found === undefined) return { data, dims };
  const before = sizeOf(found.dims);
  for (let slot = 0; slot * before < found.data.length; slot++) {
    const place = data.subarray(slot * size, (slot + 1) * size);
    copyInto(place, dims, found.data.subarray(slot * before, (slot + 1) * before), found.dims);
  }
  return { data, dims };
}

/** Copies an array into the beginning of each axis of a larger one; the last axis lies together. */
function copyInto(to: Float32Array, toDims: readonly number[], from: Float32Array, fromDims: readonly number[]): void {
  const [toWidth, fromWidth] = [toDims.at(-1)!, fromDims.at(-1)!];
  // A grows in its first axis, B in its last: rows are in the same order in both.
  const rows = from.length / fromWidth;
  for (let row = 0; row < rows; row++) to.set(from.subarray(row * fromWidth, (row + 1) * fromWidth), row * toWidth);
}

const larger = (a: readonly number[], b: readonly number[]): number[] => a.map((size, i) => Math.max(size, b[i]!));
const sizeOf = (dims: readonly number[]): number => dims.reduce((product, size) => product * size, 1);
const firstAxis = (feeds: Feeds): number | undefined => Object.values(feeds)[0]?.dims[0];
