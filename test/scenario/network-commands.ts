/** The commands about messages and links, the same in every world. */
import type { Network, Packet } from './network.js';
import { parsePattern } from './network.js';

/** What these commands need of a world. */
export interface NetworkWorld {
  readonly network: Network;
  /** A packet reaches the member it names, whatever the links do. */
  deliver(packet: Packet): void;
  /** A packet never arrives. */
  lost(packet: Packet): void;
  /** The invariants, after one event. */
  check(): void;
}

type Command = (world: NetworkWorld, words: readonly string[]) => void;

/** Name → what it does. */
export const NETWORK_COMMANDS: Readonly<Record<string, Command>> = {
  hold: (world, words) => {
    world.network.holds.push(parsePattern(words));
  },
  release: (world, words) => {
    const pattern = parsePattern(words);
    const at = world.network.holds.findIndex((hold) => hold.text === pattern.text);
    if (at < 0) throw new Error(`nothing is held as "${pattern.text}"`);
    world.network.holds.splice(at, 1);
    for (const packet of world.network.take(pattern)) world.deliver(packet);
  },
  deliver: (world, words) => {
    const packets = world.network.take(parsePattern(words));
    if (packets.length === 0) throw new Error(`no held message is "${words.join(' ')}"`);
    for (const packet of packets) {
      world.deliver(packet);
      world.check();
    }
  },
  drop: (world, words) => {
    const packets = world.network.take(parsePattern(words));
    if (packets.length === 0) throw new Error(`no held message is "${words.join(' ')}"`);
    for (const packet of packets) world.lost(packet);
  },
  dup: (world, words) => {
    world.deliver(world.network.last(parsePattern(words)));
  },
  cut: (world, words) => {
    for (const word of words) world.network.cut(word);
  },
  heal: (world) => {
    world.network.heal();
  },
};
