/**
 * An observer of everything, by the client library: goes on from where it was, whatever fails, and begins anew only where
 * changes are lost for good, which it is told.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Client, DomainChange, Observation } from '../../../src/client/index.js';
import { codeOf } from './codes.js';
import { now } from './clock.js';
import type { ClientEvent, SeenLease } from './events.js';
import type { Notebook } from './notebook.js';

const AGAIN_MS = 100;

/** What an observer needs. */
export interface ObserverPorts {
  readonly name: string;
  readonly client: Client;
  readonly notebook: Notebook<ClientEvent>;
  readonly stop: AbortSignal;
}

/** Goes on until it is stopped. */
export async function observe({ name, client, notebook, stop }: ObserverPorts): Promise<void> {
  let next: bigint | undefined;
  while (!stop.aborted) {
    notebook.note({ type: 'observing', at: now(), observer: name, from: Number(next ?? 0n) });
    try {
      for await (const observation of client.observe('', {
        signal: stop,
        ...(next === undefined ? {} : { from: next }),
      })) {
        notebook.note({ type: 'observed', at: now(), observer: name, ...seenIn(observation) });
        next = observation.revision + 1n;
      }
    } catch (error) {
      if (codeOf(error) === 'COMPACTED') next = undefined;
      await pause(AGAIN_MS);
    }
  }
}

function seenIn({ revision, changes }: Observation): { readonly to: number; readonly leases: readonly SeenLease[] } {
  return { to: Number(revision), leases: changes.flatMap(seen) };
}

function seen(change: DomainChange): SeenLease[] {
  const revision = Number(change.revision);
  switch (change.type) {
    case 'granted':
      return [{ revision, domain: change.lease.domain, token: Number(change.lease.token), live: true }];
    case 'ended':
      return [{ revision, domain: change.domain, token: Number(change.token), live: false }];
    case 'queueChanged':
      return [];
  }
}
