/** The task as commands take it, such as npx loopwright grader test . */
import { defineTask } from 'loopwright';
import { environment } from './environment.js';

export const task = defineTask({
  name: '__NAME__',
  environment,
  settings: { groupsPerStep: 16, groupSize: 8, maxTokens: 8, steps: 20, learningRate: 3e-3 },
});
