/** Base models and their tokenizers, as the server's hub tells them; asked once per client. */
import { LoopwrightError } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import { type HubDocument, modelFilePath, parseJson, publicHub } from '@loopwright/wires/sagemaker';
import { untilAborted } from './clock.js';
import type { CallOptions, Transport } from './transport.js';

export interface BaseModel {
  /** For CreateTrainingSession. */
  readonly arn: string;
  /** Id of the model hub, under which the tokenizer files lie. */
  readonly id: string;
}

const idKeyword = '@huggingface-id:';

export class Catalog {
  readonly #transport: Transport;
  readonly #models = new Map<string, Promise<BaseModel>>();
  readonly #tokenizers = new Map<string, Promise<Tokenizer>>();

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Ids of the base models, sorted. */
  async list({ signal }: CallOptions): Promise<string[]> {
    const ids: string[] = [];
    let next: string | undefined;
    do {
      const page = await this.#transport.control(
        'ListHubContents',
        { HubName: publicHub, HubContentType: 'Model', ...(next === undefined ? {} : { NextToken: next }) },
        { signal },
      );
      for (const { HubContentName, HubContentSearchKeywords: keywords } of page.HubContentSummaries) {
        ids.push(keywords.find((keyword) => keyword.startsWith(idKeyword))?.slice(idKeyword.length) ?? HubContentName);
      }
      next = page.NextToken;
    } while (next !== undefined);
    return ids.sort();
  }

  /** By id, hub name or path. @throws `unknown_model` */
  find(name: string, { signal }: CallOptions = {}): Promise<BaseModel> {
    const model = once(this.#models, name, async () => {
      const content = await this.#transport.control('DescribeHubContent', {
        HubName: publicHub,
        HubContentType: 'Model',
        HubContentName: name,
      });
      const document = parseJson(content.HubContentDocument, 'HubContentDocument') as Partial<HubDocument>; // checked below
      return { arn: content.HubContentArn, id: document.HuggingfaceId ?? content.HubContentName };
    });
    return untilAborted(model, signal);
  }

  /** @throws `unknown_model`, `not_found` when the server has no tokenizer for it, `model_invalid` */
  tokenizer(name: string, { signal }: CallOptions = {}): Promise<Tokenizer> {
    const tokenizer = once(this.#tokenizers, name, async () => {
      const { id } = await this.find(name);
      // Loaded when asked for: a bundle that never tokenizes stays small.
      const [{ loadTokenizer }, tokenizerJson, ...rest] = await Promise.all([
        import('@loopwright/text'),
        this.#file(id, 'tokenizer.json'),
        this.#optionalFile(id, 'tokenizer_config.json'),
        this.#optionalFile(id, 'chat_template.jinja'),
        this.#optionalFile(id, 'generation_config.json'),
      ]);
      const [tokenizerConfigJson, chatTemplate, generationConfigJson] = rest;
      return loadTokenizer({
        tokenizerJson,
        ...(tokenizerConfigJson === undefined ? {} : { tokenizerConfigJson }),
        ...(chatTemplate === undefined ? {} : { chatTemplate }),
        ...(generationConfigJson === undefined ? {} : { generationConfigJson }),
      });
    });
    return untilAborted(tokenizer, signal);
  }

  #file(id: string, file: string): Promise<string> {
    return this.#transport.text({ method: 'GET', path: modelFilePath(id, file) });
  }

  async #optionalFile(id: string, file: string): Promise<string | undefined> {
    try {
      return await this.#file(id, file);
    } catch (error) {
      if (LoopwrightError.isInstance(error) && error.status === 404) return undefined;
      throw error;
    }
  }
}

/** The one promise per key; a failure is forgotten, so that the next call tries again. */
function once<T>(cache: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
  const known = cache.get(key);
  if (known !== undefined) return known;
  const made = make();
  cache.set(key, made);
  made.catch(() => cache.delete(key));
  return made;
}
