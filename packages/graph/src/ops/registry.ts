/** Every operation of the array language, once. */
import { Add } from './add.js';
import { Cast } from './cast.js';
import { Concat } from './concat.js';
import { CumSum } from './cum-sum.js';
import type { OpDefinition } from './definition.js';
import { Div } from './div.js';
import { Equal } from './equal.js';
import { Exp } from './exp.js';
import { ExpandLike } from './expand-like.js';
import { Gather } from './gather.js';
import { GatherElements } from './gather-elements.js';
import { GatherRows } from './gather-rows.js';
import { Int8MatMul } from './int8-mat-mul.js';
import { LessOrEqual } from './less-or-equal.js';
import { LinearLogprob } from './linear-logprob.js';
import { Log } from './log.js';
import { LogSoftmax } from './log-softmax.js';
import { MatMul } from './mat-mul.js';
import { Max } from './max.js';
import { Min } from './min.js';
import { Mul } from './mul.js';
import { Neg } from './neg.js';
import { OneHot } from './one-hot.js';
import { Pad } from './pad.js';
import { QuickGelu } from './quick-gelu.js';
import { ReduceMax } from './reduce-max.js';
import { ReduceMean } from './reduce-mean.js';
import { ReduceSum } from './reduce-sum.js';
import { Reshape } from './reshape.js';
import { RmsNorm } from './rms-norm.js';
import { RotaryEmbedding } from './rotary-embedding.js';
import { Sigmoid } from './sigmoid.js';
import { Slice } from './slice.js';
import { Softmax } from './softmax.js';
import { Split } from './split.js';
import { StopGradient } from './stop-gradient.js';
import { Sub } from './sub.js';
import { TopK } from './top-k.js';
import { Transpose } from './transpose.js';
import { WaitFor } from './wait-for.js';
import { Where } from './where.js';

/** Names; kept apart from the table so that its type does not depend on itself. */
export type OpName =
  | 'Add'
  | 'Cast'
  | 'Concat'
  | 'CumSum'
  | 'Div'
  | 'Equal'
  | 'Exp'
  | 'ExpandLike'
  | 'Gather'
  | 'GatherElements'
  | 'GatherRows'
  | 'Int8MatMul'
  | 'LessOrEqual'
  | 'LinearLogprob'
  | 'Log'
  | 'LogSoftmax'
  | 'MatMul'
  | 'Max'
  | 'Min'
  | 'Mul'
  | 'Neg'
  | 'OneHot'
  | 'Pad'
  | 'QuickGelu'
  | 'ReduceMax'
  | 'ReduceMean'
  | 'ReduceSum'
  | 'Reshape'
  | 'RmsNorm'
  | 'RotaryEmbedding'
  | 'Sigmoid'
  | 'Slice'
  | 'Softmax'
  | 'Split'
  | 'StopGradient'
  | 'Sub'
  | 'TopK'
  | 'Transpose'
  | 'WaitFor'
  | 'Where';

export const opTable: Readonly<Record<OpName, OpDefinition>> = {
  Add,
  Cast,
  Concat,
  CumSum,
  Div,
  Equal,
  Exp,
  ExpandLike,
  Gather,
  GatherElements,
  GatherRows,
  Int8MatMul,
  LessOrEqual,
  LinearLogprob,
  Log,
  LogSoftmax,
  MatMul,
  Max,
  Min,
  Mul,
  Neg,
  OneHot,
  Pad,
  QuickGelu,
  ReduceMax,
  ReduceMean,
  ReduceSum,
  Reshape,
  RmsNorm,
  RotaryEmbedding,
  Sigmoid,
  Slice,
  Softmax,
  Split,
  StopGradient,
  Sub,
  TopK,
  Transpose,
  WaitFor,
  Where,
};
