/** Here versions are named by their ARN: nothing is translated, only checked. */
import { type ArnMap, parsePackageArn } from '@loopwright/wires/sagemaker';

/** @throws `invalid_argument` naming `field` when it is not the ARN of a numbered package */
export function checkedArn(arn: unknown, field: string): string {
  parsePackageArn(arn, field);
  return String(arn);
}

export const arns: ArnMap = { toArn: (arn) => arn, toVersion: checkedArn };
