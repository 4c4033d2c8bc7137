/** Where the routes of this wire lie. */

export const tinkerPrefix = '/api/v1';
/** Files for download, whose addresses are signed. */
export const downloadPath = '/tinker-files';
