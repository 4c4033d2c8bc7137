/** A loss that the caller computes from log-probabilities: what it is given, what it gives, and the passes around it. */
import {
  complaint,
  type Datum,
  floatTensor,
  LoopwrightError,
  type NumberArray,
  type PassResult,
} from '@loopwright/protocol';
import { datumFromInputs } from '@loopwright/wires/sagemaker';
import { checkBatch } from './batches.js';

/** A datum for a loss of your own; it may hold whatever else the loss wants to read. */
export interface CustomDatum {
  /** Token ids, length N ≥ 1. */
  readonly modelInput: readonly number[] | Int32Array;
  readonly lossFnInputs: {
    /** (N) or (N,K). */
    readonly targetTokens: NumberArray;
    /** (N): logits are divided by it before the log-softmax; 1 where absent. */
    readonly temperature?: NumberArray;
  };
  /** The loss only reads its log-probabilities: no gradient, and no second pass. Default false. */
  readonly forwardOnly?: boolean;
}

/** What a loss of your own comes to. */
export interface CustomLossValue {
  /** To be lowered. */
  readonly loss: number;
  /**
   * ∂loss/∂logprob: one list per datum, as long as its log-probabilities; for datums that are `forwardOnly` an empty list or
   * zeros.
   */
  readonly gradients: readonly ArrayLike<number>[];
  /** Passed on. */
  readonly metrics?: Readonly<Record<string, number>>;
}

/**
 * A loss of your own, computed at once: no promise. Its name (`function dpo`) is that of its errors.
 *
 * @param logprobs one list per datum, one number per target token (flat, N or N·K)
 * @param data as given to the call
 */
export type CustomLoss<D extends CustomDatum = CustomDatum> = (
  logprobs: readonly (readonly number[])[],
  data: readonly D[],
) => CustomLossValue;

export interface CustomPassOutput {
  /** What your function gave. */
  readonly loss: number;
  /** One per datum, in input order: what your function was given. */
  readonly outputs: readonly { readonly logprobs: number[] }[];
  /** Those of your function, plus `loss/sum`, its loss. */
  readonly metrics: Readonly<Record<string, number>>;
  /** Tokens of all model inputs. */
  readonly trainingTokens: number;
}

/** One call of a loss of the caller's own, from its data to the surrogate that has its gradient. */
export class CustomPass<D extends CustomDatum> {
  /** What the forward pass is given. */
  readonly data: readonly Datum[];
  /** Those that get a gradient. */
  readonly trained: readonly Datum[];
  readonly #given: readonly D[];
  readonly #loss: CustomLoss<D>;
  /** −∂loss/∂logprob by datum. */
  readonly #weights = new Map<Datum, Float32Array>();
  #output: CustomPassOutput | undefined;

  /** @throws `invalid_argument` naming datum, input and position */
  constructor(data: readonly D[], loss: CustomLoss<D>) {
    if (typeof loss !== 'function') {
      throw complaint({ field: 'loss', expected: 'a function of logprobs', got: typeof loss });
    }
    checkBatch(data);
    this.data = data.map((datum: unknown, index) => forwardDatum(datum, `data[${index}]`));
    this.trained = this.data.filter((_, index) => data[index]?.forwardOnly !== true);
    if (this.trained.length === 0) {
      throw complaint({ field: 'data', expected: 'a datum that is not forwardOnly', got: `${data.length} that are` });
    }
    this.#given = data;
    this.#loss = loss;
  }

