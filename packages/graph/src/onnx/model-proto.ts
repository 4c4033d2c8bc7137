/** Writes a model in the protobuf form of ONNX (field numbers of onnx.proto3, IR version 10), on the wire writer of @bufbuild/protobuf. */
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import type { Shape } from '../shape.js';

export type OnnxAttribute =
  | { readonly int: number }
  | { readonly float: number }
  | { readonly ints: readonly number[] }
  | { readonly string: string };

export interface OnnxNode {
  readonly opType: string;
  readonly domain: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, OnnxAttribute>>;
}

export interface OnnxInitializer {
  readonly name: string;
  readonly dtype: number;
  readonly dims: readonly number[];
  readonly data:
    | { readonly raw: Uint8Array }
    | { readonly location: string; readonly offset: number; readonly sizeBytes: number };
}

export interface OnnxValueInfo {
  readonly name: string;
  readonly dtype: number;
  readonly shape: Shape;
}

export interface OnnxModel {
  readonly nodes: readonly OnnxNode[];
  readonly initializers: readonly OnnxInitializer[];
  readonly inputs: readonly OnnxValueInfo[];
  readonly outputs: readonly OnnxValueInfo[];
}

const opsets = [
  { domain: '', version: 21 },
  { domain: 'com.microsoft', version: 1 },
] as const;

type Write = (writer: BinaryWriter) => void;
const LENGTH_DELIMITED = 2;
const VARINT = 0;
const FIXED32 = 5;

const text = (writer: BinaryWriter, field: number, value: string) => writer.tag(field, LENGTH_DELIMITED).string(value);
const int = (writer: BinaryWriter, field: number, value: number) => writer.tag(field, VARINT).int64(BigInt(value));
const message = (writer: BinaryWriter, field: number, write: Write) => {
  writer.tag(field, LENGTH_DELIMITED).fork();
  write(writer);
  writer.join();
};

function writeAttribute(name: string, attribute: OnnxAttribute): Write {
  return (writer) => {
    text(writer, 1, name);
    if ('float' in attribute) {
      writer.tag(2, FIXED32).float(attribute.float);
      int(writer, 20, 1);
    } else if ('int' in attribute) {
      int(writer, 3, attribute.int);
      int(writer, 20, 2);
    } else if ('string' in attribute) {
      text(writer, 4, attribute.string);
      int(writer, 20, 3);
    } else {
      for (const value of attribute.ints) int(writer, 8, value);
      int(writer, 20, 7);
    }
  };
}

function writeNode(node: OnnxNode, index: number): Write {
  return (writer) => {
    for (const input of node.inputs) text(writer, 1, input);
    for (const output of node.outputs) text(writer, 2, output);
    text(writer, 3, `${node.opType}_${index}`);
    text(writer, 4, node.opType);
    for (const [name, attribute] of Object.entries(node.attributes))
      message(writer, 5, writeAttribute(name, attribute));
    if (node.domain !== '') text(writer, 7, node.domain);
  };
}

function writeInitializer({ name, dtype, dims, data }: OnnxInitializer): Write {
  return (writer) => {
    for (const size of dims) int(writer, 1, size);
    int(writer, 2, dtype);
    text(writer, 8, name);
    if ('raw' in data) {
      writer.tag(9, LENGTH_DELIMITED).bytes(data.raw);
      return;
    }
    const entries = { location: data.location, offset: String(data.offset), length: String(data.sizeBytes) };
    for (const [key, value] of Object.entries(entries)) {
      message(writer, 13, (entry) => {
        text(entry, 1, key);
        text(entry, 2, value);
      });
    }
    int(writer, 14, 1);
  };
}

/**
 * Shapes with named sizes are left out. With them the runtime compares every array that it plans with all that are free by then, which
 * takes most of the time of loading a training program (26 s of 30 layers, 6 s without); kernels read sizes as they run.
 */
function writeValueInfo({ name, dtype, shape }: OnnxValueInfo): Write {
  const sizes = shape.filter((size) => typeof size === 'number');
  return (writer) => {
    text(writer, 1, name);
    message(writer, 2, (type) =>
      message(type, 1, (tensor) => {
        int(tensor, 1, dtype);
        if (sizes.length < shape.length) return;
        message(tensor, 2, (dims) => {
          for (const size of sizes) message(dims, 1, (one) => int(one, 1, size));
        });
      }),
    );
  };
}

/** Bytes of a ModelProto. */
export function encodeModel({ nodes, initializers, inputs, outputs }: OnnxModel): Uint8Array {
  const writer = new BinaryWriter();
  int(writer, 1, 10);
  text(writer, 2, 'loopwright');
  message(writer, 7, (graph) => {
    for (const [index, node] of nodes.entries()) message(graph, 1, writeNode(node, index));
    text(graph, 2, 'program');
    for (const initializer of initializers) message(graph, 5, writeInitializer(initializer));
    for (const input of inputs) message(graph, 11, writeValueInfo(input));
    for (const output of outputs) message(graph, 12, writeValueInfo(output));
  });
  for (const { domain, version } of opsets) {
    message(writer, 8, (opset) => {
      text(opset, 1, domain);
      int(opset, 2, version);
    });
  }
  return writer.finish();
}
