/** Whether prompts are what the model's chat template would write: what was built by hand often isn't. Counts alone, no content. */
import type { Tokenizer } from '@loopwright/text';
import type { Finding, FindingLevel } from '../findings.js';

/** Two contents, so that what the template writes around them is told from them. */
const contents = ['0', '1'] as const;

interface Fault {
  readonly level: FindingLevel;
  readonly name: string;
  readonly what: string;
  readonly remedy: string;
}

const render = 'render prompts by tokenizer.applyChatTemplate(messages, { addGenerationPrompt: true })';
const faults = {
  doubleBegin: {
    ...{ level: 'stop', name: 'double-bos', what: 'begin with the beginning of sequence twice' },
    remedy: 'the template writes it already: encode without addSpecialTokens',
  },
  marksAsText: {
    ...{
      level: 'stop',
      name: 'marks-as-text',
      what: 'hold control tokens as plain text, which the model has never seen',
    },
    remedy: `${render}, or encode with parseSpecialTokens`,
  },
  noBegin: {
    ...{ level: 'warn', name: 'no-bos', what: 'begin without the control token that the chat template begins with' },
    remedy: render,
  },
  noGenerationPrompt: {
    ...{ level: 'warn', name: 'no-generation-prompt', what: 'end without the beginning of the model’s turn' },
    remedy: 'give addGenerationPrompt: true, or the model writes the marks itself, or goes on as the user',
  },
  plain: {
    ...{ level: 'note', name: 'plain-prompts', what: 'are plain text, and the model has a chat template' },
    remedy: `of a base model that is right; for a chat model ${render}`,
  },
} as const satisfies Readonly<Record<string, Fault>>;

/** @param prompts as the sampler is given them; those of episodes are rendered by the template, and need no look */
export function templateFindings(prompts: readonly (readonly number[])[], tokenizer: Tokenizer): Finding[] {
  const template = tokenizer.hasChatTemplate ? around(tokenizer) : undefined;
  const counts = new Map<Fault, number>();
  for (const prompt of prompts)
    for (const fault of faultsOf(prompt, { tokenizer, template })) counts.set(fault, (counts.get(fault) ?? 0) + 1);
  return [...counts].map(([{ level, name, what, remedy }, count]) => ({
    ...{ level, name: `preflight/${name}`, remedy },
    seen: `${count} of ${prompts.length} prompts ${what}`,
  }));
}

/** What the template writes at the beginning of a chat and, for the model to begin its turn, at the end. */
interface Around {
  /** A control token; undefined where the template begins with text. */
  readonly first: number | undefined;
  readonly generation: readonly number[];
}

/** Undefined where it refuses a chat of one question. */
function around(tokenizer: Tokenizer): Around | undefined {
  try {
    const [open, other] = contents.map((content) =>
      tokenizer.applyChatTemplate([{ role: 'user', content }], { addGenerationPrompt: true }),
    ) as [number[], number[]]; // true: of two
    const closed = tokenizer.applyChatTemplate([{ role: 'user', content: contents[0] }]);
    const added = closed.every((id, i) => open[i] === id) ? open.slice(closed.length) : [];
    const [first] = open;
    const isMark = first !== undefined && first === other[0] && tokenizer.controlToken(first) !== undefined;
    return { first: isMark ? first : undefined, generation: added };
  } catch {
    return undefined;
  }
}

function faultsOf(
  prompt: readonly number[],
  { tokenizer, template }: { readonly tokenizer: Tokenizer; readonly template: Around | undefined },
): Fault[] {
  const found: Fault[] = [];
  const isControl = (id: number | undefined): boolean => id !== undefined && tokenizer.controlToken(id) !== undefined;
  const [first, second] = prompt;
  if (first === second && isControl(first)) found.push(faults.doubleBegin);
  const marks = prompt.filter(isControl).length;
  const text = tokenizer.decode(prompt, { skipSpecialTokens: false });
  const meant = tokenizer.encode(text, { parseSpecialTokens: true }).filter(isControl).length;
  if (meant > marks) return [...found, faults.marksAsText];
  if (template === undefined) return found;
  if (marks === 0) return [...found, faults.plain];
  const { generation } = template;
  if (template.first !== undefined && first !== template.first) found.push(faults.noBegin);
  const end = prompt.slice(prompt.length - generation.length);
  if (generation.length > 0 && generation.some((id, i) => end[i] !== id)) found.push(faults.noGenerationPrompt);
  return found;
}
