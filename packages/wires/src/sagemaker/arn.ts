/** ARNs of this wire, and the mapping between package ARNs and the registry's version ids. */
import { complaint, type VersionId } from '@loopwright/protocol';
import { describeValue } from '../checks.js';
import { publicHub, selfHosted } from './defaults.js';

/** Where ARNs say that a resource lives. */
export interface ArnScope {
  readonly partition: string;
  /** 9–16 characters of a-z, 0-9 and hyphens. */
  readonly region: string;
  /** Twelve digits. */
  readonly account: string;
}

/** The two directions between the registry and the wire. */
export interface ArnMap {
  readonly toArn: (version: VersionId) => string;
  /** @throws `invalid_argument` naming `field` when it is not the ARN of a numbered package */
  readonly toVersion: (arn: unknown, field: string) => VersionId;
}

const packageArn =
  /^arn:aws[a-z-]*:sagemaker:[a-z0-9-]{9,16}:[0-9]{12}:model-package\/([^\s/]{1,2000})\/([1-9][0-9]{0,8})$/;
const groupArn = /^arn:aws[a-z-]*:sagemaker:[a-z0-9-]{9,16}:[0-9]{12}:model-package-group\/(\S{1,2000})$/;
const hubArn =
  /^arn:[a-z0-9-.]{1,63}:sagemaker:[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)+:(?:[0-9]{12}|aws):hub-content\/([a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62})\/Model\/([a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,63})(?:\/([0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}))?$/;

function prefix({ partition, region, account }: ArnScope): string {
  return `arn:${partition}:sagemaker:${region}:${account}`;
}

export interface PackageRef {
  readonly group: string;
  /** From 1. */
  readonly version: number;
}

/** Version ids are `<group>/<number>`, what follows `model-package/` in the ARN. */
export function versionId({ group, version }: PackageRef): VersionId {
  return `${group}/${version}`;
}

/** @throws `invalid_argument` for an id that is not `<group>/<number>` */
export function parseVersionId(id: VersionId): PackageRef {
  const slash = id.lastIndexOf('/');
  const version = Number(id.slice(slash + 1));
  if (slash < 1 || !Number.isInteger(version) || version < 1) {
    throw complaint({ field: 'version', expected: 'a version id `<group>/<number>`', got: describeValue(id) });
  }
  return { group: id.slice(0, slash), version };
}

export function parsePackageArn(arn: unknown, field: string): PackageRef {
  const match = typeof arn === 'string' && arn.length <= 2048 ? packageArn.exec(arn) : null;
  if (match === null) {
    throw complaint({
      field,
      expected: 'the ARN of a numbered package, arn:aws:sagemaker:<region>:<account>:model-package/<group>/<number>',
      got: typeof arn === 'string' && groupArn.test(arn) ? 'the ARN of a group' : describeValue(arn),
    });
  }
  return { group: match[1]!, version: Number(match[2]) };
}

/** The pair that codecs take. Region and account are written as in `scope` and not compared when read. */
export function arnMap(scope: ArnScope = selfHosted): ArnMap {
  return {
    toArn: (version) => `${prefix(scope)}:model-package/${version}`,
    toVersion: (arn, field) => versionId(parsePackageArn(arn, field)),
  };
}

export function sessionArn(name: string, scope: ArnScope = selfHosted): string {
  return `${prefix(scope)}:training-session/${name}`;
}

/** The summaries of a listing carry no name: it is cut out of the ARN. Names pass through. */
export function sessionNameOf(nameOrArn: string): string {
  return nameOrArn.slice(nameOrArn.lastIndexOf('/') + 1);
}

export function modelPackageGroupArn(group: string, scope: ArnScope = selfHosted): string {
  return `${prefix(scope)}:model-package-group/${group}`;
}

/** Name of a group given by name or ARN. */
export function groupNameOf(nameOrArn: string): string {
  return groupArn.exec(nameOrArn)?.[1] ?? nameOrArn;
}

export interface HubContentRef {
  readonly hub: string;
  readonly name: string;
  readonly version?: string;
}

export function hubContentArn({ name, version }: Omit<HubContentRef, 'hub'>, scope: ArnScope = selfHosted): string {
  const base = `arn:${scope.partition}:sagemaker:${scope.region}:aws:hub-content/${publicHub}/Model/${name}`;
  return version === undefined ? base : `${base}/${version}`;
}

export function modelHubArn(scope: ArnScope = selfHosted): string {
  return `arn:${scope.partition}:sagemaker:${scope.region}:aws:hub/${publicHub}`;
}

/** @throws `invalid_argument` naming `field` */
export function parseHubContentArn(arn: unknown, field: string): HubContentRef {
  const match = typeof arn === 'string' && arn.length <= 2048 ? hubArn.exec(arn) : null;
  if (match === null) {
    throw complaint({
      field,
      expected: 'the ARN of a hub model, …:hub-content/<hub>/Model/<name>',
      got: describeValue(arn),
    });
  }
  return { hub: match[1]!, name: match[2]!, ...(match[3] === undefined ? {} : { version: match[3] }) };
}

/** A model id as a hub content name (letters, digits, hyphens; 64 at most): `Org/Some_Model-1.5` → `Org-Some-Model-1-5`. */
export function hubContentName(modelId: string): string {
  const name = modelId.replace(/[^a-zA-Z0-9]+/g, '-').replace(/^-+/, '');
  return name.slice(0, 64).replace(/-+$/, '');
}
