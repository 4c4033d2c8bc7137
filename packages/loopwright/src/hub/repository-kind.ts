/** What differs between models and data sets of the hub: addresses, folders, words. */
import type { ErrorCode } from '@loopwright/protocol';

export interface RepositoryKind {
  /** In messages. */
  readonly noun: 'model' | 'data set';
  /** In the listing's address, and before the name in folders of the cache. */
  readonly plural: 'models' | 'datasets';
  /** Before the name in addresses of pages and files. */
  readonly page: '' | 'datasets/';
  readonly unknown: ErrorCode;
  readonly invalid: ErrorCode;
  /** The command that fetches one. */
  readonly pull: string;
}

export const modelKind: RepositoryKind = {
  noun: 'model',
  plural: 'models',
  page: '',
  unknown: 'unknown_model',
  invalid: 'model_invalid',
  pull: 'loopwright models pull',
};

export const datasetKind: RepositoryKind = {
  noun: 'data set',
  plural: 'datasets',
  page: 'datasets/',
  unknown: 'not_found',
  invalid: 'data_invalid',
  pull: 'loopwright data pull',
};
