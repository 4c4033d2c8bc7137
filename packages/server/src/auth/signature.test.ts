import { createHash } from 'node:crypto';
import { LoopwrightError } from '@loopwright/protocol';
import { SignatureV4 } from '@smithy/signature-v4';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { authorizer } from './authorize.js';
import { maxClockSkewMs, parseSignature, Sha256, type SignedRequest } from './signature.js';

const key = 'a-secret-key';
const signedAt = Date.UTC(2026, 11, 2, 12, 0, 0);

/** Recorded from botocore 1.44.8, whose access key id and secret were both the key. */
const recorded = {
  post: {
    method: 'POST',
    url: 'http://127.0.0.1:8080/',
    headers: {
      'x-amz-target': 'SageMaker.ListTrainingSessions',
      'content-type': 'application/x-amz-json-1.1',
      'x-amz-date': '20261202T120000Z',
      authorization:
        'AWS4-HMAC-SHA256 Credential=a-secret-key/20261202/us-west-2/sagemaker/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=abc9c0a4ed021c0f702615b039c25c0878d55d30f2fe3980ac446a2836e26a8f',
      host: '127.0.0.1:8080',
    },
    body: '{"MaxResults": 1}',
  },
  get: {
    method: 'GET',
    url: 'http://127.0.0.1:8080/v1/training-sessions/a-b/operations/x%20y%2Fz',
    headers: {
      'x-amz-date': '20261202T120000Z',
      authorization:
        'AWS4-HMAC-SHA256 Credential=a-secret-key/20261202/us-west-2/sagemaker/aws4_request, SignedHeaders=host;x-amz-date, Signature=81dd4275646ee13fa508539ff00e8dbe77dc34fb6f5e878923c5ccb66d6b3e00',
      host: '127.0.0.1:8080',
    },
    body: '',
  },
  query: {
    method: 'GET',
    url: 'http://127.0.0.1:8080/v1/models?b=2&a=%C3%A4%20%2B&a=1',
    headers: {
      'x-amz-date': '20261202T120000Z',
      authorization:
        'AWS4-HMAC-SHA256 Credential=a-secret-key/20261202/us-west-2/sagemaker/aws4_request, SignedHeaders=host;x-amz-date, Signature=bfe6a0509f7ff18722824a37964664afb922ddb5f514c8604baa3407f1995756',
      host: '127.0.0.1:8080',
    },
    body: '',
  },
  unicode: {
    method: 'POST',
    url: 'http://127.0.0.1:8080/v1/training-sessions/s/operations',
    headers: {
      'content-type': 'application/json',
      'x-loopwright-wait-seconds': ' 2   3 ',
      'x-amz-date': '20261202T120000Z',
      authorization:
        'AWS4-HMAC-SHA256 Credential=a-secret-key/20261202/us-west-2/sagemaker/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-loopwright-wait-seconds, Signature=343c3a10dc00f5c8e3a7b06e38430ccb113e5c44d3afcd3eb72d2ea0343275ab',
      host: '127.0.0.1:8080',
    },
    body: '{"text": "ä 中"}',
  },
};

