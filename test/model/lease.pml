/*
 * Grant, renewal, checkpoint, expiry, leader change, crash, pause and re-forming, in every order of events within the
 * bounds: three members, two clients, one domain. README.md says what is left out and why that is sound.
 *
 * One process; each of its alternatives is one step of one participant. Nothing is obliged to happen: a paused member
 * is one that takes no step, a lost message one that is never taken. Time is told by timers that count down, so it has
 * no bound; terms and the length of logs have.
 */
#ifndef TTL
#define TTL 2
#endif
#ifndef TERMS
#define TERMS 3
#endif
#ifndef LOG
#define LOG 6
#endif
#define MEMBERS 3
#define CLIENTS 2

/* Never set: an assertion that fails prints one of these names. */
bool NoOverlap;     /* 1: two clients act as holders at one time (contract 3) */
bool NoEarlyExpiry; /* 2: a lease ended by time before its holder's safe deadline (contract 3) */
bool NoDeadRenewal; /* 3: "you hold it" was said of a lease that another leader had ended (research 5.4) */
bool TokensRise;    /* 4: a grant's token is not above all before it, of earlier incarnations too (contract 1) */
bool OneLease;      /* 5: at a position of the log a second lease of the domain lives (contract 2) */
bool Durable;       /* 6: a leader lacks what was committed (contract 4) */
bool OneLeader;     /* 7: two members lead in one term (raft.md 1.3) */
bool Reached;       /* no invariant: the event REACH happened, see README.md */

/* With -DONLY=n claim n alone is checked: to see one fail behind another that fails earlier. */
#ifndef ONLY
#define ONLY 0
#endif
#define broken(number, claim) if :: ONLY == 0 || ONLY == number -> assert(claim) :: else fi

/* Log entries, each one number. tok: index of the grant that is meant, of an Acquire the client + 1. */
#define NOOP 1
#define ACQUIRE 2
#define CHECKPOINT 3 /* arg: time left */
#define VOID 4
#define EXPIRE 5 /* arg: version; from: the proposer's term */
#define END_HOLD 6
#define entry(kind, term, tok, arg, from) ((kind) | ((term) << 3) | ((tok) << 5) | ((arg) << 9) | ((from) << 12))
#define kindOf(e) ((e) & 7)
#define termOf(e) (((e) >> 3) & 3)
#define tokOf(e) (((e) >> 5) & 15)
#define argOf(e) (((e) >> 9) & 7)
#define fromOf(e) (((e) >> 12) & 3)

/* Members. Term, vote (by the term) and log are on the disk. Index i lies at place i - 1. */
byte term[MEMBERS];
byte length[MEMBERS];
short logs[18];
#if MEMBERS * LOG > 18
#error "logs is too short"
#endif

/* A leadership (src/replica/leading.ts): all zero while the member does not lead. */
bool leads[MEMBERS];
bool ready[MEMBERS];   /* its own no-op is applied */
byte first[MEMBERS];   /* place of that no-op */
byte applied[MEMBERS]; /* greatest index applied */
byte owner[MEMBERS];   /* applied state: holder + 1, or 0 for free */
byte token[MEMBERS];   /* ... index of the grant */
byte version[MEMBERS]; /* ... Checkpoints and Voids of this lease so far */
byte noted[MEMBERS];   /* ... its checkpoint, time left + 1, or 0 for none */
bool closed[MEMBERS];  /* ... grants are held back until EndHold */
byte left[MEMBERS];    /* lease clock: time until expiry; while closed, until the hold is over */
byte decided[MEMBERS]; /* index of its newest Checkpoint of the lease (src/replica/clock.ts, checkpointIndex) */
byte open[MEMBERS];    /* index of its Expire or EndHold without an outcome */
byte round[MEMBERS];   /* confirmation round: 0 none under way, 1 sent, 2 answered by a majority, its answers on their way */

