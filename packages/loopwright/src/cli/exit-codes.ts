/** Exit codes of the command, as its help and the docs state them. */
export const exitCodes = {
  ok: 0,
  /** The work failed; the error says why. */
  failed: 1,
  /** The command line itself was wrong. */
  usage: 2,
  /** Ctrl-C or a request to end; what had been finished is kept. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];
