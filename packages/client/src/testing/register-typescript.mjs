/** Lets a child process of the tests run TypeScript from source: `.ts` files are stripped of their types as they load. */
import { register } from 'node:module';

register('./load-typescript.mjs', import.meta.url);
