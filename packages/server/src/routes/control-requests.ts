/** What requests and answers of the control plane have in common. */

/** Entries of a page where the request names no number. */
const defaultPage = 100;

export function pageOf(request: { readonly MaxResults?: number | undefined; readonly NextToken?: string | undefined }) {
  const limit = request.MaxResults ?? defaultPage;
  return request.NextToken === undefined ? { limit } : { limit, after: request.NextToken };
}

export function seconds(ms: number): number {
  return ms / 1000;
}
