import { compile, Graph, gradients, matMul, mul, program, reduceSum, sub } from '@loopwright/graph';

// Linear regression: the sum of squared errors over N rows, and its gradient by the weights.
const graph = new Graph();
const x = graph.input('x', 'float32', ['N', 3]);
const y = graph.input('y', 'float32', ['N', 1]);
const weight = graph.input('weight', 'float32', [3, 1]);

const error = sub(matMul(x, weight), y);
const loss = reduceSum(mul(error, error), [0, 1]);
const [grad] = gradients([{ value: loss, grad: graph.scalar(1) }], [weight]);

// An ONNX model with the outputs `loss` [] and `grad` [3,1], for any N.
export const model = compile(graph, { loss, grad: grad! });
export const nodes = program(graph, { loss }).nodes.map((node) => node.op);
