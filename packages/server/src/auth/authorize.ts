/** Who may call: whoever has the key, sent as a bearer or signed with, or nobody in particular on the loopback address. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import { type SignedRequest, signatureFault } from './signature.js';

/** What an Authorization header claims. */
export type Credentials =
  | { readonly scheme: 'none' }
  | { readonly scheme: 'bearer'; readonly key: string }
  | { readonly scheme: 'sigv4' }
  | { readonly scheme: 'other' };

export function parseAuthorization(header: string | undefined): Credentials {
  if (header === undefined || header === '') return { scheme: 'none' };
  const bearer = /^Bearer +(\S+) *$/i.exec(header);
  if (bearer !== null) return { scheme: 'bearer', key: bearer[1]! };
  if (header.startsWith('AWS4-HMAC-SHA256 ')) return { scheme: 'sigv4' };
  return { scheme: 'other' };
}

export interface Authorizer {
  /** @throws `unauthenticated`; `payload_too_large` for a signed body above the limit */
  check(request: SignedRequest): Promise<void>;
}

/**
 * With a key: whoever sends it, or signs with it. Without one: whoever is on this machine, which web pages from elsewhere are not, although the
 * browser that shows them is: those are told by their Origin, or (after a change of their name's address) by the Host they ask for.
 *
 * @param now milliseconds since the epoch, against which the dates of signatures are held
 */
export function authorizer(apiKey: string | undefined, now: () => number = Date.now): Authorizer {
  if (apiKey === undefined) return { check: async ({ headers }) => checkLocal(headers) };
  const expected = digest(apiKey);
  return {
    check: async (request) => {
      const own = request.headers['x-api-key'];
      // The SDK of the Tinker wire takes only keys that begin with tml-, which may stand before any key.
      const credentials: Credentials =
        own === undefined
          ? parseAuthorization(request.headers.authorization)
          : { scheme: 'bearer', key: own === apiKey ? own : own.replace(/^tml-/, '') };
      if (credentials.scheme === 'sigv4') {
        const fault = await signatureFault(request, { secret: apiKey, nowMs: now() });
        if (fault !== undefined) throw refused(fault);
        return;
      }
      if (credentials.scheme === 'bearer' && timingSafeEqual(digest(credentials.key), expected)) return;
      throw own === undefined ? refused(got[credentials.scheme]) : refusedTinker();
    },
  };
}

function checkLocal({ host, origin }: SignedRequest['headers']): void {
  const claims = { Host: host === undefined ? undefined : `http://${host}`, Origin: origin };
  for (const [field, url] of Object.entries(claims)) {
    if (url === undefined || isLoopback(hostnameOf(url))) continue;
    throw complaint({
      code: 'unauthenticated',
      field,
      expected: 'an address of this machine, since this server has no key',
      got: url === '' ? 'an empty one' : url.slice(0, 200),
      remedy: 'start the server with an API key, and send it',
    });
  }
}

function hostnameOf(url: string): string {
  try {
    return new URL(url).hostname.replace(/^\[|\]$/g, '');
  } catch {
    return '';
  }
}

/** Equal lengths for the comparison, whose time then tells nothing. */
function digest(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

const got: Record<Exclude<Credentials['scheme'], 'sigv4'>, string> = {
  none: 'no Authorization header',
  bearer: 'another key',
  other: 'another scheme',
};

function refused(fault: string): LoopwrightError {
  return complaint({
    code: 'unauthenticated',
    field: 'Authorization',
    expected: 'Bearer and the key of this server, or a signature made with it as secret',
    got: fault,
    remedy: 'give the client the key that the server was started with',
  });
}

/** That header is what the Tinker SDK sends, whose user set a variable and no header. */
function refusedTinker(): LoopwrightError {
  return complaint({
    code: 'unauthenticated',
    field: 'X-API-Key',
    expected: 'tml- and the key of this server',
    got: 'another key',
    remedy: 'set TINKER_API_KEY to tml- and the key that the server was started with',
  });
}

/** Whether a host name or address only reaches this machine. */
export function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1') return true;
  return isIP(host) === 4 && host.startsWith('127.');
}

/** @throws `invalid_argument`: without a key a server listens on the loopback address only, and a key is printable and long enough */
export function checkExposure({ host, apiKey }: { readonly host: string; readonly apiKey: string | undefined }): void {
  if (apiKey === undefined && !isLoopback(host)) {
    throw complaint({
      field: 'host',
      expected: 'a loopback address, since no key is set',
      got: host,
      remedy: 'set an API key, or listen on 127.0.0.1',
    });
  }
  if (apiKey !== undefined && !/^[\x21-\x7e]{8,256}$/.test(apiKey)) {
    throw complaint({
      field: 'apiKey',
      expected: '8 to 256 printable characters without spaces',
      got: `${apiKey.length} characters`,
    });
  }
}
