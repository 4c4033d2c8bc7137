import { expect, it } from 'vitest';
import { characterTokenizer } from '../testing/bandit.js';
import { chatTokenizer } from '../testing/chat.js';
import { templateFindings } from './template-findings.js';

const tokenizer = chatTokenizer();
const [mark] = tokenizer.encode('<|im_start|>', { parseSpecialTokens: true });
const chat = [{ role: 'user', content: 'Two and two?' }];
const right = tokenizer.applyChatTemplate(chat, { addGenerationPrompt: true });
const byHand = '<|im_start|>user\nTwo and two?<|im_end|>\n<|im_start|>assistant\n';

it.each<readonly [string, readonly number[], readonly string[]]>([
  ['the template’s own', right, []],
  ['the same by hand, with its marks read', tokenizer.encode(byHand, { parseSpecialTokens: true }), []],
  ['marks that became text', tokenizer.encode(byHand), ['stop preflight/marks-as-text']],
  ['the beginning twice', [mark!, ...right], ['stop preflight/double-bos']],
  ['no beginning of the model’s turn', tokenizer.applyChatTemplate(chat), ['warn preflight/no-generation-prompt']],
  ['no beginning', right.slice(1), ['warn preflight/no-bos']],
  ['plain text', tokenizer.encode('Two and two?'), ['note preflight/plain-prompts']],
])('%s', (_, prompt, expected) => {
  const findings = templateFindings([right, prompt], tokenizer);
  expect(findings.map(({ level, name }) => `${level} ${name}`)).toEqual(expected);
  for (const { seen } of findings) expect(seen).toMatch(/^1 of 2 prompts /);
});

it('without a chat template plain text is right', () => {
  const plain = characterTokenizer();
  expect(templateFindings([plain.encode('3=')], plain)).toEqual([]);
});
