-- Fencing for PostgreSQL 14 and later, for clients in any language. Version 2.
--
-- Apply this file as it is, as often as you like: it makes what is missing and renews what is older, and refuses when
-- a newer version is there. Tables that refuse what was not advanced need protect.sql behind it:
--   psql --single-transaction -v ON_ERROR_STOP=1 -f fencing.sql -f protect.sql
-- Whoever applies it owns it all: best a role without login that owns the guarded tables too, never the application's.
--
--   select fencing.advance('orders/eu', 1796000000000041);    -- first in every guarded transaction; FT001 when stale
--
-- Error codes: FT001 stale. FT002 write to a protected table without advance (protect.sql). FT003 the fence belongs to
-- another issuer. FT004 the equal token of another history. FT005 the token is too far ahead of the fence.

-- Two that apply it at once follow one another.
select pg_catalog.pg_advisory_xact_lock(1718969203, 0);

create schema if not exists fencing;
revoke all on schema fencing from public;

create table if not exists fencing.settings (
  only_row boolean primary key default true check (only_row),
  version integer not null,
  -- How far one raise may go. Tokens of Fencepost are microseconds: 20 years, twice the farthest floor of a cluster.
  max_jump bigint not null default 631152000000000 check (max_jump > 0)
);
do $$
begin
  if exists (select from fencing.settings s where s.version > 2) then
    raise exception 'this database has a newer version of fencing than this file: apply the newer file';
  end if;
  insert into fencing.settings (version) values (2) on conflict (only_row) do update set version = 2;
end
$$;

-- The greatest token accepted in each domain. It outlives the data, so nothing here refers to it, and nothing expires.
create table if not exists fencing.fence (
  domain text collate "C" primary key check (pg_catalog.octet_length(domain) between 1 and 255),
  token bigint not null check (token > 0),
  issuer text collate "C",
  incarnation text collate "C",
  raised_at timestamptz not null default pg_catalog.clock_timestamp()
) with (fillfactor = 50);

-- What operators changed by hand.
create table if not exists fencing.history (
  at timestamptz not null default pg_catalog.clock_timestamp(),
  role name not null default session_user,
  domain text not null,
  token_before bigint,
  token_after bigint,
  issuer_before text,
  issuer_after text,
  note text not null
);

-- Keeps successors out for at most this long, in milliseconds, whatever becomes of the client: the whole transaction
-- where the server can limit that (17 and later), otherwise a third for each of the three parts that there are: the client's
-- own work, which the client has to limit, one statement with its waits for locks, and idling. Gives the time that the client
-- may work. Limits that are lower already stay.
create or replace function fencing.limit_transaction(ms integer) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  limits text[] := array['transaction_timeout'];
  part integer := ms;
  each text;
  -- Assigned instead of performed: an expression costs a tenth of a query, and this is in the way of every transaction.
  was text;
begin
  if ms is null or ms < 1 then
    raise exception 'limit_transaction: ms must be at least 1' using errcode = '22023';
  end if;
  if current_setting('server_version_num')::integer < 170000 then
    limits := array['statement_timeout', 'idle_in_transaction_session_timeout'];
    part := greatest(ms / 3, 1);
  end if;
  foreach each in array limits loop
    was := current_setting(each);
    if was = '0' or extract(epoch from was::interval) * 1000 > part then
      was := set_config(each, part::text, true);
    end if;
  end loop;
  return part;
end
$$;

-- Raises the fence of a domain to this token unless a greater one was accepted, and keeps it there until the
-- transaction ends. Says how that went instead of failing; writes to protected tables are judged by it. `status`:
-- applied, or stale (FT001), issuer (FT003), incarnation (FT004), jump (FT005). `fence`: the token that stands now.
-- `earlier_incarnation`: set when this raise is the first of another history. `message`: for people, unless applied.
-- Issuer and incarnation that are not given are not compared, and an issuer that is stored stays.
--
-- Transactions under the equal token run side by side: they share a lock that a raise takes for itself. It is an advisory
-- lock because these are fair: a raise waits only for the transactions that were there before it. With row locks, a
-- stream of stale holders that do not know it yet would keep their successor out. Every change of a fence takes it.
create or replace function fencing.try_advance(
  domain text, token bigint, issuer text default null, incarnation text default null,
  out status text, out fence bigint, out earlier_incarnation text, out message text
) language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  old fencing.fence;
  key integer := hashtext(try_advance.domain);
  cap bigint;
  noted text;
