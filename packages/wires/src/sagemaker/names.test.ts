/** ARNs and routes. */
import { expect, test } from 'vitest';
import {
  arnMap,
  groupNameOf,
  hubContentArn,
  hubContentName,
  modelPackageGroupArn,
  parseHubContentArn,
  parseVersionId,
  sessionArn,
  sessionNameOf,
} from './arn.js';
import { controlActionOf, controlActions, modelFilePath, routePath } from './routes.js';

test('versions and package ARNs name each other, whatever the region', () => {
  const here = arnMap();
  expect(here.toArn('lw/4')).toBe('arn:aws:sagemaker:self-hosted-1:000000000000:model-package/lw/4');
  expect(here.toVersion('arn:aws:sagemaker:us-west-2:123456789012:model-package/lw/4', 'f')).toBe('lw/4');
  expect(parseVersionId('lw/4')).toEqual({ group: 'lw', version: 4 });
});

test.each([
  modelPackageGroupArn('lw'),
  'lw/4',
  'arn:aws:sagemaker:us-west-2:123456789012:model-package/lw/0',
  7,
  undefined,
])('%s is no numbered package', (arn) => {
  expect(() => arnMap().toVersion(arn, 'modelPackageArn')).toThrow(
    /^modelPackageArn: expected the ARN of a numbered package/,
  );
});

test('hub ARNs carry a model by a name that the pattern takes', () => {
  const name = hubContentName('HuggingFaceTB/SmolLM2-135M_Instruct-v1.5');
  expect(name).toBe('HuggingFaceTB-SmolLM2-135M-Instruct-v1-5');
  const arn = hubContentArn({ name, version: '1.0.0' });
  expect(parseHubContentArn(arn, 'f')).toEqual({ hub: 'SageMakerPublicHub', name, version: '1.0.0' });
  expect(hubContentName('x'.repeat(63) + '/y'.repeat(9))).toBe('x'.repeat(63));
});

test('names are cut out of ARNs and pass through as they are', () => {
  expect(sessionNameOf(sessionArn('a-1'))).toBe('a-1');
  expect(sessionNameOf('a-1')).toBe('a-1');
  expect(groupNameOf(modelPackageGroupArn('lw'))).toBe('lw');
  expect(groupNameOf('lw')).toBe('lw');
});

test('routes are filled in, and only our actions are targets', () => {
  expect(routePath('trainingResult', { name: 'a b', operationId: 'x' })).toBe(
    '/v1/training-sessions/a%20b/operations/x',
  );
  expect(modelFilePath('org/name', 'tokenizer.json')).toBe('/org/name/resolve/main/tokenizer.json');
  for (const action of controlActions) expect(controlActionOf(`SageMaker.${action}`)).toBe(action);
  for (const other of ['SageMaker.Create', 'Other.CreateTrainingSession', '', null, undefined]) {
    expect(controlActionOf(other)).toBeUndefined();
  }
});
