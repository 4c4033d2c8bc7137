/** Chats streamed over the OpenAI wire, all at once: what one that reads them waits for, and whether each gets its own answer. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { connect } from 'loopwright';
import { emit, type Settings } from './report.js';

const apiKey = 'a-key-of-the-bench';

interface Stream {
  /** When texts came, milliseconds from the request. Empty for an answer that ends at once. */
  readonly times: readonly number[];
  readonly text: string;
  readonly tokens: number;
}

/**
 * `count` chats of different prompts and seeds, sent at once; NEW tokens each at most. The same chats one after the other go first: they warm up, and say what
 * each has to answer. Then REPEATS rounds at once.
 *
 * @throws when a stream ends without its finish reason or its end mark
 */
export async function streams(settings: Settings, count: number): Promise<void> {
  const { modelDirectory, newTokens, repeats, threads } = settings;
  const dataDir = await mkdtemp(path.join(tmpdir(), 'loopwright-bench-'));
  try {
    await using service = await connect({ dataDir, apiKey, threads });
    const ask = (seed: number) =>
      chat(`${service.baseUrl}/v1/chat/completions`, { model: modelDirectory, seed, newTokens });
    const alone: Stream[] = [];
    for (let seed = 0; seed < count; seed++) alone.push(await ask(seed));
    report(alone, { work: `${count} chats streamed one by one`, settings });
    for (let repeat = 0; repeat < repeats; repeat++) {
      const begin = performance.now();
      const read = await Promise.all(alone.map((_, seed) => ask(seed)));
      report(read, {
        work: `${count} chats streamed at once`,
        ...{ settings, seconds: (performance.now() - begin) / 1000 },
        same_as_alone: read.filter(({ text }, seed) => text === alone[seed]!.text).length,
        of_another: read.filter(({ text }, seed) =>
          alone.some((other, at) => at !== seed && other.text === text && text !== alone[seed]!.text),
        ).length,
      });
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}

function report(
  read: readonly Stream[],
  {
    work,
    settings,
    seconds,
    ...counts
  }: { work: string; settings: Settings; seconds?: number; [count: string]: unknown },
): void {
  const tokens = read.reduce((sum, stream) => sum + stream.tokens, 0);
  const last = read.reduce((sum, { times }) => sum + (times.at(-1) ?? 0), 0) / 1000;
  emit(
    {
      work: `${work}, ${settings.newTokens} tokens at most`,
      ...{ value: tokens / (seconds ?? last), unit: 'tokens/s', tokens },
      first_ms: shares(read.flatMap(({ times }) => times.slice(0, 1))),
      between_ms: shares(read.flatMap(({ times }) => times.slice(1).map((time, i) => time - times[i]!))),
      without_text: read.filter(({ times }) => times.length === 0).length,
      ...counts,
    },
    { ...settings, clock: 'wall' },
  );
}

/** Median, the value that 90 of 100 are below, and the largest; "none" of no values. */
function shares(values: readonly number[]): string {
  if (values.length === 0) return 'none';
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
  return [at(0.5), at(0.9), at(1)].map((value) => value.toFixed(1)).join(' / ');
}

async function chat(
  url: string,
  { model, seed, newTokens }: { readonly model: string; readonly seed: number; readonly newTokens: number },
): Promise<Stream> {
  const sent = performance.now();
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ model, seed, stream: true, max_completion_tokens: newTokens },
      messages: [{ role: 'user', content: `Tell me a long story about the number ${seed}.` }],
      stream_options: { include_usage: true },
    }),
  });
  if (!response.ok || response.body === null) throw new Error(`HTTP ${response.status}: ${await response.text()}`);
  const times: number[] = [];
  let [text, tokens, rest] = ['', 0, ''];
  let [isFinished, isClosed] = [false, false];
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const now = performance.now() - sent;
    const events = (rest + piece).split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events) {
      isClosed ||= event === 'data: [DONE]';
      if (!event.startsWith('data: {')) continue;
      const { choices, usage } = JSON.parse(event.slice(6)) as {
        choices?: { delta: { content?: string | null }; finish_reason?: string | null }[];
        usage?: { completion_tokens: number } | null;
      }; // as the API has it
      const content = choices?.[0]?.delta.content ?? '';
      if (content !== '') times.push(now);
      text += content;
      isFinished ||= typeof choices?.[0]?.finish_reason === 'string';
      tokens = usage?.completion_tokens ?? tokens;
    }
  }
  if (!isFinished || !isClosed || rest !== '') throw new Error('a stream ended before its time');
  return { times, text, tokens };
}