begin
  if try_advance.domain is null or try_advance.token is null or try_advance.token < 1
    or octet_length(try_advance.domain) not between 1 and 255 then
    raise exception 'not a lease: domain must have 1 to 255 bytes, token must be 1 to 2^63 - 1' using errcode = '22023';
  end if;

  -- Without a lock: only to know which lock to take, and that what is stale already need not wait.
  select * into old from fencing.fence f where f.domain = try_advance.domain;
  if old.token is null or old.token <= try_advance.token then
    if old.token = try_advance.token and (old.incarnation is not null or try_advance.incarnation is null)
      and (old.issuer is not null or try_advance.issuer is null) then
      perform pg_advisory_xact_lock_shared(1718969203, key);
    else
      perform pg_advisory_xact_lock(1718969203, key);
    end if;
    -- A new statement, so it sees what was committed before the lock was ours. A transaction with one snapshot for all
    -- its statements does not; the row lock makes it fail with 40001 where it would be wrong. What such a transaction reads
    -- itself may be older than a raise that had to wait: raise in a transaction of its own first.
    if current_setting('transaction_isolation') = 'read committed' then
      select * into old from fencing.fence f where f.domain = try_advance.domain;
    else
      select * into old from fencing.fence f where f.domain = try_advance.domain for share;
    end if;
  end if;

  fence := old.token;
  if old.issuer <> try_advance.issuer then
    status := 'issuer';
    message := format('the fence of %s belongs to %s, this lease to %s; their tokens do not compare. If the domain has '
      'moved for good, and nobody writes under the old cluster any more, call fencing.allow_issuer.',
      try_advance.domain, old.issuer, try_advance.issuer);
  elsif old.token > try_advance.token then
    status := 'stale';
    message := format('token %s of %s is stale: %s was accepted before. Stop the work of this lease.',
      try_advance.token, try_advance.domain, old.token);
  elsif old.token = try_advance.token and old.incarnation <> try_advance.incarnation then
    status := 'incarnation';
    message := format('token %s of %s was accepted in incarnation %s, and this lease has it in %s: two histories issue '
      'the same tokens. Stop the cluster that was left behind, and acquire anew.',
      try_advance.token, try_advance.domain, old.incarnation, try_advance.incarnation);
  else
    if old.token < try_advance.token then
      select s.max_jump into cap from fencing.settings s;
      if cap is null then raise exception 'fencing.settings has lost its row: apply fencing.sql again'; end if;
    end if;
    if try_advance.token - old.token > cap then
      status := 'jump';
      message := format('token %s of %s is %s ahead of its fence, more than max_jump in fencing.settings allows. If it is '
        'right, call fencing.reset with it.', try_advance.token, try_advance.domain, try_advance.token - old.token);
    else
      status := 'applied';
      fence := try_advance.token;
    end if;
  end if;

  if status = 'applied' and (old.token is distinct from try_advance.token
    or old.issuer is null and try_advance.issuer is not null
    or old.incarnation is null and try_advance.incarnation is not null) then
    if old.incarnation <> try_advance.incarnation then earlier_incarnation := old.incarnation; end if;
    -- Both holders of a first token may be here when one of them uses one snapshot: the condition lets none go back.
    insert into fencing.fence as f (domain, token, issuer, incarnation)
      values (try_advance.domain, try_advance.token, try_advance.issuer, try_advance.incarnation)
      on conflict on constraint fence_pkey do update set token = excluded.token,
        issuer = coalesce(excluded.issuer, f.issuer),
        incarnation = excluded.incarnation, raised_at = excluded.raised_at
      where f.token <= excluded.token;
    if not found then
      raise exception 'the fence of % was raised at the same time', try_advance.domain using errcode = '40001';
    end if;
  end if;

  -- Remembers for this transaction how it went. A setting that outlived its transaction, through a pool or a session-level
  -- SET, names another transaction and does not count.
  noted := set_config('fencing.claims', format('%s %s', pg_current_xact_id(), coalesce(fencing.claims(), '{}')
    || jsonb_build_object(try_advance.domain, jsonb_build_object('status', status, 'presented', token,
      'highest', fence, 'message', message))), true);
end
$$;

-- Of version 1.
drop function if exists fencing.note_claim(text, jsonb);

-- What this transaction has advanced. Only called from functions that pin the search path.
create or replace function fencing.claims() returns jsonb
language plpgsql as $$
declare
  stored text := current_setting('fencing.claims', true);
begin
  if split_part(stored, ' ', 1) = pg_current_xact_id()::text then
    return substr(stored, strpos(stored, ' ') + 1);
  end if;
  return null;
end
$$;

create or replace function fencing.error_code(status text) returns text language sql immutable as $$
  select case status when 'stale' then 'FT001' when 'issuer' then 'FT003' when 'incarnation' then 'FT004'
    when 'jump' then 'FT005' else 'FT002' end
$$;

