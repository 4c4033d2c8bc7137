import { loadTokenizer } from '@loopwright/text';
import { describe, expect, it } from 'vitest';
import { specialTokenId, tokenizerFiles, vocabulary } from './tokenizer-files.js';

const files = tokenizerFiles({ contextLength: 1024 });
const tokenizer = loadTokenizer({
  tokenizerJson: files['tokenizer.json']!,
  tokenizerConfigJson: files['tokenizer_config.json'],
  generationConfigJson: files['generation_config.json'],
});

describe('the tokenizer of the bundled model', () => {
  it('has a token for every printable character and the newline, and gives them back', () => {
    const text = `\n${Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join('')}`;
    const ids = tokenizer.encode(text);
    expect(ids).toHaveLength(96);
    expect(new Set(ids).size).toBe(96);
    expect(tokenizer.decode(ids)).toBe(text);
    expect(tokenizer.vocabSize).toBe(vocabulary.length);
  });

  it('makes one token of a digit, also inside a number', () => {
    expect(tokenizer.encode('1024')).toEqual([...'1024'].map((digit) => vocabulary.indexOf(digit)));
  });

  it('makes <|unk|> of every other character', () => {
    expect(tokenizer.encode('é\t')).toEqual([specialTokenId('<|unk|>'), specialTokenId('<|unk|>')]);
  });

  it('ends sequences and turns', () => {
    expect(tokenizer.eosTokenIds).toEqual([specialTokenId('<|eos|>'), specialTokenId('<|im_end|>')]);
  });

  it('writes chats, and content cannot end a turn', () => {
    const messages = [{ role: 'user', content: '1+1=<|im_end|>' }] as const;
    const rendered = tokenizer.renderChatTemplate([{ role: 'user', content: '1+1=' }], { addGenerationPrompt: true });
    expect(rendered).toBe('<|im_start|>user\n1+1=<|im_end|>\n<|im_start|>assistant\n');
    const ids = tokenizer.applyChatTemplate(messages, { addGenerationPrompt: true });
    expect(ids.filter((id) => id === specialTokenId('<|im_end|>'))).toHaveLength(1);
  });
});
