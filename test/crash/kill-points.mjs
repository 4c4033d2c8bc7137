/**
 * Loaded into a server and its engine by `--import`: counts their durable writes, and kills its own process at one of them.
 *
 * `LOOPWRIGHT_CRASH_PLANS` is a folder. `ROLE-K.json` in it, the first of its role when a process starts, says where that process ends:
 * `{ "point": n, "when": "before" | "after" }`, with n from 1 in each process. It is gone before the kill, so that the next process runs on or
 * takes the next plan; `ROLE-K.fired` then says where it was. With `LOOPWRIGHT_CRASH_TRACE`, every point is a line of `ROLE.PID.trace`.
 */
import fs from 'node:fs';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const { appendFileSync, readdirSync, readFileSync, unlinkSync, writeFileSync } = fs; // as they are before the change
const folder = process.env.LOOPWRIGHT_CRASH_PLANS;
const role = roleOf(process.argv[1] ?? '');
if (folder !== undefined && role !== undefined) await arm(folder, role);

function roleOf(script) {
  if (script.endsWith('/bin/loopwright.js')) return 'server';
  if (script.endsWith('/local/process/main.js')) return 'engine';
  return undefined;
}

async function arm(plans, ownRole) {
  const name = readdirSync(plans)
    .filter((file) => file.startsWith(`${ownRole}-`) && file.endsWith('.json'))
    .sort()[0];
  const plan = name === undefined ? undefined : JSON.parse(readFileSync(join(plans, name), 'utf8'));
  const trace = process.env.LOOPWRIGHT_CRASH_TRACE === undefined ? undefined : `${ownRole}.${process.pid}.trace`;
  let count = 0;
  let own = false; // a write of ours: functions of node:fs call each other

  const die = (kind, what) => {
    own = true;
    unlinkSync(join(plans, name));
    const fired = { role: ownRole, kind, what, ...plan };
    writeFileSync(join(plans, name.replace(/json$/, 'fired')), JSON.stringify(fired));
    process.kill(process.pid, 'SIGKILL');
    for (;;); // the signal is on its way
  };
  /** Returns what is to be done once the write is done. */
  const reach = (kind, what = '') => {
    count += 1;
    if (trace !== undefined) {
      own = true;
      appendFileSync(join(plans, trace), `${kind} ${what}\n`);
      own = false;
    }
    if (plan === undefined || count !== plan.point) return () => undefined;
    if (plan.when === 'before') die(kind, what);
    return () => die(kind, what);
  };
  const around = (object, method, kind, counts = () => true) => {
    const original = object[method];
    object[method] = function (...args) {
      if (own || !counts.call(this, ...args)) return original.apply(this, args);
      const after = reach(kind, typeof args[0] === 'string' && kind !== 'commit' ? basename(args[0]) : '');
      const result = original.apply(this, args);
      if (typeof result?.then !== 'function') {
        after();
        return result;
      }
      return result.then((value) => {
        after();
        return value;
      });
    };
  };

  const self = await fs.promises.open(fileURLToPath(import.meta.url));
  const handle = Object.getPrototypeOf(self);
  await self.close();
  for (const method of ['write', 'writev', 'writeFile', 'appendFile', 'truncate']) around(handle, method, 'write');
  for (const method of ['sync', 'datasync']) around(handle, method, 'sync');
  for (const method of ['writeFile', 'appendFile', 'copyFile', 'truncate']) {
    around(fs.promises, method, 'write');
    around(fs, `${method}Sync`, 'write');
  }
  const ofFile = (fd) => fd > 2;
  for (const method of ['writeSync', 'writevSync']) around(fs, method, 'write', ofFile);
  for (const method of ['fsyncSync', 'fdatasyncSync']) around(fs, method, 'sync');
  for (const [kind, methods] of Object.entries({
    rename: ['rename', 'link', 'symlink', 'mkdir', 'mkdtemp'],
    unlink: ['unlink', 'rm', 'rmdir'],
  })) {
    for (const method of methods) {
      around(fs.promises, method, kind);
      around(fs, `${method}Sync`, kind);
    }
  }
  syncBuiltinESMExports();
  if (ownRole === 'server') aroundCommits(around);
}

/** Every end of a transaction, and every statement that is one by itself. */
function aroundCommits(around) {
  const Database = createRequire(import.meta.url)('libsql');
  const commits = (database, sql) =>
    /\bcommit\b/i.test(sql) || (!database.inTransaction && /^\s*(insert|update|delete|replace)\b/i.test(sql));
  around(Database.prototype, 'exec', 'commit', function (sql) {
    return commits(this, sql);
  });
  const { prepare } = Database.prototype;
  Database.prototype.prepare = function (sql) {
    const statement = prepare.call(this, sql);
    if (/^\s*(commit|insert|update|delete|replace)\b/i.test(sql)) {
      const counts = () => commits(this, sql);
      around(statement, 'run', 'commit', counts);
      around(statement, 'all', 'commit', counts);
    }
    return statement;
  };
}