interface Recorded {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

function requestOf({ method, url, headers, body }: Recorded): SignedRequest {
  return { method, url, headers, body: async () => Buffer.from(body) };
}

/** A request whose signature covers the hash of its body. */
async function namingItsHash(body: string): Promise<SignedRequest> {
  const hash = createHash('sha256').update(body).digest('hex');
  const signer = new SignatureV4({
    service: 'sagemaker',
    region: 'us-west-2',
    credentials: { accessKeyId: 'label', secretAccessKey: key },
    sha256: Sha256,
    applyChecksum: false,
  });
  const { method, url } = recorded.post;
  const named = { host: '127.0.0.1:8080', 'x-amz-content-sha256': hash };
  const address = { protocol: 'http:', hostname: '127.0.0.1', path: '/', query: {} };
  const { headers } = await signer.sign(
    { method, ...address, headers: named, body },
    { signingDate: new Date(signedAt) },
  );
  return requestOf({ method, url, headers, body });
}

async function refusal(
  request: SignedRequest,
  { at = signedAt, secret = key }: { readonly at?: number; readonly secret?: string } = {},
): Promise<string | undefined> {
  try {
    await authorizer(secret, () => at).check(request);
    return undefined;
  } catch (error) {
    if (!LoopwrightError.isInstance(error)) throw error;
    expect(error.code).toBe('unauthenticated');
    expect(error.message).not.toContain(key);
    return String(error.details.got);
  }
}

describe('a request signed by botocore', () => {
  it.each(Object.entries<Recorded>(recorded))('is let in: %s', async (_, request) => {
    expect(await refusal(requestOf(request))).toBeUndefined();
  });

  it.each(Object.entries<Recorded>(recorded))('is refused where the key is another: %s', async (_, request) => {
    expect(await refusal(requestOf(request), { secret: 'another-secret-key' })).toContain('another key');
  });

  it('is refused once a byte of its body is another', async () => {
    const request = { ...requestOf(recorded.post), body: async () => Buffer.from(`${recorded.post.body} `) };
    expect(await refusal(request)).toContain('another request');
  });

  it.each([
    ['method', { method: 'DELETE' }],
    ['path', { url: recorded.post.url.replace('8080/', '8080/other') }],
    ['query', { url: `${recorded.post.url}?a=1` }],
    ['host', { headers: { ...recorded.post.headers, host: 'elsewhere:8080' } }],
    ['action', { headers: { ...recorded.post.headers, 'x-amz-target': 'SageMaker.DeleteTrainingSession' } }],
  ])('is refused once its %s is another', async (_, change) => {
    expect(await refusal({ ...requestOf(recorded.post), ...change })).toContain('another request');
  });

  it('is refused when it has become stale, or comes from the future, and not a moment before', async () => {
    const request = requestOf(recorded.post);
    expect(await refusal(request, { at: signedAt + maxClockSkewMs })).toBeUndefined();
    expect(await refusal(request, { at: signedAt - maxClockSkewMs })).toBeUndefined();
    expect(await refusal(request, { at: signedAt + maxClockSkewMs + 1000 })).toBe('a signature made 301 s ago');
    expect(await refusal(request, { at: signedAt - maxClockSkewMs - 1000 })).toBe('a signature made 301 s ahead');
  });

  it('is refused with a header that it does not cover but that decides what is done', async () => {
    const headers = { ...recorded.get.headers, 'x-amz-target': 'SageMaker.DeleteTrainingSession' };
    expect(await refusal({ ...requestOf(recorded.get), headers })).toContain('x-amz-target');
  });

  it('is refused when its body is exchanged under a hash that was signed, and let in when it is not', async () => {
    const request = await namingItsHash('{}');
    expect(await refusal(request)).toBeUndefined();
    expect(await refusal({ ...request, body: async () => Buffer.from('[]') })).toContain('not the one that was signed');
  });

  it('has its body read only after the signature was checked where it names the hash, else as one that has proven nothing', async () => {
    const senders: string[] = [];
    const body = async (sender: string) => {
      senders.push(sender);
      return Buffer.from('{}');
    };
    const named = await namingItsHash('{}');
    expect(await refusal({ ...named, body })).toBeUndefined();
    expect(await refusal({ ...named, body }, { secret: 'another-secret-key' })).toContain('another key');
    expect(await refusal({ ...requestOf(recorded.post), body })).toContain('another request');
    expect(senders).toEqual(['proven', 'unproven']);
  });

  it('is refused with a hash that is none', async () => {
    const headers = { ...recorded.post.headers, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' };
    headers.authorization = headers.authorization.replace('host;', 'host;x-amz-content-sha256;');
    expect(await refusal({ ...requestOf(recorded.post), headers })).toContain('no SHA-256');
  });

  it.each([
    ['another service', recorded.post.headers.authorization.replace('/sagemaker/', '/s3/')],
    ['another day', recorded.post.headers.authorization.replace('/20261202/', '/20261201/')],
    ['not well-formed', recorded.post.headers.authorization.slice(0, -1)],
  ])('is refused with a scope of its own making: %s', async (why, authorization) => {
    const headers = { ...recorded.post.headers, authorization };
    expect(await refusal({ ...requestOf(recorded.post), headers })).toContain(why);
  });

  it('has its body read only when the headers are in order', async () => {
    const body = () => Promise.reject(new Error('read'));
    expect(await refusal({ ...requestOf(recorded.post), body }, { at: signedAt + 3_600_000 })).toContain('ago');
  });
});

/** Blanks and the access key id, which is a label, are not part of what is signed. */
function meaning(header: string): string {
  return header.replace(/Credential=[^/]*/, '').replace(/\s+/g, '');
}

it('any change of the Authorization header or the date is refused in words', async () => {
  const { post } = recorded;
  const changed = fc.record({
    name: fc.constantFrom('authorization', 'x-amz-date', 'host', 'x-amz-target', 'content-type'),
    at: fc.nat({ max: 300 }),
    length: fc.nat({ max: 300 }),
    text: fc.string({ maxLength: 20 }),
  });
  await fc.assert(
    fc.asyncProperty(changed, async ({ name, at, length, text }) => {
      const before = Reflect.get(post.headers, name) as string; // true: every one of these is there
      const value = before.slice(0, at) + text + before.slice(at + length);
      fc.pre(meaning(value) !== meaning(before));
      expect(await refusal({ ...requestOf(post), headers: { ...post.headers, [name]: value } })).toEqual(
        expect.any(String),
      );
    }),
    { numRuns: 500, seed: 1 },
  );
});

it('a very long Authorization header is no signature', () => {
  expect(parseSignature(`AWS4-HMAC-SHA256 Credential=${'a'.repeat(100_000)}`)).toBeUndefined();
});