/* Clients. A call arrives when it is sent: a delay would only take from what it gives. */
byte called[CLIENTS]; /* the member + 1, or 0 */
byte age[CLIENTS];    /* time since the call was sent */
byte waits[CLIENTS];  /* for a round: 0 no, 1 the next, 2 the one under way */
byte needs[CLIENTS];  /* for the entry at this index */
byte safe[CLIENTS];   /* time until the safe deadline; above 0 the client acts as holder */
byte holds[CLIENTS];  /* index of the grant that it acts under, 0 for one of an earlier incarnation */

/* What nobody sees as a whole: the committed history, as far as any leader has applied it. */
byte committed;
byte liveOwner;
byte liveToken;
byte issued; /* greatest token of all incarnations */
byte base;   /* token = base + index */
bool formedAgain;
bool begun;  /* somebody has called; before that the clients are alike */
short stray; /* an Expire that was decided: any later leader may append it again */

#ifdef CLOCK_KEPT
byte keptToken[MEMBERS];
byte keptLeft[MEMBERS];
#endif

hidden byte i;
hidden byte to;
hidden short e;
hidden byte effect;

#define at(n, place) logs[(n) * LOG + (place)]
#define has(v, n, place) (length[v] > (place) && at(v, place) == at(n, place))
#define full(n) (length[n] == LOG)
#define lastTerm(n) (length[n] == 0 -> 0 : termOf(at(n, length[n] - 1)))
#define append(n, x) at(n, length[n]) = x; length[n]++
#define down(timer) timer = (timer > 0 -> timer - 1 : 0)

#ifdef REACH
#define reached(event) if :: REACH == event -> assert(Reached) :: else fi
#else
#define reached(event) skip
#endif

/* A lease is flagged from the moment its Checkpoint is decided, whoever wrote it (F5; src/replica/renewal.ts, isFlagged). */
#if defined(NO_VOID)
#define flagged(n) false
#elif defined(FLAG_AT_APPLY)
#define flagged(n) (noted[n] != 0)
#elif defined(ONLY_WRITER_VOIDS)
#define flagged(n) (decided[n] > applied[n] || noted[n] != 0 && decided[n] != 0)
#else
#define flagged(n) (decided[n] > applied[n] || noted[n] != 0)
#endif

/* An open Expire: nothing is answered for the lease before its outcome (L2, S9.4). */
#ifdef EXPIRING_RENEWED
#define expiring(n) false
#else
#define expiring(n) (open[n] != 0)
#endif

inline endCall(c) {
  called[c] = 0; age[c] = 0; waits[c] = 0; needs[c] = 0
}

/* Calls, rounds and the lease clock go with the leadership (S9.1; src/replica/leading.ts, followRole). */
inline stopLeading(n) {
#ifdef CLOCK_KEPT
  keptToken[n] = token[n]; keptLeft[n] = left[n];
#endif
  leads[n] = 0; ready[n] = 0; first[n] = 0; applied[n] = 0; owner[n] = 0; token[n] = 0; version[n] = 0;
  noted[n] = 0; closed[n] = 0; left[n] = 0; decided[n] = 0; open[n] = 0; round[n] = 0;
  i = 0;
  do
  :: i < CLIENTS ->
    if
    :: called[i] == n + 1 -> endCall(i)
    :: else
    fi;
    i++
  :: else -> break
  od
}

/* A message of a term that is not lower (src/raft/receive.ts). */
inline follow(v, t) {
  if
  :: leads[v] -> stopLeading(v)
  :: else
  fi;
  term[v] = t
}

/* The first leader that applies an index shows what the history is. */
inline judge(n) {
  committed = applied[n];
  if
  :: effect && kindOf(e) == ACQUIRE ->
    if
    :: liveOwner != 0 -> broken(5, OneLease)
    :: else
    fi;
    if
    :: base + applied[n] <= issued -> broken(4, TokensRise)
    :: else
    fi;
    if
    :: formedAgain -> reached(7)
    :: !formedAgain && issued != 0 -> reached(3)
    :: else
    fi;
    issued = base + applied[n]; liveOwner = owner[n]; liveToken = token[n]
  :: effect && kindOf(e) == EXPIRE ->
    if
    :: safe[owner[n] - 1] > 0 && holds[owner[n] - 1] == token[n] -> broken(2, NoEarlyExpiry)
    :: else
    fi;
    liveOwner = 0; liveToken = 0
  :: else
  fi
}

