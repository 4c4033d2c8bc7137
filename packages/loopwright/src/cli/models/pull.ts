/** `loopwright models pull`: a model of the hub, fetched into the cache. */
import type { License } from '../../hub/hub-client.js';
import { type PullEvent, pullModel } from '../../hub/pull-model.js';
import { listenForInterrupt } from '../../interrupt.js';
import type { Console } from '../console.js';
import type { CommandContext } from '../context.js';
import { bytesText } from '../text.js';
import { DownloadProgress } from './download-progress.js';

export interface PullCommandOptions {
  readonly acceptLicense?: boolean;
}

export async function pullCommand(
  name: string,
  { acceptLicense = false }: PullCommandOptions,
  { console, settings }: CommandContext,
): Promise<void> {
  using interrupt = listenForInterrupt({
    onInterrupt: () => console.note('\nStopping; the next pull goes on from here.'),
  });
  using progress = new DownloadProgress(console);
  const { id, directory, commit, license } = await pullModel(name, {
    settings: settings.hub,
    acceptLicense,
    signal: interrupt.signal,
    onEvent: (event) => tell(event, { console, progress }),
  });
  progress.clear();
  console.event({ type: 'pull-end', id, commit, directory, ...(license === undefined ? {} : { license }) });
  console.table([
    ['files', directory],
    ['baseModel', `'${name}'`],
    ['pinned', `'${id}'`],
  ]);
}

function tell(
  event: PullEvent,
  { console, progress }: { readonly console: Console; readonly progress: DownloadProgress },
) {
  switch (event.type) {
    case 'pull-start': {
      const { model, commit, license, files, totalBytes } = event;
      console.event(event);
      const facts = `${files} files, ${bytesText(totalBytes)}, ${licenseText(license)}`;
      console.line(`${console.paint.bold(model)} at ${commit.slice(0, 12)}: ${facts}`);
      return;
    }
    case 'pull-progress':
      progress.show(event);
      return;
    case 'pull-wait':
      progress.clear();
      console.event(event);
      if (!console.json) console.note(`Another pull is downloading ${event.file}; waiting for it.`);
      return;
    default:
      event satisfies never;
  }
}

export function licenseText({ id, name, link }: License): string {
  const words = name ?? id;
  if (words === undefined) return 'no licence stated';
  return `licence ${words}${link === undefined ? '' : ` (${link})`}`;
}
