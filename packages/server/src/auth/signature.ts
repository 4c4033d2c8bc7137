/** Verifies AWS Signature Version 4: the signature of a request is computed again with the key of this server and compared. */
import { createHash, createHmac, type Hash, type Hmac, timingSafeEqual } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';

/** Whether whoever sends a body has shown by then that they have the key. */
export type Sender = 'proven' | 'unproven';

/** A request as it came, before anything of it is believed. */
export interface SignedRequest {
  readonly method: string;
  /** Whole, as it was asked for. */
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Read only when everything that can be told from the headers is in order. */
  body(sender: Sender): Promise<Uint8Array>;
}

/** What a SigV4 Authorization header says. */
export interface SignatureHeader {
  /** Day of the key's scope, `YYYYMMDD`. */
  readonly day: string;
  readonly region: string;
  readonly service: string;
  /** Names in lower case. */
  readonly signedHeaders: readonly string[];
  /** 64 hexadecimal digits. */
  readonly signature: string;
}

export interface SignatureRules {
  /** The secret access key. The access key id is a label: it proves nothing. */
  readonly secret: string;
  readonly nowMs: number;
}

/** How far the clock of a client may be off, and how long a captured request could be sent again. */
export const maxClockSkewMs: number = 5 * 60_000;

/** The signing name of both planes. */
const signingName = 'sagemaker';

const headerPattern =
  /^AWS4-HMAC-SHA256 +Credential=[^/,\s]{1,256}\/(\d{8})\/([a-z0-9-]{1,64})\/([a-z0-9-]{1,64})\/aws4_request, *SignedHeaders=([a-z0-9;_-]{1,4096}), *Signature=([0-9a-f]{64})$/;

export function parseSignature(authorization: string): SignatureHeader | undefined {
  if (authorization.length > 8192) return undefined;
  const parts = headerPattern.exec(authorization);
  if (parts === null) return undefined;
  const [, day, region, service, names, signature] = parts as unknown as [
    string,
    string,
    string,
    string,
    string,
    string,
  ]; // true: the pattern has five groups, none optional
  return { day, region, service, signedHeaders: names.split(';'), signature };
}

/** Why a signed request is refused, in words for `got`; undefined when it is in order. */
export async function signatureFault(request: SignedRequest, rules: SignatureRules): Promise<string | undefined> {
  const parsed = parseSignature(request.headers.authorization ?? '');
  if (parsed === undefined) return 'a signature (AWS4-HMAC-SHA256) that is not well-formed';
  if (parsed.service !== signingName) return 'a signature for another service';
  const long = request.headers['x-amz-date'];
  const time = timeOf(long);
  if (long === undefined || time === undefined) return 'a signature without X-Amz-Date';
  if (long.slice(0, 8) !== parsed.day) return 'a signature whose scope is of another day than X-Amz-Date';
  if (Math.abs(rules.nowMs - time) > maxClockSkewMs) {
    return `a signature made ${Math.round(Math.abs(rules.nowMs - time) / 1000)} s ${time < rules.nowMs ? 'ago' : 'ahead'}`;
  }
  const unsigned = unsignedHeader(request, parsed.signedHeaders);
  if (unsigned !== undefined) return `a signature that does not cover the header ${unsigned}`;
  const claimed = request.headers['x-amz-content-sha256'];
  if (claimed !== undefined && !/^[0-9a-f]{64}$/.test(claimed)) return 'an X-Amz-Content-SHA256 that is no SHA-256';
  const isSigned = async (hash: string) => {
    const expected = await signatureOf(request, parsed, { hash, secret: rules.secret, time });
    return timingSafeEqual(Buffer.from(expected, 'hex'), Buffer.from(parsed.signature, 'hex'));
  };
  const anotherKey = 'a signature made with another key, or for another request';
  // A request that says the hash of its body has proven who sends it before the body is read.
  if (claimed !== undefined && !(await isSigned(claimed))) return anotherKey;
  const hash = createHash('sha256')
    .update(await request.body(claimed === undefined ? 'unproven' : 'proven'))
    .digest('hex');
  // Without this, a body could be exchanged under a hash that was signed.
  if (claimed !== undefined) return claimed === hash ? undefined : 'a body that is not the one that was signed';
  return (await isSigned(hash)) ? undefined : anotherKey;
}

/** `20261202T140000Z` in milliseconds since the epoch. */
function timeOf(date: string | undefined): number | undefined {
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date ?? '');
  if (parts === null) return undefined;
  const [, year, month, day, hour, minute, second] = parts;
  const time = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(time) ? undefined : time;
}

/** What decides where a request goes and what it does has to be signed: the host and every `x-amz-` header. */
function unsignedHeader({ headers }: SignedRequest, signed: readonly string[]): string | undefined {
  const needed = ['host', ...Object.keys(headers).filter((name) => name.startsWith('x-amz-'))];
  return needed.find((name) => !signed.includes(name)) ?? signed.find((name) => headers[name] === undefined);
}

async function signatureOf(
  { method, url, headers }: SignedRequest,
  { region, service, signedHeaders }: SignatureHeader,
  { hash, secret, time }: { readonly hash: string; readonly secret: string; readonly time: number },
): Promise<string> {
  const { protocol, hostname, pathname, searchParams } = new URL(url);
  const signer = new SignatureV4({
    service,
    region,
    credentials: { accessKeyId: 'any', secretAccessKey: secret },
    sha256: Sha256,
    applyChecksum: false,
  });
  const query: Record<string, string[]> = {};
  for (const name of searchParams.keys()) query[name] = searchParams.getAll(name);
  const signed = await signer.sign(
    {
      method,
      protocol,
      hostname,
      path: pathname,
      query,
      // The signer takes the hash of the body from this header, which it signs only where the client did.
      headers: {
        ...Object.fromEntries(signedHeaders.map((name) => [name, headers[name] ?? ''])),
        'x-amz-content-sha256': hash,
      },
    },
    {
      signingDate: new Date(time),
      signableHeaders: new Set(signedHeaders),
      unsignableHeaders: new Set(signedHeaders.includes('x-amz-content-sha256') ? [] : ['x-amz-content-sha256']),
    },
  );
  return parseSignature(signed.headers.authorization ?? '')?.signature ?? '0'.repeat(64);
}

/** SHA-256, or its HMAC when there is a secret, as the signer wants it. */
export class Sha256 {
  readonly #secret: Secret | undefined;
  #hash: Hash | Hmac;

  constructor(secret?: Secret) {
    this.#secret = secret;
    this.#hash = start(secret);
  }

  update(chunk: Uint8Array): void {
    this.#hash.update(chunk);
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {
    this.#hash = start(this.#secret);
  }
}

type Secret = string | ArrayBuffer | ArrayBufferView;

function start(secret: Secret | undefined): Hash | Hmac {
  if (secret === undefined) return createHash('sha256');
  if (typeof secret === 'string') return createHmac('sha256', secret);
  return createHmac(
    'sha256',
    ArrayBuffer.isView(secret)
      ? new Uint8Array(secret.buffer, secret.byteOffset, secret.byteLength)
      : new Uint8Array(secret),
  );
}