inline renewClock(n, c) {
  if
  :: left[n] < TTL - age[c] -> left[n] = TTL - age[c]
  :: else
  fi
}

/* Appended after the call arrived; the answer waits until it is applied (F5; src/replica/renewal.ts, renewOne). */
inline voidIfFlagged(n, c) {
  if
  :: flagged(n) && full(n) -> endCall(c)
  :: flagged(n) && !full(n) ->
    append(n, entry(VOID, term[n], token[n], 0, 0));
#ifndef VOID_NOT_AWAITED
    needs[c] = length[n]
#endif
  :: else
  fi
}

/* A call of c waited for the entry just applied (src/replica/applying.ts, settle). */
inline settleCall(n, c) {
  if
  :: called[c] == n + 1 && needs[c] == applied[n] ->
    needs[c] = 0;
    if
    :: kindOf(e) == VOID && owner[n] == c + 1 -> reached(2)
    :: kindOf(e) == ACQUIRE && owner[n] != c + 1 -> endCall(c)
    :: kindOf(e) == ACQUIRE && owner[n] == c + 1 && effect -> left[n] = TTL - age[c]
    /* The id is known: answered from the state now, which is a renewal (design 8). */
    :: kindOf(e) == ACQUIRE && owner[n] == c + 1 && !effect && open[n] == 0 -> renewClock(n, c); voidIfFlagged(n, c)
    :: kindOf(e) == ACQUIRE && owner[n] == c + 1 && !effect && open[n] != 0 -> endCall(c)
    :: else
    fi
  :: else
  fi
}

/* Expire is compare-and-set (src/lease/finish.ts). */
#ifdef EXPIRE_OF_ANY_TERM
#define ofItsTerm(e) true
#else
#define ofItsTerm(e) (fromOf(e) == termOf(e))
#endif
#ifdef EXPIRE_OF_ANY_VERSION
#define unchanged(n, e) true
#else
#define unchanged(n, e) (argOf(e) == version[n])
#endif

/* The entry at index applied + 1 (src/lease/apply.ts), then who waits for it. */
inline applyNext(n) {
  e = at(n, applied[n]);
  applied[n]++;
  effect = 0;
  if
  :: kindOf(e) == ACQUIRE && owner[n] == 0 && !closed[n] ->
    owner[n] = tokOf(e); token[n] = applied[n]; left[n] = TTL; effect = 1
  :: kindOf(e) == CHECKPOINT && owner[n] != 0 && tokOf(e) == token[n] ->
    noted[n] = argOf(e) + 1; version[n] = (version[n] + 1) & 7
  :: kindOf(e) == VOID && owner[n] != 0 && tokOf(e) == token[n] ->
    noted[n] = 0; version[n] = (version[n] + 1) & 7
  :: kindOf(e) == EXPIRE && owner[n] != 0 && tokOf(e) == token[n] ->
    if
    :: !ofItsTerm(e) -> reached(5)
    :: ofItsTerm(e) && !unchanged(n, e) -> reached(6)
    :: else -> effect = 1
    fi
  :: kindOf(e) == END_HOLD && fromOf(e) == termOf(e) -> closed[n] = 0
  :: else
  fi;
  if
  :: applied[n] > committed -> judge(n)
  :: else
  fi;
  if
  :: effect && kindOf(e) == EXPIRE ->
    owner[n] = 0; token[n] = 0; version[n] = 0; noted[n] = 0; decided[n] = 0; left[n] = 0
  :: else
  fi;
  if
  :: applied[n] == committed && (owner[n] != liveOwner || token[n] != liveToken) -> broken(6, Durable)
  :: else
  fi;
  if
  :: open[n] == applied[n] -> open[n] = 0
  :: else
  fi;
  settleCall(n, 0);
  settleCall(n, 1)
}

