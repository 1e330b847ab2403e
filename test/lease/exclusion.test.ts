/** The assertions that stay on in production: no domain twice at one revision, no revision skipped or repeated. */
import { describe, expect, it } from 'vitest';
import { AssertionFailed } from '../../src/base/assert.js';
import type { Revision } from '../../src/base/revision.js';
import { apply } from '../../src/lease/apply.js';
import { end, finishUngranted, grant, setCheckpoint } from '../../src/lease/change.js';
import type { Lease } from '../../src/lease/types.js';
import { ASKED, domain, emptyState, granted, id, next, release, rev } from './kit.js';

describe('the revision of an entry', () => {
  it.each([0, 1, 3])('is refused when it is not the next one (offset %i after 1)', (offset) => {
    const state = emptyState();
    next(state, undefined);
    expect(() => apply(state, { revision: rev(offset), term: 1 }, undefined)).toThrow(AssertionFailed);
    expect(state.revision).toBe(rev(1));
  });

  it('is taken by a no-op too, so that the next grant has its own', () => {
    const state = emptyState();
    next(state, undefined);
    next(state, undefined);
    expect(granted(state, 'a', 1).token).toBe(rev(3));
  });
});

describe('a grant', () => {
  function lease(request: number, token: Revision): Lease {
    return { ...granted(emptyState(), 'a', request), token };
  }

  it('of a domain that is held fails', () => {
    const state = emptyState();
    granted(state, 'a', 1);
    state.revision = rev(2);
    expect(() => {
      grant(state, lease(2, rev(2)));
    }).toThrow(/while token \d+ is live/);
  });

  it('of a domain that was granted and given up within the same entry fails at the end of the first (L11)', () => {
    const state = emptyState();
    state.revision = rev(1);
    const first = lease(1, rev(1));
    grant(state, first);
    expect(() => {
      end(state, first, ASKED, 'released');
    }).toThrow(/not after its grant/);
  });

  it('with a token that an ended lease had fails, whatever let that one end (L11)', () => {
    const state = emptyState();
    const first = granted(state, 'a', 1);
    next(state, release(first));
    state.revision = first.token;
    expect(() => {
      grant(state, lease(2, first.token));
    }).toThrow(/is granted at \d+ a second time/);
  });

  it('with a token that is not the revision fails', () => {
    const state = emptyState();
    state.revision = rev(2);
    expect(() => {
      grant(state, lease(1, rev(1)));
    }).toThrow(/has token/);
  });

  it.each(['live', 'over'])('to a request that is %s fails', (what) => {
    const state = emptyState();
    const other = granted(state, 'b', 1);
    if (what === 'over') next(state, release(other));
    state.revision = rev(9);
    expect(() => {
      grant(state, lease(1, rev(9)));
    }).toThrow(/is granted a second time/);
  });
});

describe('an end', () => {
  it('of a lease that is not live fails', () => {
    const state = emptyState();
    const first = granted(state, 'a', 1);
    next(state, release(first));
    state.revision = rev(3);
    expect(() => {
      end(state, first, ASKED, 'expired');
    }).toThrow(/is not live/);
  });

  it('of a lease as it was before a checkpoint fails: the caller looked at an old state', () => {
    const state = emptyState();
    const first = granted(state, 'a', 1);
    state.revision = rev(2);
    setCheckpoint(state, first, 1);
    expect(() => {
      end(state, first, ASKED, 'expired');
    }).toThrow(/is not live/);
  });

  it('of a request that is known, as one that never came, fails', () => {
    const state = emptyState();
    granted(state, 'a', 1);
    state.revision = rev(2);
    const over = (request: number): void => {
      finishUngranted(state, { requestId: id(request), domain: domain('a'), owner: '' }, undefined, 'withdrawn');
    };
    expect(() => {
      over(1);
    }).toThrow(/holds a and ends ungranted/);
    over(2);
    expect(() => {
      over(2);
    }).toThrow(/finishes a second time/);
  });
});

describe('what an entry says it did', () => {
  it('must be in the state afterwards: a grant that was lost fails', () => {
    const state = emptyState();
    state.leases.set = () => state.leases;
    expect(() => granted(state, 'a', 1)).toThrow(/the grant of a .* is not what the state holds/);
  });

  it('must be gone from the state afterwards: an end that was lost fails', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    state.leases.delete = () => true;
    expect(() => next(state, release(lease))).toThrow(/the end of lease \d+ of a .* is not what the state holds/);
  });
});
