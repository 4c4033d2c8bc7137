/** What the hub refuses, in the words of this product: every status with what to do. */
import { complaint, LoopwrightError } from '@loopwright/protocol';
import type { RepositoryKind } from './repository-kind.js';
import { StallError } from './stall-guard.js';

/** What was asked for. */
export interface Question {
  readonly repository: string;
  readonly revision: string;
  readonly file?: string;
}

interface AskedQuestion extends Question {
  readonly kind: RepositoryKind;
  readonly endpoint: string;
  readonly hasToken: boolean;
}

/** The hub says in this header what its status is about. */
const reasonHeader = 'x-error-code';

/** An answer that is no success. */
export function refusal({ status, headers }: Response, question: AskedQuestion): LoopwrightError {
  const { repository, revision, file, kind, endpoint, hasToken } = question;
  const reason = headers.get(reasonHeader) ?? '';
  const isDenied = status === 401 || status === 403;
  if (isDenied && reason === 'GatedRepo') return gated(question);
  // Without a token, the hub doesn't tell what is private from what isn't there.
  const isPrivateOrMissing = status === 401 && (!hasToken || reason === 'RepoNotFound');
  if (isDenied && !isPrivateOrMissing) {
    return complaint({
      code: 'unauthenticated',
      field: 'HF_TOKEN',
      expected: `a token that may read ${repository}`,
      got: `HTTP ${status}${hasToken ? '' : ', without a token'}`,
      remedy: `make a token with read access at ${endpoint}/settings/tokens, and set HF_TOKEN to it`,
    });
  }
  if (status === 404 && reason === 'RevisionNotFound') {
    return complaint({
      code: kind.unknown,
      field: 'revision',
      expected: `a branch, tag or commit of ${repository}`,
      got: revision,
      remedy: `see ${endpoint}/${kind.page}${repository}/tree/main for what there is`,
    });
  }
  if (status === 404 && file !== undefined) {
    return complaint({
      code: kind.invalid,
      field: file,
      expected: `a file of ${repository} at ${revision}`,
      got: 'HTTP 404',
      remedy: 'pull again; if that does not help, the repository is broken',
    });
  }
  if (status === 404 || isPrivateOrMissing) {
    return complaint({
      code: kind.unknown,
      field: 'name',
      expected: `a ${kind.noun} of ${endpoint}`,
      got: repository,
      remedy: hasToken
        ? 'check the name, and that HF_TOKEN may read it'
        : `check the name; for a private ${kind.noun} set HF_TOKEN`,
    });
  }
  if (status === 429) return tooMany(headers.get('retry-after'), endpoint);
  return complaint({
    code: 'connection_lost',
    field: 'HF_ENDPOINT',
    expected: `an answer of ${endpoint}`,
    got: `HTTP ${status}`,
    remedy: 'pull again later: what was downloaded is kept',
  });
}

/** A model or data set that is given out only under its licence. */
export function gated({
  repository,
  kind,
  endpoint,
}: Pick<AskedQuestion, 'repository' | 'kind' | 'endpoint'>): LoopwrightError {
  return complaint({
    code: 'model_gated',
    field: repository,
    expected: 'that its licence was accepted, and access granted',
    got: 'neither, as far as is known here',
    remedy:
      `read the licence at ${endpoint}/${kind.page}${repository} and ask for access there, set HF_TOKEN to a token of that account, ` +
      `then run \`${kind.pull} ${repository} --accept-license\``,
  });
}

/** A connection that failed, or ended early. */
export function connectionLost(cause: unknown): LoopwrightError {
  return complaint({
    code: 'connection_lost',
    field: 'HF_ENDPOINT',
    expected: 'an answer to its end',
    got: cause instanceof StallError ? cause.message : (systemCode(cause) ?? 'a connection that ended'),
    remedy: 'check the network, proxies and HF_ENDPOINT, then pull again: what was downloaded is kept',
    cause,
  });
}

/** An answer that no hub gives. */
export function notAHub({ noun, invalid }: RepositoryKind, got: string, cause?: unknown): LoopwrightError {
  return complaint({
    code: invalid,
    field: 'HF_ENDPOINT',
    expected: `the answers of a hub of ${noun}s`,
    got,
    remedy: `check that HF_ENDPOINT is a hub of ${noun}s, and no page of a proxy`,
    cause,
  });
}

function tooMany(retryAfter: string | null, endpoint: string): LoopwrightError {
  const seconds = Number(retryAfter ?? Number.NaN);
  const details = { field: 'HF_ENDPOINT', expected: 'fewer requests', got: 'HTTP 429' };
  const remedy = 'wait, then pull again; with HF_TOKEN the hub allows more';
  return new LoopwrightError({
    code: 'limit_exceeded',
    message: `${endpoint} answers HTTP 429; ${remedy}`,
    details: { ...details, remedy, ...(Number.isFinite(seconds) ? { retryAfterMs: seconds * 1000 } : {}) },
  });
}

/** Such as `ECONNREFUSED`, of an error or of what caused it. */
function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? code : systemCode(error.cause);
}
