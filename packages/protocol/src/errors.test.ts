import { describe, expect, it } from 'vitest';
import { complaint, type ErrorCode, errorCatalogue } from './errors.js';
import { adamRanges } from './optimizer.js';
import { samplingRanges } from './sampling.js';

describe('a refusal', () => {
  const refuse = (field: string, code?: ErrorCode) =>
    complaint({ field, expected: 'this', got: 'that', ...(code === undefined ? {} : { code }) });

  // true: the keys of the catalogue
  it.each(Object.keys(errorCatalogue) as ErrorCode[])('%s says what to do, whoever made it', (code) => {
    const { details, message } = refuse('field', code);
    expect(details).toEqual({ field: 'field', expected: 'this', got: 'that', remedy: errorCatalogue[code].remedy });
    expect(message).toBe(`field: expected this, got that; ${errorCatalogue[code].remedy}`);
  });

  it.each([...Object.keys(adamRanges), ...Object.keys(samplingRanges), 'rank', 'alpha', 'weights', 'clipLowThreshold'])(
    'of %s advises on that field',
    (field) => {
      expect(refuse(field).details.remedy).not.toBe(errorCatalogue.invalid_argument.remedy);
      expect(refuse(`options.${field}`).details.remedy).toBe(refuse(field).details.remedy);
    },
  );

  it.each([
    ['operationConfig.sample.samplingParams.topP', 'topP'],
    ['LoraConfig.Rank', 'rank'],
    ['datumList[3].lossFnInputs.target_tokens.data[7]', 'targetTokens'],
    ['data[0].modelInput', 'modelInput'],
  ])('finds the advice on %s by the name of %s', (path, name) => {
    expect(refuse(path).details.remedy).toBe(refuse(name).details.remedy);
  });

  it('keeps a remedy of its own, and the words that a wire promises', () => {
    const error = complaint({ field: 'rank', expected: '1', got: '0', remedy: 'give 1', message: 'as promised' });
    expect(error.details.remedy).toBe('give 1');
    expect(error.message).toBe('as promised');
  });

  it('of a file, or with another code, gets no advice that is meant for options', () => {
    expect(refuse('rank', 'model_invalid').details.remedy).toBe(errorCatalogue.model_invalid.remedy);
    expect(refuse('constructor').details.remedy).toBe(errorCatalogue.invalid_argument.remedy);
  });
});
