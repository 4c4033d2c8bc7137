/**
 * The template engine with limits, with Python's `tojson`, and with Python's refusals where the library is lenient.
 *
 * Templates come with models, so they are hostile input until shown otherwise: work and output are bounded, where the
 * library alone would loop for as long as a template asks.
 */
import { type Environment, jinja, type Node, type RuntimeValue } from './jinja-library.js';
import { type PythonJsonOptions, type PythonValue, pythonJson } from './python-json.js';
import { pythonStrip, type StripOptions } from './python-strip.js';
import { runtimeValue } from './runtime-value.js';

/** Evaluated nodes of one rendering, some 5 s of work: a chat of 2,000 turns through Qwen3's template stays below. */
const maximumSteps = 2_000_000;
/** A round of a loop takes the library as long as ten other nodes. */
const stepsOfRound = 10;
/** Items of one `range`. */
const maximumRange = 100_000;
/** Characters of a rendered chat: some 4 million tokens. */
const maximumCharacters = 16_000_000;

/** A limit of this file was met; the caller turns it into an error of the product. */
export class TemplateLimitError extends Error {}

/** `raise_exception` of a template was called. */
export class TemplateRaisedError extends Error {}

/** Parses with the whitespace rules of chat templates: `trim_blocks` and `lstrip_blocks`. */
export function parseTemplate(source: string): Node {
  return jinja.parse(jinja.tokenize(source, { trim_blocks: true, lstrip_blocks: true }));
}

function unwrap(value: RuntimeValue): PythonValue {
  if (value.exact !== undefined) return { exact: value.exact };
  switch (value.type) {
    case 'FloatValue':
      return { float: Number(value.value) };
    case 'IntegerValue':
      return Number(value.value);
    case 'StringValue':
    case 'BooleanValue':
    case 'NullValue':
    case 'UndefinedValue':
      return value.value as PythonValue; // true: these four hold the primitive itself
    case 'ArrayValue':
    case 'TupleValue':
      return (value.value as RuntimeValue[]).map(unwrap); // true for the array values of the library
    case 'ObjectValue':
    case 'NamespaceValue':
      return new Map([...(value.value as Map<string, RuntimeValue>)].map(([key, item]) => [key, unwrap(item)]));
    default:
      throw new Error(`tojson can't write a ${value.type}`);
  }
}

/** Type of a node that stands for a value which is known already. */
const evaluated = 'Evaluated';

function evaluatedNode(value: RuntimeValue): Node {
  return { type: evaluated, value };
}

/** Put at the head of each loop's body, so that rounds of an empty loop count too; prints nothing. */
const loopRound = evaluatedNode({ type: 'NullValue', value: null });

class BoundedInterpreter extends jinja.Interpreter {
  #steps = 0;
  #characters = 0;

