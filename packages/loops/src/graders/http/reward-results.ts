/** What a reward function answers, in the forms that trainers take. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';

export interface RewardMetric {
  readonly name: string;
  readonly value: number;
  readonly type: 'Metric' | 'Reward';
}

export interface RewardResult {
  readonly score: number;
  readonly metrics: readonly RewardMetric[];
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * The results by id: of a bare list, or of `{ statusCode: 200, headers, body }` whose body is the list or its JSON text.
 *
 * A result that is wrong is an error of its record alone; one whose id is missing, unknown or double is one of all records, as it
 * isn't known whose it is.
 *
 * @throws `operation_failed` for another form, a status other than 200, or a runtime's `errorMessage`
 */
export function readRewards(
  answer: unknown,
  ids: readonly string[],
): ReadonlyMap<string, RewardResult | LoopwrightError> {
  const list = listOf(answer);
  const results = new Map<string, RewardResult | LoopwrightError>();
  for (const [i, item] of list.entries()) {
    const at = `[${i}]`;
    if (!isObject(item)) throw wrong(at, 'an object', kind(item));
    const id = typeof item.id === 'string' ? item.id : undefined;
    if (id === undefined) throw wrong(`${at}.id`, 'the id of a record', kind(item.id));
    if (!ids.includes(id)) throw wrong(`${at}.id`, 'the id of a record that was sent', 'another');
    if (results.has(id)) throw wrong(`${at}.id`, 'each id once', 'one for the second time');
    results.set(id, resultOf(item, at));
  }
  for (const id of ids)
    if (!results.has(id))
      results.set(id, wrong('results', `${ids.length}, one for each record`, `${list.length}, without this one`));
  return results;
}

function listOf(answer: unknown): readonly unknown[] {
  if (Array.isArray(answer)) return answer;
  if (!isObject(answer)) throw wrong('answer', 'a list, or an object with statusCode and body', kind(answer));
  if ('errorMessage' in answer || 'errorType' in answer)
    throw wrong('answer', 'results', 'an error of the function (errorMessage)');
  if (!('statusCode' in answer))
    throw wrong('answer', 'a list, or an object with statusCode and body', 'another object');
  if (answer.statusCode !== 200)
    throw wrong(
      'statusCode',
      '200',
      typeof answer.statusCode === 'number' ? String(answer.statusCode) : kind(answer.statusCode),
    );
  if (!('body' in answer)) throw wrong('body', 'a list, or JSON text of one', 'none');
  const body = typeof answer.body === 'string' ? jsonOf(answer.body) : answer.body;
  if (!Array.isArray(body)) throw wrong('body', 'a list, or JSON text of one', kind(body));
  return body;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw wrong('body', 'JSON text of a list', `${text.length} characters that are no JSON`);
  }
}

function resultOf(
  { aggregate_reward_score: score, metrics_list: list }: Fields,
  at: string,
): RewardResult | LoopwrightError {
  if (typeof score !== 'number' || !Number.isFinite(score))
    return wrong(`${at}.aggregate_reward_score`, 'a finite number', kind(score));
  if (list === undefined || list === null) return { score, metrics: [] };
  if (!Array.isArray(list)) return wrong(`${at}.metrics_list`, 'a list', kind(list));
  const metrics: RewardMetric[] = [];
  for (const [j, metric] of (list as readonly unknown[]).entries()) {
    const where = `${at}.metrics_list[${j}]`;
    if (!isObject(metric)) return wrong(where, 'an object', kind(metric));
    const { name, value, type } = metric;
    if (typeof name !== 'string' || name === '') return wrong(`${where}.name`, 'a name', kind(name));
    if (typeof value !== 'number' || !Number.isFinite(value))
      return wrong(`${where}.value`, 'a finite number', kind(value));
    if (type !== 'Metric' && type !== 'Reward') return wrong(`${where}.type`, 'Metric or Reward', kind(type));
    metrics.push({ name, value, type });
  }
  return { score, metrics };
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function kind(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'a list' : value === undefined ? 'nothing' : typeof value;
}

function wrong(field: string, expected: string, got: string): LoopwrightError {
  return complaint({ code: 'operation_failed', field, expected, got, remedy: 'mend the reward function' });
}