/* Its no-op is applied: the clock starts, the lease has its full time or its checkpoint (S9; becomeReady). */
inline becomeReady(n) {
  ready[n] = 1;
  if
  :: closed[n] -> left[n] = TTL
  :: !closed[n] && owner[n] == 0 -> left[n] = 0
#ifdef CLOCK_KEPT
  :: !closed[n] && owner[n] != 0 && keptToken[n] == token[n] -> left[n] = keptLeft[n]
#endif
  :: else ->
    if
    :: noted[n] == 0 -> left[n] = TTL
    :: else -> left[n] = noted[n] - 1; reached(4)
    fi
  fi
#ifdef CLOCK_KEPT
  ; keptToken[n] = 0; keptLeft[n] = 0
#endif
}

/* The first index that a leader can count: its own no-op, then one by one. Nothing of earlier terms (raft.md 1.3). */
#define countable(n) (applied[n] <= first[n] -> first[n] : applied[n])

/* Own disk and one other member: a majority. */
inline commit(n) {
  to = countable(n);
  do
  :: applied[n] <= to -> applyNext(n)
  :: else -> break
  od;
  if
  :: !ready[n] -> becomeReady(n)
  :: else
  fi
}

/* Real votes of n and v in one step; a vote is durable before it is spoken of (raft.md 1.3; src/raft/election.ts). */
#ifdef VOTE_FOR_ANY_LOG
#define upToDate(n, v) true
#else
#define upToDate(n, v) (lastTerm(n) > lastTerm(v) || lastTerm(n) == lastTerm(v) && length[n] >= length[v])
#endif
#define nextTerm(n, v) ((term[n] > term[v] -> term[n] : term[v]) + 1)
/* Before a first term the members are alike: the first leader is 0, elected by 1. */
#define canElect(n, v, w) (!leads[n] && nextTerm(n, v) <= TERMS && !full(n) && upToDate(n, v) && (term[0] != 0 || n == 0 && v == 1))
inline elect(n, v, w) {
  to = nextTerm(n, v);
  if
  :: leads[w] && term[w] == to -> broken(7, OneLeader)
  :: else
  fi;
  if
  :: length[n] < committed -> broken(6, Durable)
  :: else
  fi;
  term[n] = to;
  follow(v, term[n]);
  leads[n] = 1;
#ifndef NO_HOLD
  closed[n] = formedAgain;
#endif
  first[n] = length[n];
  append(n, entry(NOOP, term[n], 0, 0, 0));
#ifdef SERVES_BEFORE_NO_OP
  to = (committed < first[n] -> committed : first[n]);
  do
  :: applied[n] < to -> applyNext(n)
  :: else -> break
  od;
  becomeReady(n)
#endif
}

/* One entry, the first at which v differs; what v had there and after is cut (src/raft/follower.ts). */
#define canAppend(n, v) (leads[n] && term[v] <= term[n] && !(length[v] == length[n] && has(v, n, length[n] - 1)))
inline appendTo(n, v) {
  follow(v, term[n]);
  to = 0;
  do
  :: to < length[n] && has(v, n, to) -> to++
  :: else -> break
  od;
  /* All that n has is there: what v has beyond it is of an earlier term and goes when n appends more. */
  if
  :: to < length[n] ->
    at(v, to) = at(n, to);
    i = to + 1;
    do
    :: i < length[v] -> at(v, i) = 0; i++
    :: else -> break
    od;
    length[v] = to + 1
  :: else
  fi
}

/* A member answers the round that is under way; that needs no disk (research 5.4; src/raft/rounds.ts). */
#define canConfirm(n, v) (leads[n] && round[n] == 1 && term[v] <= term[n])
inline confirm(n, v) {
  follow(v, term[n]);
  round[n] = 2
}

