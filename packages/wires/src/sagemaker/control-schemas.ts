/** Request schemas of the control plane, for servers: patterns and ranges of the published API, and our `Loopwright` member. */
import { approvalStatuses, samplerPaths, sessionStatuses, targetModules } from '@loopwright/protocol';
import * as z from 'zod';
import { schemaRefusal } from '../schema-refusal.js';
import type { ControlAction } from './routes.js';
import { seedRange } from './sampling-operation.js';

/** A string whose length is checked first, so that no pattern ever runs over a long one. */
function text({ min = 0, max, pattern }: { readonly min?: number; readonly max: number; readonly pattern: RegExp }) {
  return z.string().min(min, { abort: true }).max(max, { abort: true }).regex(pattern);
}

const namePattern = /^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$/;
const sessionName = text({ max: 63, pattern: namePattern });
const groupName = text({ max: 63, pattern: namePattern });
const roleArn = text({
  min: 20,
  max: 2048,
  pattern: /^arn:aws[a-z-]*:iam::\d{12}:role\/?[a-zA-Z_0-9+=,.@\-_/]+$/,
});
const groupArn = text({
  max: 2048,
  pattern: /^arn:aws[a-z-]*:sagemaker:[a-z0-9-]{9,16}:[0-9]{12}:model-package-group\/\S{1,2048}$/,
});
const packageArn = text({
  max: 2048,
  pattern: /^arn:aws[a-z-]*:sagemaker:[a-z0-9-]{9,16}:[0-9]{12}:model-package\/\S{1,2048}$/,
});
const hubModelArn = text({
  max: 2048,
  pattern:
    /^(arn:[a-z0-9-.]{1,63}:sagemaker:[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)+:([0-9]{12}|aws):hub-content\/)[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}\/Model\/[a-zA-Z0-9](-*[a-zA-Z0-9]){0,63}(\/[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4})?$/,
});
const kmsKeyArn = text({
  max: 2048,
  pattern: /^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key\/(mrk-)?[a-f0-9-]+$/,
});
const networkId = text({ max: 32, pattern: /^[-0-9a-zA-Z]+$/ });
const tagPattern = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$/u;
const taggedArn = z.union([packageArn, groupArn]);
const tags = z
  .array(
    z.object({ Key: text({ min: 1, max: 128, pattern: tagPattern }), Value: text({ max: 256, pattern: tagPattern }) }),
  )
  .max(50, { abort: true });
const vpcConfig = z.object({
  SecurityGroupIds: z.array(networkId).min(1).max(5),
  Subnets: z.array(networkId).min(1).max(16),
});
const outputConfig = z.object({
  S3Location: z.object({
    Path: text({ min: 1, max: 1024, pattern: /^(https|s3):\/\/([^/]+)\/?(.*)$/ }),
    KmsKeyArn: kmsKeyArn.optional(),
  }),
});
/** Seconds since 1970; clients may send ISO text instead. */
const timestamp = z.union([z.number(), z.iso.datetime({ offset: true }).transform((text) => Date.parse(text) / 1000)]);
const page = { MaxResults: z.int().min(1).max(100).optional(), NextToken: z.string().max(8192).optional() };
const sortOrder = z.enum(['Ascending', 'Descending']).optional();

/** What the published API has no member for. Unknown keys are refused. */
const extension = z.strictObject({
  /** `full` trains every weight; `LoraConfig` is then a placeholder. */
  TrainingType: z.enum(['lora', 'full']).optional(),
  TargetModules: z.array(z.enum(targetModules)).min(1).optional(),
  /** How versions of the adapter are sampled from. */
  SamplerPath: z.enum(samplerPaths).optional(),
  /** Initialisation of the adapter. */
  Seed: z.int().min(seedRange.min).max(seedRange.max).optional(),
  Workspace: z.string().min(1).max(64).optional(),
  /** Free text shown in listings. */
  Description: z.string().max(1024).optional(),
  /** Of the caller's: a creation that comes again with it, since its answer was lost, finds the session that it made. */
  ClientToken: text({ min: 1, max: 128, pattern: /^[a-zA-Z0-9-]+$/ }).optional(),
});

const sessionRef = z.object({ TrainingSessionName: sessionName });
const hubName = z.string().min(1).max(200);

