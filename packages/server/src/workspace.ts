/** The workspace that rows and blobs belong to. There is one today; every row names it, so that more need no migration. */
export const defaultWorkspace = 'default';
