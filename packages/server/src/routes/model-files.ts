/** Tokenizer files of installed models under the routes of a model hub, so that tokenizer libraries can fetch them here. */
import { createHash } from 'node:crypto';
import type { ModelFiles } from '@loopwright/engine';
import { complaint } from '@loopwright/protocol';
import type { InstalledModel } from '../models/model-registry.js';
import type { App } from './context.js';
import type { HubNames } from './hub-names.js';

/** Nothing else is served: no weights, nothing below, nothing above. */
const servedFiles: readonly string[] = [
  'config.json',
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'special_tokens_map.json',
  'added_tokens.json',
  'vocab.json',
  'merges.txt',
  'tokenizer.model',
  'chat_template.jinja',
  'chat_template.json',
];

/** The one revision: files of an installed model do not change. */
const revisionLength = 40;

interface HubFile {
  readonly path: string;
  readonly size: number;
  readonly etag: string;
}

export function modelFiles(app: App, hub: HubNames): void {
  const refusal = complaint({
    code: 'not_found',
    field: 'path',
    expected: 'a model of this server, and a file of its tokenizer or its config',
    got: 'another',
  });
  /** Tokenizer libraries go by the header. */
  const missing = () => Response.json(refusal.toJSON(), { status: 404, headers: { 'x-error-code': 'EntryNotFound' } });
  const find = async (name: string): Promise<InstalledModel | undefined> => {
    try {
      const model = await hub.find(name);
      return name.startsWith('/') ? undefined : model;
    } catch {
      return undefined;
    }
  };

  for (const id of [':org/:model', ':model']) {
    const nameOf = ({ org, model = '' }: Readonly<Record<string, string>>) =>
      org === undefined ? model : `${org}/${model}`;

    app.get(`/api/models/${id}`, async (c) => {
      const model = await find(nameOf(c.req.param()));
      if (model === undefined) return missing();
      const siblings = (await listFiles(await hub.files(model))).map(({ path }) => ({ rfilename: path }));
      return c.json({ id: model.id, modelId: model.id, sha: revisionOf(model), private: false, siblings });
    });

    const tree = async (name: string, below: string): Promise<Response> => {
      const model = await find(name);
      if (model === undefined || below !== '') return missing();
      const files = await listFiles(await hub.files(model));
      return Response.json(files.map(({ path, size, etag }) => ({ type: 'file', path, size, oid: etag })));
    };
    app.get(`/api/models/${id}/tree/:revision`, async (c) => tree(nameOf(c.req.param()), ''));
    app.get(`/api/models/${id}/tree/:revision/:below{.+}`, async (c) =>
      tree(nameOf(c.req.param()), c.req.param('below')),
    );

    app.on(['GET', 'HEAD'], `/${id}/resolve/:revision/:file`, async (c) => {
      const model = await find(nameOf(c.req.param()));
      const file = c.req.param('file');
      if (model === undefined || !servedFiles.includes(file)) return missing();
      const bytes = await (await hub.files(model)).read(file);
      if (bytes === undefined) return missing();
      return new Response(c.req.method === 'HEAD' ? null : new Uint8Array(bytes), {
        headers: {
          'content-type': file.endsWith('.json') ? 'application/json' : 'application/octet-stream',
          'content-length': String(bytes.byteLength),
          etag: `"${etagOf(bytes)}"`,
          'x-repo-commit': revisionOf(model),
        },
      });
    });
  }
}

async function listFiles(files: ModelFiles): Promise<HubFile[]> {
  const found = await Promise.all(
    servedFiles.map(async (path): Promise<HubFile | undefined> => {
      // What can't be read says so when it is asked for; here it is left out.
      const bytes = await files.read(path).catch(() => undefined);
      return bytes === undefined ? undefined : { path, size: bytes.length, etag: etagOf(bytes) };
    }),
  );
  return found.filter((file) => file !== undefined);
}

function revisionOf({ id, directory }: InstalledModel): string {
  return createHash('sha256').update(`${id}\n${directory}`).digest('hex').slice(0, revisionLength);
}

function etagOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, revisionLength);
}
