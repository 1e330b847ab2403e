import { describe, expect, it } from 'vitest';
import type { BootId, DirectoryId, Incarnation, NodeId } from '../../src/base/ids.js';
import { STATE_LIMITS } from '../../src/base/limits.js';
import type { Revision } from '../../src/base/revision.js';
import { createForming } from '../../src/replica/forming.js';
import type { Forming, FormingEffect, FormingEvent, FormingOptions } from '../../src/replica/forming.js';
import type { Genesis } from '../../src/replica/types.js';
import { START_UNIX_MS } from '../support/memory-cluster.js';

interface Member {
  readonly name: string;
  options: FormingOptions;
  forming: Forming | undefined;
  /** What its disk holds. */
  genesis: Genesis | undefined;
  formed: Genesis | undefined;
  refused: string | undefined;
  wallAheadMs: number;
  readonly logs: string[];
}

/** Members that ask each other at once, over links that a test may cut; storing takes a step that a test may hold back. */
class Town {
  now = 0;
  readonly members = new Map<string, Member>();
  readonly down = new Set<string>();
  /** Whose stores are carried out. */
  storing: (name: string) => boolean = () => true;
  #asks = new Map<string, { from: Member; to: Member }>();
  #made = 0;

  constructor(names = ['n1', 'n2', 'n3'], more: Partial<FormingOptions> = {}) {
    for (const name of names) this.add(name, names, more);
  }