/* The answers are in: who waited for this round goes on, who came after it was sent gets one of its own. */
inline roundOver(n) {
  round[n] = 0;
  i = 0;
  do
  :: i < CLIENTS ->
    if
    :: called[i] == n + 1 && waits[i] == 2 -> waits[i] = 0
    :: called[i] == n + 1 && waits[i] == 1 -> waits[i] = 2; round[n] = 1
    :: else
    fi;
    i++
  :: else -> break
  od
}

/* An Acquire, or a renewal (Renew and a repeated Acquire are alike, design 8). The first to call is client 0. */
#define canCall(n, c) (ready[n] && called[c] == 0 && (begun || c == 0) && !closed[n] && (owner[n] == 0 && !full(n) || owner[n] == c + 1 && !expiring(n)))
inline call(n, c) {
  begun = 1;
  called[c] = n + 1;
  if
  :: owner[n] == 0 -> append(n, entry(ACQUIRE, term[n], c + 1, 0, 0)); needs[c] = length[n]
  :: else ->
    renewClock(n, c);
#if defined(NO_ROUND)
    skip;
#elif defined(ROUND_UNDER_WAY_COUNTS)
    waits[c] = 2;
    if
    :: round[n] == 0 -> round[n] = 1
    :: else
    fi;
#else
    if
    :: round[n] != 0 -> waits[c] = 1
    :: else -> waits[c] = 2; round[n] = 1
    fi;
#endif
    voidIfFlagged(n, c)
  fi
}

/* The last look, then "you hold it". A later answer gives less, so it needs no way to the client. */
#define canAnswer(c) (called[c] != 0 && waits[c] == 0 && needs[c] == 0 && !expiring(called[c] - 1))
inline answer(c) {
  to = called[c] - 1;
  if
  :: owner[to] == c + 1 ->
    if
    :: liveOwner != owner[to] || liveToken != token[to] -> broken(3, NoDeadRenewal)
    :: else
    fi;
#ifdef CLOCK_FROM_ANSWER
    safe[c] = TTL;
#else
    safe[c] = (safe[c] > TTL - age[c] -> safe[c] : TTL - age[c]);
#endif
    holds[c] = token[to];
    if
    :: token[to] <= first[to] -> reached(1)
    :: else
    fi;
    if
    :: safe[0] > 0 && safe[1] > 0 -> broken(1, NoOverlap)
    :: else
    fi
  :: else
  fi;
  endCall(c)
}

/* Half of the TTL is over (design 7). What is left is rounded up: the time on, what is left of it, is whole here. */
#ifdef CHECKPOINT_ROUNDED_DOWN
#define remaining(n) (left[n] - 1)
#else
#define remaining(n) (left[n])
#endif
#define canCheckpoint(n) (ready[n] && owner[n] != 0 && open[n] == 0 && decided[n] <= applied[n] && noted[n] == 0 && left[n] > 0 && left[n] <= TTL / 2 && !full(n))
inline checkpoint(n) {
  append(n, entry(CHECKPOINT, term[n], token[n], remaining(n), 0));
  decided[n] = length[n]
}

#define canExpire(n) (ready[n] && owner[n] != 0 && open[n] == 0 && left[n] == 0 && !full(n))
inline expire(n) {
  stray = entry(EXPIRE, term[n], token[n], version[n], term[n]);
  append(n, stray);
  open[n] = length[n]
}

/* An Expire of an earlier term reaches the log again (a late proposal of this member, a copy; L1). */
#define canRepeat(n) (ready[n] && stray != 0 && fromOf(stray) < term[n] && tokOf(stray) == token[n] && !full(n))
inline repeat(n) {
  append(n, entry(EXPIRE, term[n], tokOf(stray), argOf(stray), fromOf(stray)));
  stray = 0
}

