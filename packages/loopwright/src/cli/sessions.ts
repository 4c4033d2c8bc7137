/** `loopwright sessions`: the sessions of a running server. */
import { ServiceClient } from '@loopwright/client';
import type { CommandContext } from './context.js';
import { formatTable, timeText } from './text.js';

export interface ServerAddress {
  readonly url?: string;
  readonly apiKey?: string;
}

/** Where `loopwright serve` listens unless told otherwise. */
const defaultUrl = 'http://127.0.0.1:8080';

/** The client of a running server. */
export function serviceOf({ url, apiKey }: ServerAddress, { settings }: CommandContext): ServiceClient {
  const key = apiKey ?? settings.apiKey;
  return new ServiceClient({
    baseUrl: url ?? settings.url ?? defaultUrl,
    ...(key === undefined ? {} : { apiKey: key }),
  });
}

export async function listCommand(address: ServerAddress, context: CommandContext): Promise<void> {
  const { console } = context;
  const service = serviceOf(address, context);
  const sessions = (await service.listSessions()).toSorted((a, b) => a.createdAtMs - b.createdAtMs);
  for (const session of sessions) console.event({ type: 'session', ...session });
  if (sessions.length === 0) {
    console.line(`No sessions at ${service.baseUrl}.`);
    return;
  }
  const rows = sessions.map(({ name, status, createdAtMs }) => [name, status, timeText(createdAtMs)]);
  for (const line of formatTable(['session', 'status', 'created'], rows)) console.line(line);
}

export async function stopCommand(name: string, address: ServerAddress, context: CommandContext): Promise<void> {
  await serviceOf(address, context).stopSession(name);
  context.console.event({ type: 'stopped', name });
  context.console.line(`Stopped ${name}. Its saved versions stay.`);
}

export async function deleteCommand(
  name: string,
  { stop = false, ...address }: ServerAddress & { readonly stop?: boolean },
  context: CommandContext,
): Promise<void> {
  await serviceOf(address, context).deleteSession(name, { stopIfActive: stop });
  context.console.event({ type: 'deleted', name });
  context.console.line(`Deleted ${name}. Its saved versions stay.`);
}
