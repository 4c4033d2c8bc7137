/** Ends of the process that are meant: told from those that a user's code brings about. */

let isMeant = false;

/** As `process.exit`, by this program's own decision. @param code default the one that was set */
export function endProcess(code = process.exitCode): never {
  isMeant = true;
  process.exit(code);
}

/** Whether the process ends by {@link endProcess}. */
export function endIsMeant(): boolean {
  return isMeant;
}
