import {
  type Answer,
  calibrateJudge,
  createGrader,
  createJudge,
  httpReward,
  jsonFields,
  jsonSchema,
  llmJudge,
  openSqlDatabases,
  type Problem,
  sqlResult,
  toolTrace,
} from 'loopwright';

/** JSON of a shape, and a part of the reward for each field that is right. */
export const person = createGrader({
  components: [
    jsonSchema({ schema: { type: 'object', required: ['name', 'city'] }, weight: 0.2 }),
    ...jsonFields({
      fields: { name: '/name', city: '/address/city' },
      expected: ({ answer }: Problem) => JSON.parse(answer),
    }),
  ],
});

/** Rows that a query finds, on two databases, so that a constant is not right by chance. */
export async function query(answer: Answer<Problem>) {
  const table = 'CREATE TABLE sold (item TEXT, count INTEGER);';
  await using databases = await openSqlDatabases({
    monday: `${table} INSERT INTO sold VALUES ('pen', 3), ('ink', 1)`,
    tuesday: `${table} INSERT INTO sold VALUES ('pen', 2)`,
  });
  const rows = sqlResult({ databases, database: ['monday', 'tuesday'] });
  return await createGrader({ components: [rows] })(answer); // before they are closed
}

/** What an episode called: return `{ grade: search(toolCallsOf(turns)) }` from its environment. */
export const search = toolTrace({
  expected: [{ name: 'search', arguments: { q: 'Oslo' }, match: 'subset' }],
  forbidden: ['delete'],
  maxCalls: 3,
});

/** A judge that is used only when it agrees with people on labelled answers. */
export async function judged(baseUrl: string) {
  const judge = createJudge({ baseUrl, model: 'judge', rubric: 'Polite, and in one sentence.', votes: 3 });
  const question = 'Refuse the invitation.';
  const calibration = await calibrateJudge(judge, [
    { question, candidate: 'Thank you, but I cannot come.', label: 9 },
    { question, candidate: 'No.', label: 1 },
  ]);
  const require = { calibration, minAgreement: 0.9 };
  return createGrader({ components: [llmJudge({ judge, reference: () => null, require })] });
}

/** A reward function that runs elsewhere; its own metrics are logged beside its score. */
export const remote = (url: string) => createGrader({ components: httpReward({ url, metrics: ['accuracy'] }) });
