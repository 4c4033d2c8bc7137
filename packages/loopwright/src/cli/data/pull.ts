/** `loopwright data pull`: a data set of the hub, fetched into the cache. */
import { type DataPullEvent, pullFromHub } from '../../hub/pull-dataset.js';
import { listenForInterrupt } from '../../interrupt.js';
import type { Console } from '../console.js';
import type { CommandContext } from '../context.js';
import { DownloadProgress } from '../models/download-progress.js';
import { licenseText } from '../models/pull.js';
import { bytesText } from '../text.js';

export interface DataPullCommandOptions {
  readonly config?: string;
  readonly split?: string;
  readonly acceptLicense?: boolean;
}

export async function dataPullCommand(
  hub: string,
  { config, split, acceptLicense = false }: DataPullCommandOptions,
  { console, settings }: CommandContext,
): Promise<void> {
  using interrupt = listenForInterrupt({
    onInterrupt: () => console.note('\nStopping; the next pull goes on from here.'),
  });
  using progress = new DownloadProgress(console);
  const dataset = { hub, ...(config === undefined ? {} : { config }), ...(split === undefined ? {} : { split }) };
  const pulled = await pullFromHub(dataset, {
    settings: settings.hub,
    acceptLicense,
    signal: interrupt.signal,
    onEvent: (event) => tell(event, { console, progress }),
  });
  progress.clear();
  const { license, ...facts } = pulled;
  console.event({ type: 'pull-end', ...facts, ...(license === undefined ? {} : { license }) });
  console.table([
    ['files', pulled.directory],
    ['pinned', pulled.id],
    ...pulled.splits.map(
      (name) => ['open', `openDataset({ hub: '${hub}', config: '${pulled.config}', split: '${name}' })`] as const,
    ),
  ]);
}

function tell(
  event: DataPullEvent,
  { console, progress }: { readonly console: Console; readonly progress: DownloadProgress },
): void {
  switch (event.type) {
    case 'pull-start': {
      const { dataset, commit, license, files, totalBytes, splits } = event;
      console.event(event);
      const facts = `${splits.join(', ')}: ${files} files, ${bytesText(totalBytes)}, ${licenseText(license)}`;
      console.line(`${console.paint.bold(dataset)} at ${commit.slice(0, 12)}: ${facts}`);
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
