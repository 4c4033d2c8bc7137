/** CreateTrainingSession ⇄ what a session is made of. */
import { defaultTargetModules, type SessionSpec, type TrainingSpec } from '@loopwright/protocol';
import { type HubContentRef, parseHubContentArn } from './arn.js';
import type { ControlRequest } from './control-schemas.js';
import { placeholders } from './defaults.js';

export type CreateTrainingSessionRequest = ControlRequest<'CreateTrainingSession'>;

/** A session as the wire asks for it: the server resolves the model and draws the seed where none is given. */
export interface SessionRequest {
  readonly name: string;
  readonly baseModel: HubContentRef;
  readonly training: TrainingSpec;
  readonly seed: number | undefined;
  readonly workspace: string | undefined;
  readonly description: string | undefined;
  readonly modelPackageGroupArn: string | undefined;
}

export function sessionRequest(request: CreateTrainingSessionRequest): SessionRequest {
  const { Loopwright: extension = {}, LoraConfig } = request;
  const lora: TrainingSpec = {
    type: 'lora',
    rank: LoraConfig.Rank,
    alpha: LoraConfig.Alpha,
    targetModules: extension.TargetModules ?? defaultTargetModules,
    ...(extension.SamplerPath === undefined ? {} : { samplerPath: extension.SamplerPath }),
  };
  return {
    name: request.TrainingSessionName,
    baseModel: parseHubContentArn(request.ModelConfig.BaseModelArn, 'ModelConfig.BaseModelArn'),
    training: extension.TrainingType === 'full' ? { type: 'full' } : lora,
    seed: extension.Seed,
    workspace: extension.Workspace,
    description: extension.Description,
    modelPackageGroupArn: request.ModelPackageGroupArn,
  };
}

export interface NewSession {
  readonly name: string;
  readonly baseModelArn: string;
  readonly training: TrainingSpec;
  readonly seed?: number;
  readonly description?: string;
  readonly modelPackageGroupArn?: string;
  readonly clientToken?: string;
}

/** The request of our client: members that a server of one's own does not use carry the placeholders of `defaults.ts`. */
export function encodeCreateTrainingSession(session: NewSession): CreateTrainingSessionRequest {
  const { training } = session;
  return {
    TrainingSessionName: session.name,
    RoleArn: placeholders.RoleArn,
    OutputConfig: placeholders.OutputConfig,
    ModelConfig: { BaseModelArn: session.baseModelArn },
    LoraConfig: training.type === 'lora' ? { Rank: training.rank, Alpha: training.alpha } : placeholders.LoraConfig,
    ...(session.modelPackageGroupArn === undefined ? {} : { ModelPackageGroupArn: session.modelPackageGroupArn }),
    Loopwright: {
      TrainingType: training.type,
      ...(training.type === 'lora' ? { TargetModules: [...training.targetModules] } : {}),
      ...(training.type === 'lora' && training.samplerPath !== undefined ? { SamplerPath: training.samplerPath } : {}),
      ...(session.seed === undefined ? {} : { Seed: session.seed }),
      ...(session.description === undefined ? {} : { Description: session.description }),
      ...(session.clientToken === undefined ? {} : { ClientToken: session.clientToken }),
    },
  };
}

/** The spec of a session once model and seed are settled. */
export function sessionSpec(
  request: SessionRequest,
  resolved: { readonly baseModel: string; readonly seed: number },
): SessionSpec {
  return { name: request.name, training: request.training, ...resolved };
}
