/** Routes of samplers and what they are asked for. */
import { decodeSampleRequest, type JsonObject } from '@loopwright/wires/tinker';
import type { Context } from 'hono';
import type { App, RouteEnv } from '../routes/context.js';
import { baseModelName } from './names.js';
import { tinkerPrefix } from './paths.js';
import { readObject } from './read-object.js';
import type { TinkerService } from './service.js';

export function samplingRoutes(app: App, { samplers }: TinkerService): void {
  const post = (path: string, handle: (body: JsonObject, c: Context<RouteEnv>) => Promise<JsonObject>) =>
    app.post(`${tinkerPrefix}/${path}`, async (c) => c.json(await handle(await readObject(c), c)));

  post('create_sampling_session', async ({ session_id, sampling_session_seq_id, base_model, model_path }) => ({
    type: 'create_sampling_session',
    sampling_session_id: await samplers.create({
      sessionId: session_id,
      number: Number(sampling_session_seq_id),
      baseModel: typeof base_model === 'string' ? base_model : undefined,
      modelPath: typeof model_path === 'string' ? model_path : undefined,
    }),
  }));
  post('join_sampling_session', async ({ sampling_session_id: id }) => ({
    type: 'join_sampling_session',
    client_counter: await samplers.join(String(id)),
  }));
  app.get(`${tinkerPrefix}/samplers/:id`, async (c) => {
    const { id, base_model, model_path } = await samplers.get(c.req.param('id'));
    const path = model_path === null ? {} : { model_path };
    return c.json({ sampler_id: id, base_model: baseModelName(base_model), ...path });
  });
  post('asample', async (body, c) => {
    const request = decodeSampleRequest(body);
    const { id } = await samplers.sample(request);
    c.var.ids.operationId = id;
    return {
      request_id: id,
      sample_sequence_ids: Array.from({ length: request.numSamples }, (_, index) => `${id}-${index}`),
    };
  });
}
