/** The wires by which clients may speak to a server: the one list of them. */
export const wireNames = ['sagemaker', 'openai', 'tinker'] as const;
export type WireName = (typeof wireNames)[number];