/** One schema per action; members that the API has and we don't read are dropped. */
export const controlSchemas = {
  CreateTrainingSession: z.object({
    TrainingSessionName: sessionName,
    RoleArn: roleArn,
    LoraConfig: z.object({ Rank: z.int().min(1).max(256), Alpha: z.int().min(1) }),
    ModelConfig: z.object({ BaseModelArn: hubModelArn, AcceptEula: z.boolean().optional() }),
    OutputConfig: outputConfig,
    ModelPackageGroupArn: groupArn.optional(),
    VpcConfig: vpcConfig.optional(),
    Tags: tags.optional(),
    Loopwright: extension.optional(),
  }),
  DescribeTrainingSession: sessionRef,
  ListTrainingSessions: z.object({
    CreationTimeAfter: timestamp.optional(),
    CreationTimeBefore: timestamp.optional(),
    NameContains: text({ max: 63, pattern: /^[a-zA-Z0-9-]*$/ }).optional(),
    StatusEquals: z.enum(sessionStatuses).optional(),
    ...page,
  }),
  StopTrainingSession: sessionRef,
  DeleteTrainingSession: sessionRef,
  ListHubContents: z.object({
    HubName: hubName,
    HubContentType: z.literal('Model'),
    NameContains: z.string().max(63).optional(),
    ...page,
  }),
  /** `HubContentName` also takes a model id or the path of a directory, so that a client needs no listing to find an ARN. */
  DescribeHubContent: z.object({
    HubName: hubName,
    HubContentType: z.literal('Model'),
    HubContentName: z.string().min(1).max(1024),
    HubContentVersion: z.string().max(14).optional(),
  }),
  CreateModelPackageGroup: z.object({
    ModelPackageGroupName: groupName,
    ModelPackageGroupDescription: z.string().max(1024).optional(),
    Tags: tags.optional(),
  }),
  DescribeModelPackageGroup: z.object({ ModelPackageGroupName: z.union([groupName, groupArn]) }),
  ListModelPackageGroups: z.object({
    CreationTimeAfter: timestamp.optional(),
    CreationTimeBefore: timestamp.optional(),
    NameContains: text({ max: 63, pattern: /^[a-zA-Z0-9-]*$/ }).optional(),
    SortBy: z.enum(['Name', 'CreationTime']).optional(),
    SortOrder: sortOrder,
    ...page,
  }),
  ListModelPackages: z.object({
    ModelPackageGroupName: z.union([groupName, groupArn]).optional(),
    ModelApprovalStatus: z.enum(approvalStatuses).optional(),
    CreationTimeAfter: timestamp.optional(),
    CreationTimeBefore: timestamp.optional(),
    SortBy: z.enum(['Name', 'CreationTime']).optional(),
    SortOrder: sortOrder,
    ...page,
  }),
  DescribeModelPackage: z.object({ ModelPackageName: packageArn }),
  /** Members that the API has and we could not keep are refused: an update that changed nothing would be worse. */
  UpdateModelPackage: z.strictObject({
    ModelPackageArn: packageArn,
    ModelApprovalStatus: z.enum(approvalStatuses).optional(),
    ApprovalDescription: z.string().max(1024).optional(),
    ClientToken: z.string().max(36).optional(),
  }),
  DeleteModelPackage: z.object({ ModelPackageName: packageArn }),
  AddTags: z.object({ ResourceArn: taggedArn, Tags: tags }),
  ListTags: z.object({
    ResourceArn: taggedArn,
    MaxResults: z.int().min(1).optional(),
    NextToken: z.string().optional(),
  }),
  DeleteTags: z.object({
    ResourceArn: taggedArn,
    TagKeys: z
      .array(text({ min: 1, max: 128, pattern: tagPattern }))
      .min(1)
      .max(50),
  }),
} as const satisfies Record<ControlAction, z.ZodType>;

/** The request of an action after the checks: extensions included, defaults not filled in. */
export type ControlRequest<A extends ControlAction> = z.output<(typeof controlSchemas)[A]>;

/**
 * Checks the request of an action.
 *
 * @throws `invalid_argument` naming the member by its wire path, such as `LoraConfig.Rank`
 */
export function decodeControlRequest<A extends ControlAction>(action: A, body: unknown): ControlRequest<A> {
  const checked = controlSchemas[action].safeParse(body ?? {});
  if (!checked.success) throw schemaRefusal(checked.error, body);
  return checked.data as ControlRequest<A>; // true: the output of the schema picked by the same action
}
