/** Routes that clients of this wire know and this server has nothing for: each says so, and what to do instead. */
import { complaint } from '@loopwright/protocol';
import { usagePath } from '@loopwright/wires/loopwright';
import type { App } from '../routes/context.js';
import { tinkerPrefix } from './paths.js';

/** Path, what is asked for there, and what to do instead. */
const refused = [
  ['audit', 'a record of what the members of an organisation did', "the server's log has its requests"],
  ['billing/*', 'bills', `GET ${usagePath} has the tokens that were used`],
  ['sessions/search', 'a search of sessions', 'list_sessions() has them all, newest first'],
  ['sessions/:id/trace_export', 'a trace of a session as a file', 'get_session() has its runs and samplers'],
  ['copy_weights', 'a copy of saved weights', 'create_training_client_from_state() makes another run of them'],
  ['create_custom_loss', 'a loss that the server runs', 'forward_backward_custom() computes it in the client'],
] as const;

export function refusedRoutes(app: App): void {
  for (const [path, got, remedy] of refused) {
    app.all(`${tinkerPrefix}/${path}`, () => {
      throw complaint({
        ...{ code: 'not_found', field: 'path', expected: 'what this server offers' },
        ...{ got: `${path}, which is ${got}`, remedy },
      });
    });
  }
}
