/** What a path that is no route is told: of a wire that is off, or of a base URL that is cut off or too long, it says so. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import type { WireName } from '@loopwright/wires';
import { openaiPaths, openaiResource } from '@loopwright/wires/openai';
import { tinkerPrefix } from '../tinker/paths.js';

export interface NoRouteOptions {
  readonly method: string;
  readonly path: string;
  /** Those that are on. */
  readonly wires: readonly WireName[];
}

export function noRoute({ method, path, wires }: NoRouteOptions): LoopwrightError {
  const remedy = remedyFor(path, wires);
  return complaint({
    code: 'not_found',
    field: 'path',
    expected: 'a route of this server',
    got: `${method} ${path.slice(0, 200)}`,
    ...(remedy === undefined ? {} : { remedy }),
  });
}

function remedyFor(path: string, wires: readonly WireName[]): string | undefined {
  const off = (wire: WireName): string | undefined =>
    wires.includes(wire)
      ? undefined
      : `this server was started without the ${wire} wire: start it with loopwright serve --wires ${[...wires, wire].join(',')}`;
  if (path.includes(`${tinkerPrefix}/`)) {
    const isPlain = path.startsWith(`${tinkerPrefix}/`) && path.lastIndexOf(tinkerPrefix) === 0;
    return (
      off('tinker') ??
      (isPlain ? undefined : 'TINKER_BASE_URL is the address alone, http://HOST:PORT, without a path behind it')
    );
  }
  if (path === '/' || path.includes('/training-sessions/')) return off('sagemaker');
  const resource = openaiResource(path);
  if (resource === undefined) return undefined;
  const known = Object.values<string>(openaiPaths);
  if (!known.includes(`/v1/${resource}`)) {
    const instead = resource === 'responses' ? '; in the AI SDK take a chat model, such as provider.chatModel(id)' : '';
    return `of OpenAI's API this server has ${known.join(', ')}${instead}`;
  }
  if (path === `/v1/${resource}` && wires.includes('openai')) return 'take POST, as its API has it';
  return off('openai') ?? 'the base URL ends in /v1, and in nothing else: http://HOST:PORT/v1';
}
