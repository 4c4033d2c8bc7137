/** What is asked of a server about a version: one that it doesn't have may lie in a data directory that it isn't of. */
import type { ServiceClient } from '@loopwright/client';
import { dataDirsIn, withPlaces } from '../../data-dirs.js';
import type { CommandContext } from '../context.js';
import { type ServerAddress, serviceOf } from '../sessions.js';

/** @throws what `ask` throws; an unknown version with the server that was asked, and the data directories of this machine */
export async function atServer<T>(
  address: ServerAddress,
  context: CommandContext,
  ask: (service: ServiceClient) => Promise<T>,
): Promise<T> {
  const service = serviceOf(address, context);
  try {
    return await ask(service);
  } catch (error) {
    throw withPlaces(error, { in: service.baseUrl, others: await dataDirsIn(context.settings.home) });
  }
}
