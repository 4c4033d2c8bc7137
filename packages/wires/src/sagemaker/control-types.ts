/** Responses of the control plane, as they stand on the wire. Times are seconds since 1970. */
import type {
  ApprovalStatus,
  SamplerPath,
  SessionStatus,
  TargetModule,
  VersionKind,
  WireError,
} from '@loopwright/protocol';
import type { ControlRequest } from './control-schemas.js';
import type { ControlAction } from './routes.js';

type Create = ControlRequest<'CreateTrainingSession'>;

export interface BillableTokenUsage {
  readonly PrefillTokenCount: number;
  readonly SampleTokenCount: number;
  readonly TrainingTokenCount: number;
}

export interface TrainingSessionDetail
  extends Partial<
    Pick<
      Create,
      | 'RoleArn'
      | 'LoraConfig'
      | 'ModelConfig'
      | 'OutputConfig'
      | 'ModelPackageGroupArn'
      | 'VpcConfig'
      | 'Tags'
      | 'Loopwright'
    >
  > {
  readonly TrainingSessionArn: string;
  readonly TrainingSessionName: string;
  readonly TrainingSessionStatus: SessionStatus;
  readonly CreationTime: number;
  readonly LastModifiedTime?: number;
  readonly EndTime?: number;
  /** 1024 characters at most; filled for failed and blocked sessions. */
  readonly ErrorDetails?: string;
  /** The same with code and details, where the server is ours. */
  readonly LoopwrightError?: WireError;
  readonly LastReceivedSequenceNumber?: number;
  readonly BillableTokenUsage?: BillableTokenUsage;
}

export interface TrainingSessionSummary {
  readonly TrainingSessionArn: string;
  readonly TrainingSessionStatus: SessionStatus;
  readonly CreationTime: number;
  readonly LastModifiedTime?: number;
}

export interface HubContentSummary {
  readonly HubContentName: string;
  readonly HubContentArn: string;
  readonly HubContentVersion: string;
  readonly HubContentType: 'Model';
  readonly DocumentSchemaVersion: string;
  readonly HubContentStatus: 'Available';
  readonly CreationTime: number;
  /** `@capability:training_session` marks models that sessions can train; `@huggingface-id:<id>` gives the id. */
  readonly HubContentSearchKeywords: readonly string[];
}

export interface HubContent extends Omit<HubContentSummary, 'HubContentSearchKeywords'> {
  readonly HubName: string;
  readonly HubArn: string;
  /** JSON text, see {@link HubDocument}. */
  readonly HubContentDocument: string;
  readonly HubContentSearchKeywords?: readonly string[];
}

/** What `HubContentDocument` holds. */
export interface HubDocument {
  /** `org/name`, under which the model-hub routes serve the tokenizer files. */
  readonly HuggingfaceId: string;
}

export interface ModelPackageSummary {
  readonly ModelPackageArn: string;
  readonly ModelPackageGroupName: string;
  readonly ModelPackageVersion: number;
  readonly CreationTime: number;
  readonly ModelPackageStatus: 'Completed' | 'InProgress' | 'Failed' | 'Deleting';
  readonly ModelPackageDescription?: string;
  /** Other servers may leave it out here. */
  readonly ModelApprovalStatus?: ApprovalStatus;
  readonly Loopwright?: ModelPackageExtension;
}

/** What the published API has no member for; absent in answers of other servers, where DescribeModelPackage tells the kind. */
export interface ModelPackageExtension {
  /** `state` can be resumed, `weights` can be sampled from. */
  readonly Kind: 'state' | 'weights';
  /** As the registry calls it: tells a whole merged model from an adapter alone. */
  readonly VersionKind?: VersionKind;
  readonly SessionName?: string;
  /** Of an ephemeral version alone: seconds since 1970. */
  readonly ExpirationTime?: number;
  /** What was trained, so that a resume can ask for the same: the members of CreateTrainingSession. */
  readonly TrainingType?: 'lora' | 'full';
  readonly Rank?: number;
  readonly Alpha?: number;
  readonly TargetModules?: readonly TargetModule[];
  readonly SamplerPath?: SamplerPath;
}

export interface ModelPackage extends ModelPackageSummary {
  /** Name of the group: the API calls it so. */
  readonly ModelPackageName: string;
  readonly ModelPackageStatusDetails: { readonly ValidationStatuses: readonly [] };
  readonly ModelApprovalStatus: ApprovalStatus;
  readonly ApprovalDescription?: string;
  /** What is known of the version, in the JSON form of a model card: figures are its evaluation details. */
  readonly ModelCard?: {
    readonly ModelCardContent: string;
    readonly ModelCardStatus: 'Draft' | 'Approved' | 'PendingReview';
  };
  readonly InferenceSpecification: {
    readonly Containers: readonly [
      {
        /** True marks a saved state, false saved weights. */
        readonly IsCheckpoint: boolean;
        readonly BaseModel: { readonly HubContentName: string; readonly HubContentVersion: string };
        readonly ModelDataSource: {
          readonly S3DataSource: {
            readonly S3Uri: string;
            readonly S3DataType: 'S3Prefix';
            readonly CompressionType: 'None';
          };
        };
      },
    ];
  };
}

export interface ModelPackageGroup {
  readonly ModelPackageGroupArn: string;
  readonly ModelPackageGroupName?: string;
  readonly ModelPackageGroupDescription?: string;
  readonly CreationTime?: number;
  readonly ModelPackageGroupStatus?: 'Completed';
}

export interface Tag {
  readonly Key: string;
  readonly Value: string;
}

/** Responses by action. */
export interface ControlResponses {
  CreateTrainingSession: { readonly TrainingSessionArn: string };
  DescribeTrainingSession: { readonly TrainingSessionDetail: TrainingSessionDetail };
  ListTrainingSessions: {
    readonly TrainingSessionSummaries: readonly TrainingSessionSummary[];
    readonly NextToken?: string;
  };
  StopTrainingSession: Record<string, never>;
  DeleteTrainingSession: Record<string, never>;
  ListHubContents: { readonly HubContentSummaries: readonly HubContentSummary[]; readonly NextToken?: string };
  DescribeHubContent: HubContent;
  CreateModelPackageGroup: ModelPackageGroup;
  DescribeModelPackageGroup: ModelPackageGroup;
  ListModelPackageGroups: {
    readonly ModelPackageGroupSummaryList: readonly ModelPackageGroup[];
    readonly NextToken?: string;
  };
  ListModelPackages: { readonly ModelPackageSummaryList: readonly ModelPackageSummary[]; readonly NextToken?: string };
  DescribeModelPackage: ModelPackage;
  UpdateModelPackage: { readonly ModelPackageArn: string };
  DeleteModelPackage: Record<string, never>;
  AddTags: { readonly Tags: readonly Tag[] };
  ListTags: { readonly Tags: readonly Tag[] };
  DeleteTags: Record<string, never>;
}

export type ControlResponse<A extends ControlAction> = ControlResponses[A];
