/** Holds the lines of a conformance run against the list of outcomes that are explained. */

/** An outcome other than `ok` that has a reason. */
export interface Decision {
  readonly outcome: 'FAIL' | 'skip';
  readonly kind: 'decided against' | 'model' | 'environment';
  readonly reason: string;
}

export interface Verdict {
  readonly ok: number;
  /** Explained ones by name. */
  readonly explained: readonly string[];
  /** What is to be mended: outcomes without a reason, reasons without an outcome, a run that did not come to its end. */
  readonly faults: readonly string[];
}

/** Reads `ok NAME`, `FAIL NAME: why`, `skip NAME: why` and the last line `N passed, N failed`. */
export function verdictOf(output: string, decisions: Readonly<Record<string, Decision>>): Verdict {
  const lines = output.split('\n');
  const outcomes = lines.flatMap((line) => {
    const [, outcome, name] = /^(ok|FAIL|skip) ([\w.-]+)(?::|\s|$)/.exec(line) ?? [];
    return outcome === undefined || name === undefined ? [] : [{ outcome, name, line }];
  });
  const ok = outcomes.filter(({ outcome }) => outcome === 'ok').length;
  const isExplained = ({ outcome, name }: { outcome: string; name: string }) =>
    Object.hasOwn(decisions, name) && decisions[name]!.outcome === outcome;
  const others = outcomes.filter(({ outcome }) => outcome !== 'ok');
  const explained = others.filter(isExplained).map(({ name }) => name);
  const unexplained = others.filter((entry) => !isExplained(entry)).map(({ line }) => line);
  const stale = Object.keys(decisions)
    .filter((name) => !others.some((entry) => entry.name === name))
    .map((name) => `${name} is listed as explained, and was not met`);
  const ended = lines.some((line) => /^\d+ passed, \d+ failed/.test(line));
  return {
    ok,
    explained,
    faults: [...unexplained, ...stale, ...(ended && ok > 0 ? [] : ['the run did not come to its end'])],
  };
}