#define canEndHold(n) (ready[n] && closed[n] && open[n] == 0 && left[n] == 0 && !full(n))
inline endHold(n) {
  append(n, entry(END_HOLD, term[n], 0, 0, term[n]));
  open[n] = length[n]
}

/* Everybody's clock goes on. Leaders measure TTL × 1.01 + ε, clients TTL × 0.99 − margin: one TTL here. */
#define anyTimer (left[0] + left[1] + left[2] + safe[0] + safe[1] + called[0] + called[1] > 0)
inline tickClient(c) {
  down(safe[c]);
  if
  :: safe[c] == 0 -> holds[c] = 0
  :: else
  fi;
  if
  :: called[c] != 0 ->
    age[c]++;
    if
    :: age[c] >= TTL -> endCall(c)
    :: else
    fi
  :: else
  fi
}
inline tick() {
  down(left[0]); down(left[1]); down(left[2]);
#ifdef CLOCK_KEPT
  down(keptLeft[0]); down(keptLeft[1]); down(keptLeft[2]);
#endif
  tickClient(0);
  tickClient(1)
}

/* All members are emptied and form with --hold. Contract 1's condition: the greatest clock is ahead of all tokens. */
inline formAgain(greatest, own) {
  to = 0;
  do
  :: to < MEMBERS -> stopLeading(to); term[to] = 0; length[to] = 0; to++
  :: else -> break
  od;
  i = 0;
  do
  :: i < MEMBERS * LOG -> logs[i] = 0; i++
  :: else -> break
  od;
  committed = 0; liveOwner = 0; liveToken = 0; stray = 0; holds[0] = 0; holds[1] = 0;
#if defined(BASE_NOT_RAISED)
  skip;
#elif defined(BASE_OF_ONE_CLOCK)
  base = own;
#else
  base = greatest;
#endif
  formedAgain = 1
}

/* Crash, stall, lost quorum. */
#ifdef VOTE_NOT_DURABLE
#define canStop(n) (leads[n] || term[n] > lastTerm(n))
#else
#define canStop(n) leads[n]
#endif
inline stop(n) {
  stopLeading(n);
#ifdef VOTE_NOT_DURABLE
  term[n] = lastTerm(n)
#endif
}

/* A step ends in a statement, so that the loops in it end inside it. */
#define STEP(guard, action) :: d_step { guard -> action; skip }

#define MEMBER(n, v, w) \
  STEP(canElect(n, v, w), elect(n, v, w)) \
  STEP(canElect(n, w, v), elect(n, w, v)) \
  STEP(canAppend(n, v), appendTo(n, v)) \
  STEP(canAppend(n, w), appendTo(n, w)) \
  STEP(leads[n] && (has(v, n, countable(n)) || has(w, n, countable(n))) && length[n] > countable(n), commit(n)) \
  STEP(canConfirm(n, v), confirm(n, v)) \
  STEP(canConfirm(n, w), confirm(n, w)) \
  STEP(round[n] == 2, roundOver(n)) \
  STEP(canCall(n, 0), call(n, 0)) \
  STEP(canCall(n, 1), call(n, 1)) \
  STEP(canCheckpoint(n), checkpoint(n)) \
  STEP(canExpire(n), expire(n)) \
  STEP(canRepeat(n), repeat(n)) \
  STEP(canEndHold(n), endHold(n)) \
  STEP(canStop(n), stop(n))

active proctype world() {
  do
  MEMBER(0, 1, 2)
  MEMBER(1, 0, 2)
  MEMBER(2, 0, 1)
  STEP(canAnswer(0), answer(0))
  STEP(canAnswer(1), answer(1))
  /* The client gives the call up; it may call again. */
  STEP(called[0] != 0, endCall(0))
  STEP(called[1] != 0, endCall(1))
  STEP(anyTimer, tick())
#ifdef FORM_AGAIN
  STEP(begun && !formedAgain, formAgain(issued, issued))
  STEP(begun && !formedAgain, formAgain(issued, base))
#endif
  od
}
