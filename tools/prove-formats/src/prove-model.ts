/** All proofs of one model: it is trained, exported in every form, and each form compared in the tool that it is for. */
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'loopwright';
import { type Cases, casesWithin, randomCases, textCases } from './cases.js';
import { type Comparison, compare } from './compare.js';
import { type Limit, limits } from './limits.js';
import { answerOf, exportModel, type OurAnswer, train } from './ours.js';
import { askPeers, type Job, type QuantizeType } from './peers.js';

export interface ProveOptions {
  /** What the table calls it. */
  readonly name: string;
  /** A model directory. */
  readonly model: string;
  readonly steps: number;
  readonly learningRate: number;
  /** Of the sharded directory. */
  readonly maxShard: string;
  readonly python: string;
  /** Empty; gigabytes for a model of gigabytes. */
  readonly folder: string;
}

export interface Proof {
  readonly model: string;
  /** The file, and who made it. */
  readonly what: string;
  readonly peer: string;
  /** What is compared: `trained` with the adapter on its base, or `file` where both read the same one. */
  readonly against: string;
  readonly limit: Limit;
  readonly comparison: Comparison;
}

export interface ModelProofs {
  readonly versions: Readonly<Record<string, string>>;
  readonly proofs: readonly Proof[];
  /** By how much training moved the log-prob that it moved most: a proof in which nothing moves proves nothing. */
  readonly largestMove: number;
  /** Why there is no GGUF file, where `export` refuses to write one. */
  readonly ggufRefusal: string | undefined;
}

/** Types that llama.cpp's quantizer makes of our F16 file, for us to read. */
const quantized: readonly QuantizeType[] = ['F32', 'BF16', 'Q8_0', 'Q4_0', 'Q4_1'];

export async function proveModel(options: ProveOptions): Promise<ModelProofs> {
  const { name: model, folder, python } = options;
  const at = (name: string) => join(folder, name);
  const dataDir = at('data');
  const hasTokenizer = await isThere(join(options.model, 'tokenizer.json'));
  const { arn, cases, base, trained } = await trainAndAnswer(options, { dataDir, hasTokenizer });

  const exporting = (target: string, ...more: string[]) => exportModel([arn, at(target), '--data', dataDir, ...more]);
  await exporting('peft', '--format', 'peft').then(requireDone);
  await exporting('merged').then(requireDone);
  await exporting('sharded', '--max-shard', options.maxShard).then(requireDone);
  const f16 = await exporting('f16.gguf', '--format', 'gguf', '--type', 'f16');
  const ggufRefusal = refusalOf(f16);

  const jobs: Job[] = [
    { kind: 'transformers', name: 'peft', path: options.model, adapter: at('peft'), cases },
    { kind: 'transformers', name: 'merged', path: at('merged'), cases },
    { kind: 'transformers', name: 'sharded', path: at('sharded'), cases },
  ];
  if (ggufRefusal !== undefined) {
    const { versions, answers } = await askPeers(jobs, { python, folder });
    const proofs = directoryProofs(model, (name) => compare(trained, answers.get(name)!, limits.float32));
    return { versions, proofs, largestMove: largestMove(base, trained), ggufRefusal };
  }

  await exporting('q8_0.gguf', '--format', 'gguf', '--type', 'q8_0').then(requireDone);
  const ggufCases = casesWithin(cases, Number(requireDone(f16).contextLength));
  const quantizeJobs = quantized.map(
    (type): Job => ({ kind: 'quantize', name: type, path: at('f16.gguf'), to: at(`llama-${type}.gguf`), type }),
  );
  const files = ['f16', 'q8_0', ...quantized.map((type) => `llama-${type}`)];
  for (const file of files) {
    // Widened to F32, so that llama.cpp computes from the file's very numbers in float32, as the engine does.
    const widened = at(`${file}-widened.gguf`);
    quantizeJobs.push({ kind: 'quantize', name: file, path: at(`${file}.gguf`), to: widened, type: 'F32' });
    jobs.push({ kind: 'llama', name: `${file} widened`, path: widened, cases: ggufCases });
  }
  for (const file of ['f16', 'q8_0'])
    jobs.push({ kind: 'llama', name: file, path: at(`${file}.gguf`), cases: ggufCases });
  const { versions, answers } = await askPeers([...quantizeJobs, ...jobs], { python, folder });

  const proofs = directoryProofs(model, (name) => compare(trained, answers.get(name)!, limits.float32));
  await using service = await connect({ dataDir, threads: 2 });
  const ask = async (source: { baseModel: string } | { modelPackageArn: string }) => {
    const sampler = await service.createSamplingClient(source);
    try {
      return await answerOf(sampler, ggufCases, hasTokenizer);
    } finally {
      await sampler.close();
    }
  };
  const trainedWithin = await ask({ modelPackageArn: arn });
  for (const type of ['f16', 'q8_0'] as const) {
    const comparison = compare(trainedWithin, answers.get(type)!, limits[type]);
    proofs.push({
      ...{ model, what: `GGUF ${type.toUpperCase()}`, peer: 'llama.cpp, as it runs by itself', against: 'trained' },
      ...{ limit: limits[type], comparison },
    });
  }
  for (const file of files) {
    const ours = await ask({ baseModel: at(`${file}.gguf`) });
    const comparison = compare(ours, answers.get(`${file} widened`)!, limits.float32);
    const what = file.startsWith('llama-') ? `GGUF ${file.slice(6)} of llama.cpp` : `GGUF ${file.toUpperCase()}`;
    proofs.push({ model, what, peer: 'llama.cpp in float32', against: 'file', limit: limits.float32, comparison });
  }
  return { versions, proofs, largestMove: largestMove(base, trained), ggufRefusal };
}