  override evaluate(node: Node | undefined, environment: Environment): RuntimeValue {
    this.#steps += 1;
    if (this.#steps > maximumSteps) throw new TemplateLimitError(`more than ${maximumSteps} steps`);
    if (node === loopRound) this.#steps += stepsOfRound;
    if (node?.type === evaluated) return node.value as RuntimeValue; // true: `evaluatedNode` made it
    const value =
      this.#toJson(node, environment) ??
      this.#strip(node, environment) ??
      super.evaluate(this.#strict(node, environment), environment);
    if (value?.type === 'StringValue') {
      // Counts every string made, so that doubling a string in a loop ends here and not in memory.
      this.#characters += String(value.value).length;
      if (this.#characters > 16 * maximumCharacters) throw new TemplateLimitError('too much text');
    }
    return value;
  }

  /**
   * Four things that the reference does and the library doesn't: an attribute of something undefined is an error, text
   * plus a list or number is an error (the library prints the list), numbers joined to text are as they print (2.0, not 2), and a
   * loop over something undefined is empty.
   * The operands are evaluated here, once, and handed on as finished values.
   */
  #strict(node: Node | undefined, environment: Environment): Node | undefined {
    if (node?.type === 'MemberExpression') {
      const object = this.evaluate(node.object, environment);
      if (object.type === 'UndefinedValue') throw new Error('an attribute or item of something undefined');
      return { ...node, object: evaluatedNode(object) };
    }
    if (node?.type === 'BinaryExpression' && node.operator?.value === '+') {
      const [left, right] = [this.evaluate(node.left, environment), this.evaluate(node.right, environment)];
      if ((left.type === 'StringValue') !== (right.type === 'StringValue')) {
        throw new Error(`${left.type} + ${right.type} can't be joined`);
      }
      return { ...node, left: evaluatedNode(left), right: evaluatedNode(right) };
    }
    if (node?.type === 'BinaryExpression' && node.operator?.value === '~') {
      const asText = (operand: Node | undefined): Node => {
        const value = this.evaluate(operand, environment);
        const isNumber = value.type === 'FloatValue' || value.type === 'IntegerValue';
        return evaluatedNode(isNumber ? runtimeValue(String(value)) : value);
      };
      return { ...node, left: asText(node.left), right: asText(node.right) };
    }
    if (node?.type === 'For' && node.iterable !== undefined) {
      const body = [loopRound, ...(node.body ?? [])];
      if (node.iterable.type === 'SelectExpression') return { ...node, body };
      const iterable = this.evaluate(node.iterable, environment);
      const items = iterable.type === 'UndefinedValue' ? new jinja.Environment().set('items', []) : iterable;
      return { ...node, body, iterable: evaluatedNode(items) };
    }
    return node;
  }

  /** `x | trim` and `x.strip(...)`: the library takes JavaScript's white space away, whichever characters are named. */
  #strip(node: Node | undefined, environment: Environment): RuntimeValue | undefined {
    const call = stripCall(node);
    if (call === undefined) return undefined;
    const operand = this.evaluate(call.operand, environment);
    if (operand.type !== 'StringValue') {
      return super.evaluate(this.#strict(call.on(evaluatedNode(operand)), environment), environment);
    }
    const given = call.characters === undefined ? undefined : this.evaluate(call.characters, environment);
    const characters = given?.type === 'StringValue' ? String(given.value) : undefined;
    const text = pythonStrip(String(operand.value), { characters, side: call.side });
    return new jinja.Environment().set('text', text);
  }

  /** `x | tojson(...)` by our own writer: the library prints numbers and sorted keys as JavaScript does. */
  #toJson(node: Node | undefined, environment: Environment): RuntimeValue | undefined {
    if (node?.type !== 'FilterExpression' || node.operand === undefined) return undefined;
    const filter = node.filter;
    const name = filter?.type === 'CallExpression' ? filter.callee?.value : filter?.value;
    if (name !== 'tojson') return undefined;
    const options: { -readonly [K in keyof PythonJsonOptions]: PythonJsonOptions[K] } = {};
    for (const [i, argument] of (filter?.args ?? []).entries()) {
      const isKeyword = argument.type === 'KeywordArgumentExpression';
      const key = isKeyword ? String(argument.key?.value) : ['ensure_ascii', 'indent', 'separators', 'sort_keys'][i];
      const argumentValue = unwrap(
        super.evaluate((isKeyword ? argument.value : argument) as Node, environment), // true: an expression node
      );
      if (key === 'indent' && (typeof argumentValue === 'number' || typeof argumentValue === 'string')) {
        options.indent = argumentValue;
      } else if (key === 'ensure_ascii') options.ensureAscii = Boolean(argumentValue);
      else if (key === 'sort_keys') options.sortKeys = Boolean(argumentValue);
      else if (key === 'separators' && Array.isArray(argumentValue)) {
        options.separators = [String(argumentValue[0]), String(argumentValue[1])];
      }
    }
    const text = pythonJson(unwrap(this.evaluate(node.operand, environment)), options);
    return new jinja.Environment().set('text', text);
  }
}

interface StripCall {
  readonly operand: Node;
  /** The characters to take away, where some are named. */
  readonly characters: Node | undefined;
  readonly side: StripOptions['side'];
  /** The same node with another operand. */
  readonly on: (operand: Node) => Node;
}

const strips: Readonly<Record<string, StripOptions['side']>> = { strip: 'both', lstrip: 'left', rstrip: 'right' };

/** `x | trim`, or a call of `x.strip` and its like. */
function stripCall(node: Node | undefined): StripCall | undefined {
  if (node?.type === 'FilterExpression' && node.operand !== undefined) {
    const { filter } = node;
    const name = filter?.type === 'CallExpression' ? filter.callee?.value : filter?.value;
    if (name !== 'trim') return undefined;
    const [characters] = filter?.args ?? [];
    return { operand: node.operand, characters, side: 'both', on: (operand) => ({ ...node, operand }) };
  }
  if (node?.type !== 'CallExpression' || node.callee?.type !== 'MemberExpression') return undefined;
  const { callee } = node;
  const side = callee.computed === true ? undefined : strips[String(callee.property?.value)];
  if (side === undefined || callee.object === undefined) return undefined;
  const [characters] = node.args ?? [];
  return {
    operand: callee.object,
    characters,
    side,
    on: (object) => ({ ...node, callee: { ...callee, object } }),
  };
}

export interface RunTemplateOptions {
  readonly variables: Readonly<Record<string, unknown>>;
  readonly strftimeNow: (format: string) => string;
}

/** Runs a parsed template. Throws {@link TemplateRaisedError}, {@link TemplateLimitError}, or the library's own errors. */
export function runTemplate(program: Node, { variables, strftimeNow }: RunTemplateOptions): string {
  const environment = new jinja.Environment();
  const globals: Record<string, unknown> = {
    true: true,
    True: true,
    false: false,
    False: false,
    none: null,
    None: null,
    raise_exception: (message: unknown) => {
      throw new TemplateRaisedError(String(message));
    },
    strftime_now: strftimeNow,
    range: boundedRange,
  };
  for (const [name, value] of Object.entries({ ...globals, ...variables }))
    environment.setVariable(name, runtimeValue(value));
  const text = String(new BoundedInterpreter(environment).run(program).value);
  if (text.length > maximumCharacters) throw new TemplateLimitError(`more than ${maximumCharacters} characters`);
  return text;
}

function boundedRange(first: number, second?: number, step = 1): number[] {
  const [start, stop] = second === undefined ? [0, first] : [first, second];
  const count = Math.max(0, Math.ceil((stop - start) / step));
  if (!Number.isFinite(count) || count > maximumRange) {
    throw new TemplateLimitError(`a range of more than ${maximumRange} items`);
  }
  return Array.from({ length: count }, (_, i) => start + i * step);
}
