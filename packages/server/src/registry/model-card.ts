/** The model card of a version: what it is, how it came about and what was measured of it, as Markdown for people and as JSON for programs. */
import { approvalGaps, type VersionResult } from '@loopwright/protocol';
import type { DescribedVersion } from './version.js';

/** Markdown with the front matter that model hubs read. Texts of people are quoted, so that they stay texts. */
export function modelCard(version: DescribedVersion): string {
  const { groupName, number, baseModel, training, description, metrics, tags } = version;
  const isAdapter = training.type === 'lora' && version.kind !== 'merged';
  const front = [
    `base_model: ${JSON.stringify(baseModel)}`,
    `library_name: ${isAdapter ? 'peft' : 'transformers'}`,
    `tags: ${JSON.stringify(['loopwright', training.type, version.kind])}`,
  ];
  const lines = ['---', ...front, '---', '', `# ${inline(groupName)}, version ${number}`, ''];
  if (description !== '') lines.push(...description.split(/\r?\n/).map((line) => `> ${inline(line)}`), '');
  lines.push(...table(['what', ''], factsOf(version)), '');
  const results = resultLines(metrics);
  if (results.length > 0) lines.push('## Against the start of its training', '', ...results, '');
  if (metrics.length > 0) {
    const rows = metrics.map(({ name, value, note, atMs }) => [
      name,
      String(value),
      note,
      new Date(atMs).toISOString(),
    ]);
    lines.push('## Metrics', '', ...table(['metric', 'value', 'how', 'when'], rows), '');
  }
  if (Object.keys(tags).length > 0) lines.push('## Tags', '', ...table(['tag', 'value'], Object.entries(tags)), '');
  return `${lines.join('\n')}`;
}

/** The three results that an approval asks for, those that are there. */
function resultLines(metrics: DescribedVersion['metrics']): string[] {
  const found = new Map(metrics.map(({ name, value }) => [name, value]));
  const missing = approvalGaps(metrics).flatMap(({ result, why }) => (why === 'missing' ? [result] : []));
  const value = (name: string): number => found.get(name) ?? Number.NaN;
  const range = (name: string, digits: number): string =>
    `${value(`${name}/difference_low`).toFixed(digits)} to ${value(`${name}/difference_high`).toFixed(digits)}`;
  const paired = (name: string): string =>
    `${value(`${name}/difference`).toFixed(3)} (95 % interval ${range(name, 3)}, n = ${value(`${name}/n`)})`;
  const lines: Readonly<Record<VersionResult, string>> = {
    evaluation: `- evaluation: share right on held-out rows, difference ${paired('eval')}`,
    regression: `- regression: share of cases passed, difference ${paired('regression')}`,
    cost: `- cost: sampled tokens of an answer, difference ${value('cost/tokens/difference').toFixed(1)}; an answer takes ${value('cost/latency_p50_ms').toFixed(0)} ms (p50), where the start takes ${value('cost/latency_start_p50_ms').toFixed(0)} ms`,
  };
  const names = Object.keys(lines) as VersionResult[]; // true: its own keys
  return names.filter((name) => !missing.includes(name)).map((name) => lines[name]);
}

/** The JSON form that the model package API carries as text. */
export function modelCardJson(version: DescribedVersion): string {
  return JSON.stringify({
    model_overview: { model_name: version.id, model_description: version.description },
    evaluation_details:
      version.metrics.length === 0
        ? []
        : [
            {
              name: 'metrics',
              metric_groups: [
                {
                  name: 'metrics',
                  metric_data: version.metrics.map(({ name, value, note }) => ({
                    name,
                    type: 'number',
                    value,
                    ...(note === '' ? {} : { notes: note }),
                  })),
                },
              ],
            },
          ],
    additional_information: { custom_details: Object.fromEntries(factsOf(version)) },
  });
}

function factsOf(version: DescribedVersion): [string, string][] {
  const { training, lineage, approval, expiresAtMs } = version;
  const { data } = lineage;
  const trained =
    training.type === 'full'
      ? 'every weight'
      : `adapter of rank ${training.rank}, alpha ${training.alpha}, on ${training.targetModules.join(' ')}`;
  return [
    ['kind', version.kind],
    ['base model', version.baseModel],
    ['trained', trained],
    ['session', lineage.sessionName],
    ['optimizer steps', String(lineage.step)],
    ['parent', lineage.parent ?? 'the base model'],
    ...(data === null
      ? []
      : ([
          ['data since the parent', `${data.passes} passes, ${data.datums} datums, ${data.tokens} tokens`],
          ...(data.digest === null ? [] : [['digest of the data', data.digest]]),
        ] as [string, string][])),
    [
      'approval',
      `${approval.decidedAtMs === null ? 'nobody has decided' : approval.status}${approval.note === '' ? '' : `: ${approval.note}`}`,
    ],
    ['saved', new Date(version.createdAtMs).toISOString()],
    ...(expiresAtMs === null ? [] : ([['expires', new Date(expiresAtMs).toISOString()]] as [string, string][])),
  ];
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]) => `| ${cells.map(inline).join(' | ')} |`;
  return [line(head), `|${' --- |'.repeat(head.length)}`, ...rows.map(line)];
}

/**
 * Text that Markdown leaves as it is, and that a terminal shows: a card is read with `cat` as well, where a control character of a note could hide what
 * the card says. Those and characters without a form of their own are spelled as `\\u{1b}`.
 */
function inline(text: string): string {
  return text
    .replace(/[\r\n\t]+/g, ' ')
    .replace(/[\\`*_{}[\]<>#|!]/g, (sign) => `\\${sign}`)
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (sign) => `\\\\u\\{${sign.codePointAt(0)?.toString(16)}\\}`);
}
