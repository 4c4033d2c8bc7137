/** Routes of models: made, trained, saved, loaded, unloaded. Each submission is answered with the id of its future. */
import { asLoopwrightError, type LoopwrightError, type TrainingOperation } from '@loopwright/protocol';
import {
  decodeAdam,
  decodeLoad,
  decodeNewModel,
  decodePassJson,
  decodePassProto,
  decodeSave,
  decodeTurn,
  encodeWeightsInfo,
  type JsonObject,
  type ModelTurn,
  type PassRequest,
  parseSavePath,
  type SaveKind,
} from '@loopwright/wires/tinker';
import type { Context } from 'hono';
import type { App, RouteEnv } from '../routes/context.js';
import { modelFuture, refusalFuture, unloadFuture } from './futures.js';
import type { ModelPlace } from './models.js';
import { baseModelName, sessionNameOf } from './names.js';
import { tinkerPrefix } from './paths.js';
import { readObject } from './read-object.js';
import type { TinkerService } from './service.js';

export function trainingRoutes(app: App, tinker: TinkerService): void {
  const { models, saves, samplers, service } = tinker;
  const post = (path: string, handle: (body: JsonObject, c: Context<RouteEnv>) => Promise<JsonObject>) =>
    app.post(`${tinkerPrefix}/${path}`, async (c) => c.json(await handle(await readObject(c), c)));

  post('create_model', async (body, c) => {
    const id = await models.create(decodeNewModel(body));
    c.var.ids.model = id;
    return { request_id: modelFuture(id), model_id: id };
  });
  post('unload_model', async ({ model_id: id }) => {
    const { name } = await service.session(sessionNameOf(id));
    tinker.unload(name);
    return { request_id: unloadFuture(String(id)), model_id: id };
  });
  post('get_info', async ({ model_id: id }, c) => {
    const { session, training } = await models.get(id);
    const { baseModel } = session.spec;
    const name = baseModelName(baseModel);
    const [arch, tokenizer] = [await tinker.architecture(baseModel), await tinker.tokenizerId(baseModel, c)];
    return {
      type: 'get_info',
      model_id: id,
      model_data: { arch, model_name: name, tokenizer_id: tokenizer },
      is_lora: training.type === 'lora',
      lora_rank: training.type === 'lora' ? training.rank : null,
      model_name: name,
    };
  });

  const submit = ({ session, sequenceNumber }: ModelPlace, operation: TrainingOperation) =>
    service.submitTraining(session, { sequenceNumber }, operation);
  /** Submits an operation of a model. A refusal of its content uses its number up, so that what is behind it goes on. */
  const take = async (turn: ModelTurn, work: (place: ModelPlace) => Promise<{ readonly id: string }>) => {
    const place = await models.place(turn);
    const { modelId } = turn;
    try {
      return { request_id: (await work(place)).id, model_id: modelId };
    } catch (error) {
      const known = asLoopwrightError(error);
      const isTaken = isNameTaken(known);
      if (isTaken || known.code === 'invalid_argument' || known.code === 'unknown_version') {
        await service.spend(place.session, place.sequenceNumber);
      }
      // It fails the save and not its submission, which the SDK would repeat for minutes.
      if (isTaken) return { request_id: refusalFuture(known), model_id: modelId };
      throw error;
    }
  };

  const pass = (request: PassRequest) => take(request, async (place) => submit(place, request.operation()));
  app.post(`${tinkerPrefix}/forward_backward`, async (c) => {
    const isProto = (c.req.header('content-type') ?? '').includes('x-protobuf');
    const request = isProto
      ? decodePassProto(await tinker.passBytes(c))
      : decodePassJson(await readObject(c), { forwardOnly: false });
    return c.json(await pass(request));
  });
  post('forward', (body) => pass(decodePassJson(body, { forwardOnly: true })));
  post('optim_step', (body) =>
    take(decodeTurn(body), async (place) => submit(place, { type: 'optim-step', adam: decodeAdam(body) })),
  );

  const save = (kind: SaveKind) => (body: JsonObject) =>
    take(decodeTurn(body), async (place) => {
      const request = decodeSave(body, kind);
      const { name } = request;
      return name === undefined ? samplers.save(request, place) : saves.save({ ...request, name }, place);
    });
  post('save_weights', save('weights'));
  post('save_weights_for_sampler', save('sampler_weights'));
  post('save_weights_external', save('external_weights'));
  post('load_weights', async (body) => {
    const request = decodeLoad(body);
    if (request.type === 'create') {
      const id = await models.createFrom(request);
      return { request_id: modelFuture(id), model_id: id };
    }
    return take(request, async (place) => {
      const version = (await saves.resolve(request.path)).id;
      return submit(place, { type: 'load-state', version, loadOptimizer: request.optimizer });
    });
  });
  post('weights_info', async ({ tinker_path: path }) => {
    const version = await saves.resolve(parseSavePath(path, 'tinker_path'));
    return encodeWeightsInfo(baseModelName(version.baseModel), version.training);
  });
}

function isNameTaken({ code, details }: LoopwrightError): boolean {
  return code === 'sequence_conflict' && details.field === 'path';
}
