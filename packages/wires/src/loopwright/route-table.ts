/** Every route of our own wire: what it takes and what it answers. The OpenAPI document is made of this, and nothing is said twice. */
import type * as z from 'zod';
import * as answers from './answer-schemas.js';
import { registryPaths } from './registry.js';
import * as requests from './request-schemas.js';
import { healthPath, modelsPath, openApiPath, tracePath } from './routes.js';
import { usagePath } from './usage.js';

export interface RouteRow {
  readonly method: 'get' | 'patch' | 'delete';
  /** As routers write it: `:name`, or `:name{.+}` for the rest of the path. */
  readonly path: string;
  /** Name of the operation in clients that are made of the document. */
  readonly name: string;
  readonly summary: string;
  readonly query?: z.ZodObject;
  readonly body?: readonly [name: string, schema: z.ZodType];
  /** A schema by its name, or the media type of a file. */
  readonly answer: readonly [name: string, schema: z.ZodType] | string;
  /** Anybody may ask. */
  readonly open?: boolean;
}

const version = ['VersionDetail', answers.versionDetail] as const;

export const routeTable: readonly RouteRow[] = [
  {
    method: 'get',
    path: healthPath,
    name: 'getHealth',
    summary: 'Whether the server is up; with the key, also its engines.',
    answer: ['Health', answers.health],
    open: true,
  },
  {
    method: 'get',
    path: openApiPath,
    name: 'getOpenApi',
    summary: 'This document.',
    answer: ['OpenApi', answers.openApi],
  },
  {
    method: 'get',
    path: modelsPath,
    name: 'listModels',
    summary: 'What `model` may name, and the cards of the base models.',
    answer: ['ModelList', answers.modelList],
  },
  {
    method: 'get',
    path: usagePath,
    name: 'getUsage',
    summary: 'Tokens that were used, summed up.',
    query: requests.usageQuery,
    answer: ['Usage', answers.usage],
  },
  {
    method: 'get',
    path: tracePath,
    name: 'getTrace',
    summary: 'When the latest operations of a session ran, slice by slice.',
    answer: ['Trace', answers.trace],
  },
  {
    method: 'get',
    path: registryPaths.groups,
    name: 'listGroups',
    summary: 'Groups of saved versions.',
    answer: ['GroupList', answers.groupList],
  },
  {
    method: 'patch',
    path: registryPaths.group,
    name: 'changeGroup',
    summary: 'Changes what is said of a group.',
    body: ['GroupChange', requests.groupChange],
    answer: ['VersionGroup', answers.versionGroup],
  },
  {
    method: 'get',
    path: registryPaths.versions,
    name: 'listVersions',
    summary: 'Saved versions, newest first, page by page.',
    query: requests.versionQuery,
    answer: ['VersionPage', answers.versionPage],
  },
  {
    method: 'get',
    path: registryPaths.version,
    name: 'describeVersion',
    summary: 'A version with its metrics and files.',
    answer: version,
  },
  {
    method: 'patch',
    path: registryPaths.version,
    name: 'changeVersion',
    summary: 'Changes what is said of a version.',
    body: ['VersionChange', requests.versionChange],
    answer: version,
  },
  {
    method: 'delete',
    path: registryPaths.version,
    name: 'deleteVersion',
    summary: 'Deletes the files of a version for good; its entry stays.',
    answer: ['Nothing', answers.nothing],
  },
  {
    method: 'get',
    path: registryPaths.card,
    name: 'getCard',
    summary: 'The model card.',
    answer: 'text/markdown',
  },
  {
    method: 'get',
    path: registryPaths.file,
    name: 'getFile',
    summary: 'A file of a version. The slashes of its path stay as they are.',
    answer: 'application/octet-stream',
  },
  {
    method: 'get',
    path: registryPaths.archive,
    name: 'getArchive',
    summary: 'Files of a version as a zip.',
    query: requests.archiveQuery,
    answer: 'application/zip',
  },
];
