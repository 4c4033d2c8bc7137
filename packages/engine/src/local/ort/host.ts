/** Hosts that the embedded engine runs on: those for which the runtime's package holds a library. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';

/** What decides whether a native library loads. */
export interface HostFacts {
  /** As `process.platform` says it. */
  readonly platform: string;
  /** As `process.arch` says it. */
  readonly arch: string;
  /** Linux only: whether the C library is glibc. */
  readonly isGlibc: boolean;
}

const hosts = ['linux x64', 'linux arm64', 'darwin arm64', 'win32 x64', 'win32 arm64'];

/** This host. */
export function hostFacts(): HostFacts {
  const { platform, arch } = process;
  return { platform, arch, isGlibc: platform === 'linux' && hasGlibc() };
}

function hasGlibc(): boolean {
  const report = process.report as (NodeJS.ProcessReport & { excludeNetwork?: boolean }) | undefined; // true: Node has it since 20.13, the types not yet
  if (report === undefined) return false;
  // Else the report looks up the name of every open socket's other end, and waits for the answers.
  const { excludeNetwork = false } = report;
  report.excludeNetwork = true;
  try {
    const { header } = report.getReport() as { readonly header?: { readonly glibcVersionRuntime?: string } }; // true: Node's documented report
    return header?.glibcVersionRuntime !== undefined;
  } finally {
    report.excludeNetwork = excludeNetwork;
  }
}

/** Such as `linux x64 without glibc`. */
export function describeHost({ platform, arch, isGlibc }: HostFacts): string {
  return `${platform} ${arch}${platform === 'linux' && !isGlibc ? ' without glibc' : ''}`;
}

/** Looks at the names alone and loads nothing. @throws `unsupported_host` */
export function requireSupportedHost(facts: HostFacts = hostFacts()): void {
  if (!hosts.includes(describeHost(facts))) throw unsupportedHost(describeHost(facts));
}

export function unsupportedHost(got: string, cause?: unknown): LoopwrightError {
  return complaint({
    code: 'unsupported_host',
    field: 'host',
    expected: 'Linux with glibc (x64, arm64), macOS on Apple silicon, or Windows',
    got,
    remedy: 'start `loopwright serve` on another machine and connect to it by LOOPWRIGHT_URL',
    cause,
  });
}