-- As try_advance, and fails unless applied. DETAIL is JSON: domain, presented, highest. Gives the fence.
create or replace function fencing.advance(
  domain text, token bigint, issuer text default null, incarnation text default null
) returns bigint language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  done record := fencing.try_advance(advance.domain, advance.token, advance.issuer, advance.incarnation);
begin
  if done.status <> 'applied' then
    raise exception using errcode = fencing.error_code(done.status), message = done.message,
      detail = jsonb_build_object('domain', advance.domain, 'presented', advance.token, 'highest', done.fence);
  end if;
  return done.fence;
end
$$;

-- All that begins a guarded transaction: waits for the fence up to `ms`, advances, limits the transaction to `ms`. Gives JSON:
-- what try_advance gives, and `work_ms` of limit_transaction. For several domains call it for each, in an order that all keep:
-- the time of the first, once it stands, runs while the others are waited for, up to half of what is left of it.
create or replace function fencing.enter(ms integer, domain text, token bigint, issuer text, incarnation text)
returns json language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  done record;
  stood text := current_setting('fencing.stood', true);
  rest integer := ms;
  was text;
begin
  if stood <> '' then
    rest := greatest(ms - (extract(epoch from clock_timestamp() - stood::timestamptz) * 1000)::integer, 2);
    was := set_config('lock_timeout', (rest / 2)::text, true);
  else
    was := set_config('lock_timeout', ms::text, true);
  end if;
  done := fencing.try_advance(enter.domain, enter.token, enter.issuer, enter.incarnation);
  if stood <> '' then
    rest := greatest(ms - (extract(epoch from clock_timestamp() - stood::timestamptz) * 1000)::integer, 1);
  else
    was := set_config('fencing.stood', clock_timestamp()::text, true);
  end if;
  return json_build_object('status', done.status, 'fence', done.fence::text, 'earlier', done.earlier_incarnation,
    'message', done.message, 'work_ms', fencing.limit_transaction(rest));
end
$$;

-- The fence of a domain; null when nobody has advanced it.
create or replace function fencing.highest(domain text) returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select f.token from fencing.fence f where f.domain = $1
$$;

create or replace function fencing.show(domain text, out token bigint, out issuer text, out incarnation text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select f.token, f.issuer, f.incarnation from fencing.fence f where f.domain = $1
$$;

-- For operators: sets the fence, upward or downward, for example below a token that nobody was ever granted. Whoever held a
-- greater token writes again when it is set below. The note says why. Gives the token before.
create or replace function fencing.reset(
  domain text, token bigint, note text, issuer text default null, incarnation text default null
) returns bigint language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  old fencing.fence;
begin
  if reset.token is null or reset.token < 1 or coalesce(btrim(note), '') = '' then
    raise exception 'reset: token must be 1 to 2^63 - 1, and the note must say why' using errcode = '22023';
  end if;
  perform pg_advisory_xact_lock(1718969203, hashtext(reset.domain));
  select * into old from fencing.fence f where f.domain = reset.domain for update;
  insert into fencing.fence as f (domain, token, issuer, incarnation)
    values (reset.domain, reset.token, reset.issuer, reset.incarnation)
    on conflict on constraint fence_pkey do update set token = excluded.token,
      issuer = coalesce(excluded.issuer, f.issuer), incarnation = excluded.incarnation, raised_at = excluded.raised_at;
  insert into fencing.history (domain, token_before, token_after, issuer_before, issuer_after, note)
    values (reset.domain, old.token, reset.token, old.issuer, coalesce(reset.issuer, old.issuer), reset.note);
  return old.token;
end
$$;

-- For operators: from now on the fence takes tokens of this issuer (`fencepost:` and the name of the cluster) and no
-- others. It stays where it is, so the new tokens have to be greater. False when there is no fence.
create or replace function fencing.allow_issuer(domain text, issuer text, note text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  old fencing.fence;
begin
  if coalesce(allow_issuer.issuer, '') = '' or coalesce(btrim(note), '') = '' then
    raise exception 'allow_issuer: issuer must not be empty, and the note must say why' using errcode = '22023';
  end if;
  perform pg_advisory_xact_lock(1718969203, hashtext(allow_issuer.domain));
  select * into old from fencing.fence f where f.domain = allow_issuer.domain for update;
  if not found then return false; end if;
  update fencing.fence f set issuer = allow_issuer.issuer where f.domain = allow_issuer.domain;
  insert into fencing.history (domain, token_before, token_after, issuer_before, issuer_after, note)
    values (allow_issuer.domain, old.token, old.token, old.issuer, allow_issuer.issuer, allow_issuer.note);
  return true;
end
$$;

-- Nothing of this is anybody's but the owner's. Give an application what it needs:
--   grant usage on schema fencing to app;
--   grant execute on function fencing.advance, fencing.try_advance, fencing.enter, fencing.limit_transaction,
--     fencing.highest, fencing.show to app;
revoke all on all tables in schema fencing from public;
revoke all on all functions in schema fencing from public;