  add(name: string, names: readonly string[], more: Partial<FormingOptions> = {}): Member {
    const options: FormingOptions = {
      self: { node: name as NodeId, directory: this.#hex() as DirectoryId },
      boot: this.#hex() as BootId,
      cluster: 'test',
      members: names.map((node) => ({ node: node as NodeId, peerAddress: `${node}:1` })),
      form: true,
      floor: undefined,
      holdMs: 0,
      limits: STATE_LIMITS,
      incarnation: this.#hex() as Incarnation,
      genesis: undefined,
      ...more,
    };
    const member: Member = {
      name,
      options,
      forming: undefined,
      genesis: undefined,
      formed: undefined,
      refused: undefined,
      wallAheadMs: 0,
      logs: [],
    };
    this.members.set(name, member);
    this.start(name);
    return member;
  }

  member(name: string): Member {
    const member = this.members.get(name);
    if (member === undefined) throw new Error(`no member ${name}`);
    return member;
  }

  start(name: string): void {
    const member = this.member(name);
    member.formed = undefined;
    member.forming = createForming({
      ...member.options,
      boot: this.#hex() as BootId,
      incarnation: this.#hex() as Incarnation,
      genesis: member.genesis,
    });
  }

  stop(name: string): void {
    this.member(name).forming = undefined;
  }

  /** A new disk. */
  wipe(name: string): void {
    const member = this.member(name);
    member.genesis = undefined;
    member.options = { ...member.options, self: { ...member.options.self, directory: this.#hex() as DirectoryId } };
  }

  run(ms: number): void {
    const end = this.now + ms;
    while (this.now < end) {
      this.now += 50;
      for (const member of this.members.values()) this.step(member, { type: 'tick' });
    }
  }

  step(member: Member, event: FormingEvent): void {
    const { forming } = member;
    if (forming === undefined) return;
    const unixMs = START_UNIX_MS + this.now + member.wallAheadMs;
    for (const effect of forming.step({ nowMs: this.now, unixMs }, [event])) this.#perform(member, effect);
  }

  #perform(member: Member, effect: FormingEffect): void {
    switch (effect.type) {
      case 'ask': {
        const to = this.members.get(effect.node);
        if (to?.forming === undefined || this.down.has(`${member.name}>${effect.node}`)) {
          this.step(member, { type: 'unreachable', node: effect.node });
          return;
        }
        const id = ++this.#made;
        this.#asks.set(String(id), { from: member, to });
        this.step(to, { type: 'asked', id, request: effect.request });
        return;
      }
      case 'respond': {
        const ask = this.#asks.get(String(effect.id));
        this.#asks.delete(String(effect.id));
        if (ask !== undefined)
          this.step(ask.from, { type: 'answered', node: member.options.self.node, response: effect.response });
        return;
      }
      case 'store':
        if (!this.storing(member.name)) return;
        member.genesis = effect.genesis;
        this.step(member, { type: 'stored' });
        return;
      case 'formed':
        member.formed = effect.genesis;
        return;
      case 'refused':
        member.refused = effect.message;
        return;
      case 'log':
        member.logs.push(effect.message);
    }
  }

  #hex(): string {
    return (++this.#made).toString(16).padStart(32, '0');
  }
}

function records(town: Town): (string | undefined)[] {
  return [...town.members.values()].map(({ formed }) => formed?.incarnation);
}

describe('forming', () => {
  it('makes one record that all accept; its base is the greatest clock in microseconds', () => {
    const town = new Town();
    town.member('n3').wallAheadMs = 4_000;
    town.run(2_000);
    const [first] = records(town);
    expect(first).toBeDefined();
    expect(records(town)).toEqual([first, first, first]);
    const genesis = town.member('n2').formed;
    expect(genesis?.history.base).toBeGreaterThanOrEqual((START_UNIX_MS + 4_000) * 1_000);
    expect(genesis?.history.base).toBeLessThan((START_UNIX_MS + 7_000) * 1_000);
    expect(genesis?.members.map(({ node }) => node)).toEqual(['n1', 'n2', 'n3']);
  });

  it('waits until every member is there', () => {
    const town = new Town();
    town.stop('n3');
    town.run(30_000);
    expect(records(town)).toEqual([undefined, undefined, undefined]);
    expect(town.member('n1').logs.join()).toContain('forming waits for n3 to answer');
    town.start('n3');
    town.run(2_000);
    expect(new Set(records(town)).size).toBe(1);
  });

  it('without --form a node waits to be added, and the others wait for it', () => {
    const town = new Town(['n1', 'n2']);
    const third = town.add('n3', ['n1', 'n2', 'n3'], { form: false });
    town.run(5_000);
    expect(third.logs.join()).toContain('started without --form');
    expect(third.formed).toBeUndefined();
  });

  it('refuses members whose clocks differ by a minute, on all that can see it', () => {
    const town = new Town();
    town.member('n2').wallAheadMs = -60_000;
    town.run(5_000);
    expect(records(town)).toEqual([undefined, undefined, undefined]);
    expect(town.member('n1').refused).toMatch(/wall clocks of n2 and of this node are 60 s apart/);
    expect(town.member('n2').refused).toMatch(/60 s apart/);
  });

  it('refuses a clock from before the release, and a floor that no clock has', () => {
    const early = new Town(['n1']);
    early.member('n1').wallAheadMs = -400 * 86_400_000;
    early.run(3_000);
    expect(early.member('n1').refused).toContain('before the date of this release');
    const floor = ((START_UNIX_MS + 20 * 366 * 86_400_000) * 1_000) as Revision;
    const far = new Town(['n1'], { floor });
    far.run(3_000);
    expect(far.member('n1').refused).toContain('more than 10 years ahead');
  });

  it('begins at the floor when that is ahead of the clock', () => {
    const floor = ((START_UNIX_MS + 86_400_000) * 1_000) as Revision;
    const town = new Town(['n1'], { floor });
    town.run(1_000);
    expect(town.member('n1').formed?.history.base).toBe(floor);
  });

  it('refuses another cluster name, and another list of members', () => {
    const names = new Town(['n1']);
    names.stop('n1');
    names.add('n1', ['n1', 'n2']);
    names.add('n2', ['n1', 'n2'], { cluster: 'other' });
    names.run(3_000);
    expect(names.member('n1').refused).toContain('belongs to cluster "other"');
    const lists = new Town([]);
    lists.add('n1', ['n1', 'n2']);
    lists.add('n2', ['n1', 'n2', 'n3']);
    lists.run(3_000);
    expect(lists.member('n1').refused).toContain('another list of members');
  });

  it('a member that crashed before it stored the record gets it from the others', () => {
    const town = new Town();
    town.down.add('n1>n3').add('n3>n1').add('n3>n2').add('n2>n3');
    town.run(500);
    town.down.clear();
    town.stop('n3');
    town.start('n3');
    town.run(2_000);
    const [first] = records(town);
    expect(records(town)).toEqual([first, first, first]);
  });

  it('a former that crashed after storing goes on with the record that it has', () => {
    const town = new Town();
    // The others accept its record and crash before theirs is stored.
    town.storing = (name) => name === 'n1';
    town.run(1_000);
    const written = town.member('n1').genesis;
    expect(written).toBeDefined();
    expect(records(town)).toEqual([written?.incarnation, undefined, undefined]);
    for (const name of ['n1', 'n2', 'n3']) town.stop(name);
    town.storing = () => true;
    for (const name of ['n2', 'n3', 'n1']) town.start(name);
    town.run(2_000);
    expect(new Set(records(town))).toEqual(new Set([written?.incarnation]));
  });

  it('refuses a wiped member and names the next step', () => {
    const town = new Town();
    town.run(2_000);
    const before = records(town)[0];
    town.stop('n2');
    town.wipe('n2');
    town.start('n2');
    town.run(3_000);
    expect(town.member('n2').formed).toBeUndefined();
    expect(town.member('n2').refused).toMatch(/the disk was wiped or replaced.*have the member replaced/s);
    expect(town.member('n1').formed?.incarnation).toBe(before);
  });

  it('says that all may be emptied only while fewer than a majority hold the record', () => {
    const town = new Town();
    town.run(2_000);
    // Only n1 keeps its record: n2 and n3 lost theirs before anything could be granted.
    for (const name of ['n2', 'n3']) {
      town.stop(name);
      town.wipe(name);
    }
    town.start('n2');
    town.start('n3');
    town.run(3_000);
    expect(town.member('n2').refused).toMatch(
      /Only 1 of 3 members hold its record. If the others never did, .* nothing was granted/,
    );
  });

  it('a whole cluster that was wiped forms again with a greater base and another incarnation', () => {
    const town = new Town();
    town.run(2_000);
    const before = town.member('n1').formed;
    for (const name of ['n1', 'n2', 'n3']) {
      town.stop(name);
      town.wipe(name);
    }
    for (const name of ['n1', 'n2', 'n3']) town.start(name);
    town.run(2_000);
    const after = town.member('n1').formed;
    expect(after?.incarnation).not.toBe(before?.incarnation);
    expect(after?.history.base ?? 0).toBeGreaterThan(before?.history.base ?? Infinity);
  });

  it('does not form beside a living cluster of that name', () => {
    const town = new Town();
    town.run(2_000);
    const stranger = town.add('n0', ['n0', 'n1', 'n2', 'n3']);
    town.run(3_000);
    expect(stranger.formed).toBeUndefined();
    expect(stranger.refused).toContain('exists already');
  });

  it('does not form when a member of a living cluster of that name asks, whom the list does not name (S10)', () => {
    const town = new Town(['n1', 'n2', 'n3', 'n4', 'n5']);
    town.run(2_000);
    // Three lose their disks and are started with an old list; of the other two one is restarted and asks everybody.
    for (const name of ['n1', 'n2', 'n3']) {
      town.stop(name);
      town.wipe(name);
      const { options } = town.member(name);
      const members = options.members.filter(({ node }) => ['n1', 'n2', 'n3'].includes(node));
      town.member(name).options = { ...options, members };
      town.start(name);
    }
    town.stop('n4');
    town.start('n4');
    town.down.add('n1>n3').add('n2>n3');
    town.run(1_500);
    town.down.clear();
    town.run(3_000);
    for (const name of ['n1', 'n2', 'n3']) {
      expect(town.member(name).formed, name).toBeUndefined();
      expect(town.member(name).refused, name).toContain('put the old disk back');
    }
  });

  it('refuses when any two clocks are too far apart, not only from the one that writes', () => {
    const town = new Town();
    town.member('n2').wallAheadMs = -6_000;
    town.member('n3').wallAheadMs = 6_000;
    // The two do not see each other.
    town.down.add('n2>n3').add('n3>n2');
    town.run(5_000);
    expect(records(town)).toEqual([undefined, undefined, undefined]);
    expect(town.member('n1').refused).toContain('12 s apart');
  });
});
