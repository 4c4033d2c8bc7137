/** How the model hub is reached, and where its files are kept; filled from the environment by `config.ts`. */
export interface HubSettings {
  /** HF_ENDPOINT, without a slash at its end; `https://huggingface.co` by default. */
  readonly endpoint: string;
  /** HF_TOKEN: for private and gated models. */
  readonly token: string | undefined;
  /** HF_HUB_OFFLINE: nothing is asked of the hub; what the cache holds is used. */
  readonly offline: boolean;
  /** HF_HUB_CACHE, or `hub` in HF_HOME (`~/.cache/huggingface`): shared with the other tools that use this layout. */
  readonly cacheDirectory: string;
}
