/** Names of models on the hub: `org/name`, or `org/name@revision`. */
import { complaint, splitPinned } from '@loopwright/protocol';
import { datasetKind, type RepositoryKind } from './repository-kind.js';

export interface HubName {
  /** `org/name`. */
  readonly repository: string;
  /** A branch, a tag or a commit; `main` where the name says nothing. */
  readonly revision: string;
}

const defaultRevision = 'main';
const part = /^\w[\w.-]{0,95}$/;
const revisionPattern = /^\w[\w./+-]{0,199}$/;
const commitPattern = /^[0-9a-f]{40}$/;

/** Undefined for what can't be a name of the hub, such as a path. */
export function parseHubName(text: string): HubName | undefined {
  const { repository, revision = defaultRevision } = splitPinned(text);
  const parts = repository.split('/');
  // `--` stands for the slash in folder names of the cache, and two dots lead out of it.
  const isName = parts.length === 2 && parts.every((name) => part.test(name) && !/--|\.\.|[.-]$|\.git$/.test(name));
  if (!isName || !revisionPattern.test(revision) || /\.\.|\/\/|\/\.|\/$/.test(revision)) return undefined;
  return { repository, revision };
}

/** @param kind default: a model @throws `invalid_argument` */
export function requireHubName(text: string, kind?: RepositoryKind): HubName {
  const name = parseHubName(text);
  if (name !== undefined) return name;
  throw complaint({
    field: 'name',
    expected: 'org/name, or org/name@revision with a branch, tag or commit',
    got: JSON.stringify(text.slice(0, 120)),
    remedy:
      kind === datasetKind
        ? 'copy the name from the page of the data set, such as openai/gsm8k'
        : 'copy the name from the page of the model, such as HuggingFaceTB/SmolLM2-135M-Instruct',
  });
}

/** Whether a revision is a whole commit id, which always means the same files. */
export function isCommit(revision: string): boolean {
  return commitPattern.test(revision);
}
