/** The program of a worker that runs queries: plain JavaScript as text, so that it is the same from source and compiled. */

/**
 * What it does: opens a fixture from a script, in memory; runs one statement of it; answers rows. SQLite in WebAssembly has no files and no
 * network here, and an authorizer refuses everything but reading. A progress handler ends a statement at its time; a worker that is
 * stuck all the same is ended from outside.
 */
export const workerSource = `
const { parentPort, workerData } = require('node:worker_threads');
const silent = () => {};
globalThis.sqlite3ApiConfig = { debug: silent, log: silent, warn: silent, error: silent };
for (const name of ['debug', 'log', 'warn', 'error', 'info']) console[name] = silent;
let sqlite;
const open = new Map();

async function database(name) {
  sqlite ??= await (await import(workerData.module)).default({ print: silent, printErr: silent });
  const known = open.get(name);
  if (known !== undefined) return known;
  const { capi, oo1 } = sqlite;
  const db = new oo1.DB(':memory:');
  try {
    db.exec('PRAGMA hard_heap_limit = ' + workerData.memoryBytes);
    db.exec(workerData.scripts[name]);
    capi.sqlite3_limit(db, capi.SQLITE_LIMIT_LENGTH, 10_000_000);
    capi.sqlite3_limit(db, capi.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 200);
    const allowed = [capi.SQLITE_SELECT, capi.SQLITE_READ, capi.SQLITE_FUNCTION, capi.SQLITE_RECURSIVE];
    capi.sqlite3_set_authorizer(db, (_, action) => (allowed.includes(action) ? capi.SQLITE_OK : capi.SQLITE_DENY), 0);
  } catch (error) {
    db.close();
    throw error;
  }
  open.set(name, db);
  return db;
}

function statements(db, sql) {
  const { capi, wasm } = sqlite;
  const scope = wasm.scopedAllocPush();
  const prepared = [];
  try {
    let [at, length] = wasm.scopedAllocCString(sql, true);
    const end = at + length;
    const [statement, tail] = [wasm.scopedAllocPtr(), wasm.scopedAllocPtr()];
    while (at < end && prepared.length < 2) {
      const code = capi.sqlite3_prepare_v3(db.pointer, at, end - at, 0, statement, tail);
      if (code !== 0) throw new Error(capi.sqlite3_errmsg(db.pointer));
      const pointer = wasm.peekPtr(statement);
      if (pointer) prepared.push(pointer);
      at = wasm.peekPtr(tail);
    }
    return prepared;
  } catch (error) {
    for (const each of prepared) capi.sqlite3_finalize(each);
    throw error;
  } finally {
    wasm.scopedAllocPop(scope);
  }
}

function rowsOf(db, sql, until) {
  const { capi } = sqlite;
  let isLate = false;
  capi.sqlite3_progress_handler(db.pointer, 1000, () => (isLate = performance.now() > until) ? 1 : 0, 0);
  let prepared = [];
  try {
    prepared = statements(db, sql);
    if (prepared.length !== 1) return { status: 'failed', reason: prepared.length === 0 ? 'no statement' : 'more than one statement' };
    const [statement] = prepared;
    const columns = Array.from({ length: capi.sqlite3_column_count(statement) }, (_, i) => capi.sqlite3_column_name(statement, i));
    const rows = [];
    for (;;) {
      const code = capi.sqlite3_step(statement);
      if (code === capi.SQLITE_DONE) return { status: 'ok', columns, rows };
      if (code !== capi.SQLITE_ROW) return { status: 'failed', reason: isLate ? 'stopped at its deadline' : capi.sqlite3_errmsg(db.pointer) };
      if (rows.length >= workerData.maxRows) return { status: 'failed', reason: 'more than ' + workerData.maxRows + ' rows' };
      rows.push(columns.map((_, i) => capi.sqlite3_column_js(statement, i)));
    }
  } catch (error) {
    return { status: 'failed', reason: isLate ? 'stopped at its deadline' : String(error.message) };
  } finally {
    for (const each of prepared) capi.sqlite3_finalize(each);
    capi.sqlite3_progress_handler(db.pointer, 0, 0, 0);
  }
}

parentPort.on('message', async ({ id, name, sql, timeoutMs }) => {
  let answer;
  try {
    const db = await database(name);
    parentPort.postMessage({ id, type: 'started' });
    answer = sql === null ? { status: 'ok', columns: [], rows: [] } : rowsOf(db, sql, performance.now() + timeoutMs);
  } catch (error) {
    answer = { status: 'broken', reason: String(error && error.message) };
  }
  parentPort.postMessage({ id, type: 'answer', answer });
});
`;
