/** A judge that is our own endpoint: it is asked over HTTP, and what a model that can't judge says is no score. */
import { join } from 'node:path';
import { startServer } from '@loopwright/server';
import { temporaryDirectory } from '@loopwright/testkit';
import { tinyModel } from '@loopwright/tiny';
import { createGrader, createJudge, llmJudge } from 'loopwright';
import { expect, test } from 'vitest';

test('the bundled model, which only adds, is asked as a judge and never gives a score by chance', async () => {
  await using folder = await temporaryDirectory();
  const server = await startServer({ dataDir: join(folder.path, 'data'), models: [tinyModel] });
  try {
    const options = { baseUrl: `${server.url}/v1`, rubric: 'Right?', maxTokens: 8, retries: 0 };
    // Its context is short: the prompt is one of our own.
    const prompt = () => [{ role: 'user' as const, content: '12+34=' }];
    const problem = { id: 'p', question: '12+34=', answer: '46' };
    const answer = { problem, text: '46', stopReason: 'stop' as const };
    const said: string[] = [];
    const listening = async (url: string, init: RequestInit): Promise<Response> => {
      const response = await fetch(url, init);
      const body = (await response.clone().json()) as { choices: { message: { content: string } }[] }; // true: OpenAI's form
      said.push(body.choices[0]!.message.content);
      return response;
    };
    const judge = createJudge({ ...options, model: tinyModel.id, prompt, fetch: listening });
    const grade = await createGrader({ components: [llmJudge({ judge })] })(answer);
    expect(grade).toMatchObject({ status: 'unparsed', reward: 0 });
    expect(said).toHaveLength(1);
    expect(said[0]).toMatch(/\d/); // it answered, with a number even

    const unknown = createJudge({ ...options, model: 'no-such-model', prompt });
    const failed = await createGrader({ components: [llmJudge({ judge: unknown })] })(answer);
    expect(failed).toMatchObject({ status: 'grader_error', error: { details: { httpStatus: 404 } } });
  } finally {
    await server.close();
  }
});
