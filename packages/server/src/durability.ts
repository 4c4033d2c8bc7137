/**
 * What an accepted operation must survive. `power-loss`: every commit and blob is on the disk before it counts. `process-crash`:
 * it is with the operating system, so that a kill of the server loses nothing while a power failure may lose the last seconds
 * (never the consistency of the database); some ten syncs a training step cheaper.
 */
export type Durability = 'power-loss' | 'process-crash';