  /** What the call returns in the end. */
  get output(): CustomPassOutput {
    if (this.#output === undefined) throw new LoopwrightError({ code: 'internal', message: 'loss: not evaluated yet' });
    return this.#output;
  }

  /**
   * Calls the function, once, and checks what it gave.
   *
   * @throws `loss_function_failed`
   */
  evaluate({ outputs, trainingTokens }: PassResult): void {
    const logprobs = outputs.map((output) => Array.from(output.logprobs));
    const { loss, gradients, metrics } = this.#call(logprobs);
    const name = nameOf(this.#loss);
    if (typeof loss !== 'number' || !Number.isFinite(loss)) throw wrong(`${name}: loss`, 'a finite number', loss);
    const listed: unknown = gradients; // its callers may be JavaScript
    if (!Array.isArray(listed) || listed.length !== this.data.length) {
      const got = Array.isArray(listed) ? `${listed.length}` : listed;
      throw wrong(`${name}: gradients`, `${this.data.length} lists, one per datum`, got);
    }
    for (const [i, datum] of this.data.entries()) {
      const field = `${name}: gradients[${i}]`;
      if (this.#given[i]?.forwardOnly === true) checkNoGradient(listed[i], field);
      else this.#weights.set(datum, surrogateWeights(listed[i], datum.targetTokens.data.length, field));
    }
    this.#output = {
      loss,
      // Copies: the function may have kept or changed what it was given.
      outputs: outputs.map((output) => ({ logprobs: Array.from(output.logprobs) })),
      metrics: { ...metrics, 'loss/sum': loss },
      trainingTokens,
    };
  }

  /** Datums whose cross entropy has the gradient of the loss. */
  surrogate(part: readonly Datum[]): Datum[] {
    return part.map((datum) => {
      const weights = this.#weights.get(datum);
      if (weights === undefined) throw new LoopwrightError({ code: 'internal', message: 'loss: not evaluated yet' });
      return { ...datum, weights: floatTensor(weights, datum.targetTokens.shape) };
    });
  }

  #call(logprobs: number[][]): CustomLossValue {
    let value: unknown;
    try {
      value = this.#loss(logprobs, this.#given);
    } catch (cause) {
      if (LoopwrightError.isInstance(cause)) throw cause;
      const message = `${nameOf(this.#loss)}: threw instead of giving a loss; the cause of this error says why`;
      throw new LoopwrightError({ code: 'loss_function_failed', message, cause });
    }
    if (typeof value !== 'object' || value === null || 'then' in value) {
      const got = typeof value === 'object' && value !== null ? 'a promise' : value;
      throw wrong(`${nameOf(this.#loss)}: result`, 'an object of loss and gradients', got);
    }
    return value as CustomLossValue; // its members are checked one by one
  }
}

function nameOf(loss: { readonly name: string }): string {
  return loss.name === '' ? 'loss' : loss.name;
}

/** @param got a number or a text is shown, of everything else the type */
function wrong(field: string, expected: string, got: unknown): LoopwrightError {
  const shown = typeof got === 'number' || typeof got === 'string' ? String(got) : got === null ? 'null' : typeof got;
  return complaint({ code: 'loss_function_failed', field, expected, got: shown });
}

/** Every target counts, so that every log-probability is computed. */
function forwardDatum(value: unknown, field: string): Datum {
  const { modelInput, lossFnInputs } = Object(value) as Partial<CustomDatum>; // checked by datumFromInputs
  if (typeof lossFnInputs !== 'object' || lossFnInputs === null) {
    throw complaint({
      field: `${field}.lossFnInputs`,
      expected: 'an object with targetTokens',
      got: typeof lossFnInputs,
    });
  }
  const { targetTokens, temperature } = lossFnInputs;
  const inputs = {
    targetTokens,
    weights: onesLike(targetTokens),
    ...(temperature === undefined ? {} : { temperature }),
  };
  return datumFromInputs({ modelInput, lossFnInputs: inputs }, field, 'cross_entropy');
}

function onesLike(targets: NumberArray): number[] | number[][] {
  return Array.from<number | readonly number[], number | number[]>(targets ?? [], (target) =>
    Array.isArray(target) ? target.map(() => 1) : 1,
  ) as number[] | number[][]; // true: targets are flat or rows, never both; datumFromInputs checks it
}

function lengthOf(values: unknown): number | undefined {
  return Array.isArray(values) || (ArrayBuffer.isView(values) && !(values instanceof DataView))
    ? (values as ArrayLike<unknown>).length // true: arrays and typed arrays have one
    : undefined;
}

function surrogateWeights(gradient: unknown, length: number, field: string): Float32Array {
  const got = lengthOf(gradient);
  if (got !== length) throw wrong(field, `${length} numbers, one per target token`, got ?? gradient);
  return Float32Array.from(gradient as ArrayLike<unknown>, (slope, position) => {
    // Beyond float32 it would come out as infinity.
    if (typeof slope === 'number' && Number.isFinite(Math.fround(slope))) return 0 - slope;
    throw wrong(`${field}[${position}]`, 'a finite number within float32', slope);
  });
}

function checkNoGradient(gradient: unknown, field: string): void {
  const isZero = gradient === undefined || Array.from(gradient as ArrayLike<unknown>).every((slope) => slope === 0);
  if (!isZero) throw wrong(field, 'no gradient, since the datum is forwardOnly', 'numbers other than 0');
}