interface TrainedModel {
  readonly arn: string;
  readonly cases: Cases;
  readonly base: OurAnswer;
  readonly trained: OurAnswer;
}

async function trainAndAnswer(
  { model, steps, learningRate }: ProveOptions,
  { dataDir, hasTokenizer }: { readonly dataDir: string; readonly hasTokenizer: boolean },
): Promise<TrainedModel> {
  await using service = await connect({ dataDir, threads: 2 });
  await using baseSampler = await service.createSamplingClient({ baseModel: model });
  const cases = hasTokenizer
    ? textCases(await baseSampler.getTokenizer())
    : randomCases({ vocabSize: await vocabSizeOf(model), seed: 1 });
  const base = await answerOf(baseSampler, cases, hasTokenizer);
  const arn = await train(service, { baseModel: model, sequences: cases.sequences, steps, learningRate });
  await using sampler = await service.createSamplingClient({ modelPackageArn: arn });
  return { arn, cases, base, trained: await answerOf(sampler, cases, hasTokenizer) };
}

function directoryProofs(model: string, comparisonOf: (name: string) => Comparison): Proof[] {
  const rows = [
    ['peft', 'PEFT adapter', 'transformers + PEFT'],
    ['merged', 'merged directory', 'transformers'],
    ['sharded', 'merged, in shards', 'transformers'],
  ] as const;
  return rows.map(([name, what, peer]) => {
    return { model, what, peer, against: 'trained', limit: limits.float32, comparison: comparisonOf(name) };
  });
}

function largestMove(base: OurAnswer, trained: OurAnswer): number {
  return Math.max(
    ...base.logprobs.flatMap((row, i) => row.map((value, t) => Math.abs(value - trained.logprobs[i]![t]!))),
  );
}

type Event = Readonly<Record<string, unknown>>;

function requireDone(event: Event): Event {
  if (event.type === 'export-end') return event;
  throw new Error(`loopwright export failed: ${JSON.stringify(event)}`);
}

/** The code and message of a refusal to write such a model; other failures are none. */
function refusalOf(event: Event): string | undefined {
  if (event.type !== 'error') return undefined;
  const { code, message } = event.error as { readonly code: string; readonly message: string }; // true: of all error events
  return code === 'unsupported_model' ? message : undefined;
}

async function vocabSizeOf(model: string): Promise<number> {
  const { vocab_size } = JSON.parse(await readFile(join(model, 'config.json'), 'utf8')) as { vocab_size: number }; // true: of a text model
  return vocab_size;
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
