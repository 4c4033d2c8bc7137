/** Who may call: bearer keys, or nobody in particular on the loopback address. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import { complaint, type LoopwrightError } from '@loopwright/protocol';

/** What an Authorization header claims. Only bearer keys are accepted today; signatures are told apart so that the refusal can say so. */
export type Credentials =
  | { readonly scheme: 'none' }
  | { readonly scheme: 'bearer'; readonly key: string }
  | { readonly scheme: 'sigv4'; readonly accessKeyId: string }
  | { readonly scheme: 'other' };

export function parseAuthorization(header: string | undefined): Credentials {
  if (header === undefined || header === '') return { scheme: 'none' };
  const bearer = /^Bearer +(\S+) *$/i.exec(header);
  if (bearer !== null) return { scheme: 'bearer', key: bearer[1]! };
  const signed = /^AWS4-HMAC-SHA256 .*\bCredential=([^/,\s]{1,256})\//.exec(header);
  if (signed !== null) return { scheme: 'sigv4', accessKeyId: signed[1]! };
  return { scheme: 'other' };
}

/** The headers that a decision rests on. */
export interface Claims {
  readonly authorization?: string | undefined;
  readonly host?: string | undefined;
  readonly origin?: string | undefined;
}

export interface Authorizer {
  /** @throws `unauthenticated` */
  check(claims: Claims): void;
}

/**
 * With a key: whoever sends it. Without one: whoever is on this machine, which web pages from elsewhere are not, although the
 * browser that shows them is: those are told by their Origin, or (after a change of their name's address) by the Host they ask for.
 */
export function authorizer(apiKey: string | undefined): Authorizer {
  if (apiKey === undefined) return { check: checkLocal };
  const expected = digest(apiKey);
  return {
    check: ({ authorization }) => {
      const credentials = parseAuthorization(authorization);
      if (credentials.scheme === 'bearer' && timingSafeEqual(digest(credentials.key), expected)) return;
      throw refused(credentials);
    },
  };
}

function checkLocal({ host, origin }: Claims): void {
  const claims = { Host: host === undefined ? undefined : `http://${host}`, Origin: origin };
  for (const [field, url] of Object.entries(claims)) {
    if (url === undefined || isLoopback(hostnameOf(url))) continue;
    throw complaint({
      code: 'unauthenticated',
      field,
      expected: 'an address of this machine, since this server has no key',
      got: url.slice(0, 200),
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

const got: Record<Credentials['scheme'], string> = {
  none: 'no Authorization header',
  bearer: 'another key',
  sigv4: 'a signature (AWS4-HMAC-SHA256), which this server does not take',
  other: 'another scheme',
};

function refused({ scheme }: Credentials): LoopwrightError {
  return complaint({
    code: 'unauthenticated',
    field: 'Authorization',
    expected: 'Bearer and the key of this server',
    got: got[scheme],
    remedy: 'give the client the key that the server was started with',
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
