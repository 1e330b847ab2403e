-- Fencing for PostgreSQL 14 and later, for clients in any language. Version 1.
--
-- Apply this file as it is, as often as you like: it makes what is missing and renews what is older, and refuses when
-- a newer version is there.    psql --single-transaction -v ON_ERROR_STOP=1 -f fencing.sql
-- Whoever applies it owns it all: best a role without login that owns the guarded tables too, never the application's.
--
--   select fencing.advance('orders/eu', 1796000000000041);    -- first in every guarded transaction; FT001 when stale
--   select fencing.protect('orders', domain => 'orders/eu', mode => 'observe');    -- then look at fencing.observed
--   select fencing.protect('orders', domain => 'orders/eu', mode => 'enforce');
--
-- Error codes: FT001 stale. FT002 write to a protected table without advance. FT003 the fence belongs to another
-- issuer. FT004 the equal token of another history. FT005 the token is too far ahead of the fence.

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
  if exists (select from fencing.settings s where s.version > 1) then
    raise exception 'this database has a newer version of fencing than this file: apply the newer file';
  end if;
  insert into fencing.settings (version) values (1) on conflict (only_row) do update set version = 1;
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

-- What enforcing would have refused. One row for each kind and each server process, so that no transaction ever waits
-- for another because it is observed.
create table if not exists fencing.observation (
  relation text not null,
  operation text not null,
  code text not null,
  domain text not null,
  role name not null,
  application text not null,
  pid integer not null,
  count bigint not null default 1,
  first_at timestamptz not null default pg_catalog.clock_timestamp(),
  last_at timestamptz not null default pg_catalog.clock_timestamp(),
  last_detail text,
  primary key (relation, operation, code, domain, role, application, pid)
);

create or replace view fencing.observed as
  select relation, operation, code, domain, role, application, pg_catalog.sum(count)::bigint as count,
    pg_catalog.min(first_at) as first_at, pg_catalog.max(last_at) as last_at,
    (pg_catalog.array_agg(last_detail order by last_at desc))[1] as last_detail
  from fencing.observation
  group by relation, operation, code, domain, role, application;

-- Keeps successors out for at most this long, in milliseconds, whatever becomes of the client: the whole transaction
-- where the server can limit that (17 and later), otherwise a third for each of the three parts that can be limited:
-- the client's own work, one statement, and idling. Gives the time that the client may work.
-- Limits that are lower already stay.
create or replace function fencing.limit_transaction(ms integer) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  limits text[] := array['lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout'];
  part integer := greatest(ms / 3, 1);
  each text;
begin
  if ms is null or ms < 1 then
    raise exception 'limit_transaction: ms must be at least 1' using errcode = '22023';
  end if;
  if current_setting('server_version_num')::integer >= 170000 then
    limits := limits || 'transaction_timeout'::text;
    part := ms;
  end if;
  foreach each in array limits loop
    if extract(epoch from current_setting(each)::interval) * 1000 not between 1 and part then
      perform set_config(each, part::text, true);
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
    -- its statements does not; the row lock makes it fail with 40001 where it would be wrong.
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
    select s.max_jump into cap from fencing.settings s where old.token < try_advance.token;
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

  perform fencing.note_claim(try_advance.domain, jsonb_build_object('status', status, 'presented', token,
    'highest', fence, 'message', message));
end
$$;

-- Remembers for this transaction how advancing went. A setting that outlived its transaction, through a pool or a
-- session-level SET, names another transaction and does not count. Only called from functions that pin the search path.
create or replace function fencing.note_claim(domain text, claim jsonb) returns void
language plpgsql as $$
begin
  perform set_config('fencing.claims', format('%s %s', pg_current_xact_id(),
    coalesce(fencing.claims(), '{}') || jsonb_build_object(domain, claim)), true);
end
$$;

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
-- what try_advance gives, and `work_ms` of limit_transaction.
create or replace function fencing.enter(ms integer, domain text, token bigint, issuer text, incarnation text)
returns json language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  done record;
begin
  perform set_config('lock_timeout', ms::text, true);
  done := fencing.try_advance(enter.domain, enter.token, enter.issuer, enter.incarnation);
  return json_build_object('status', done.status, 'fence', done.fence::text, 'earlier', done.earlier_incarnation,
    'message', done.message, 'work_ms', fencing.limit_transaction(ms));
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

-- Refuses, or records in mode `observe`, a write to rows of this domain unless the transaction advanced it.
create or replace function fencing.judge(mode text, relation text, operation text, domain text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  claim jsonb := fencing.claims() -> judge.domain;
  code text;
  detail jsonb;
  message text;
begin
  if claim ->> 'status' = 'applied' then return; end if;
  code := fencing.error_code(claim ->> 'status');
  detail := jsonb_build_object('domain', judge.domain, 'presented', claim -> 'presented', 'highest', claim -> 'highest');
  message := coalesce(claim ->> 'message', format('%s of %s is protected: call fencing.advance(%L, token) first in the '
    'same transaction', judge.operation, judge.relation, coalesce(judge.domain, 'the domain')));
  if mode = 'enforce' then
    raise exception using errcode = code, message = message, detail = detail;
  end if;
  begin
    insert into fencing.observation as o (relation, operation, code, domain, role, application, pid, last_detail)
      values (judge.relation, judge.operation, code, coalesce(judge.domain, ''), session_user,
        current_setting('application_name'), pg_backend_pid(), detail)
      on conflict on constraint observation_pkey do update
        set count = o.count + 1, last_at = clock_timestamp(), last_detail = excluded.last_detail;
  exception when others then
    raise warning 'fencing could not record what it observed: %', sqlerrm;
  end;
end
$$;

-- Arguments of the triggers: mode, 'domain' or 'column', and the domain or the name of the column that has it.
create or replace function fencing.check_statement() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform fencing.judge(tg_argv[0], format('%I.%I', tg_table_schema, tg_table_name), tg_op,
    case when tg_argv[1] = 'domain' then tg_argv[2] end);
  return null;
end
$$;

-- After the row, so that it sees what other triggers made of it, and generated columns.
create or replace function fencing.check_row() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  relation text := format('%I.%I', tg_table_schema, tg_table_name);
  before_domain text := case when tg_argv[1] = 'domain' then tg_argv[2] else to_jsonb(old) ->> tg_argv[2] end;
  after_domain text := case when tg_argv[1] = 'domain' then tg_argv[2] else to_jsonb(new) ->> tg_argv[2] end;
begin
  if tg_op <> 'INSERT' then perform fencing.judge(tg_argv[0], relation, tg_op, before_domain); end if;
  if tg_op <> 'DELETE' and (tg_op = 'INSERT' or after_domain is distinct from before_domain) then
    perform fencing.judge(tg_argv[0], relation, tg_op, after_domain);
  end if;
  return null;
end
$$;

-- Every table of a partitioned one, itself first; otherwise the table alone.
create or replace function fencing.tables_of(relation regclass) returns setof regclass
language sql stable set search_path = pg_catalog, pg_temp as $$
  select relation union select t.relid from pg_partition_tree(relation) t
$$;

-- Takes the protection off; false when there was none. By the owner of the table.
create or replace function fencing.unprotect(relation regclass) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  each record;
  found_any boolean := false;
begin
  for each in
    select t.tgrelid::regclass as of, t.tgname as name from pg_trigger t
    where t.tgrelid in (select fencing.tables_of(unprotect.relation)) and t.tgname like 'fencing\_%' and t.tgparentid = 0
      and t.tgfoid in ('fencing.check_statement'::regproc, 'fencing.check_row'::regproc)
  loop
    execute format('drop trigger %I on %s', each.name, each.of);
    found_any := true;
  end loop;
  return found_any;
end
$$;

-- From now on every insert, update, delete and truncate of this table needs `advance` in the same transaction, of the
-- domain given, or of that in a column of each row (TRUNCATE is then refused: it names no domain). Mode 'observe' lets
-- everything pass and records in fencing.observed what 'enforce' would refuse. Call it again to change. By the owner of
-- the table; locks it for a moment. Triggers fire always, also where session_replication_role is replica.
create or replace function fencing.protect(
  relation regclass, domain text default null, domain_column name default null, mode text default null
) returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  each regclass;
  args text := format('%L, %L, %L', mode, case when domain is null then 'column' else 'domain' end,
    coalesce(domain, domain_column));
  by_row boolean;
begin
  if mode is null or mode not in ('observe', 'enforce') then
    raise exception 'protect: mode must be ''observe'' or ''enforce''' using errcode = '22023';
  elsif (protect.domain is null) = (domain_column is null) then
    raise exception 'protect: give either domain or domain_column' using errcode = '22023';
  elsif octet_length(protect.domain) not between 1 and 255 then
    raise exception 'protect: domain must have 1 to 255 bytes' using errcode = '22023';
  elsif not exists (select from pg_class c where c.oid = relation and c.relkind in ('r', 'p')) then
    raise exception 'protect: % is no table', relation using errcode = '42809';
  elsif domain_column is not null and not exists (select from pg_attribute a
    where a.attrelid = relation and a.attname = domain_column and a.attnum > 0 and not a.attisdropped) then
    raise exception 'protect: % has no column %', relation, domain_column using errcode = '42703';
  end if;
  perform fencing.unprotect(relation);
  -- A statement that names a partitioned table fires no statement trigger of its parts, and the other way round.
  by_row := protect.domain is null or exists (select from pg_class c where c.oid = relation and c.relkind = 'p')
    or exists (select from pg_inherits i where i.inhrelid = relation);
  if by_row then
    execute format('create trigger fencing_rows after insert or update or delete on %s '
      'for each row execute function fencing.check_row(%s)', relation, args);
  else
    execute format('create trigger fencing_writes before insert or update or delete on %s '
      'for each statement execute function fencing.check_statement(%s)', relation, args);
  end if;
  for each in select fencing.tables_of(relation) loop
    execute format('create trigger fencing_truncate before truncate on %s '
      'for each statement execute function fencing.check_statement(%s)', each, args);
    execute format('alter table %s enable always trigger fencing_truncate', each);
    execute format('alter table %s enable always trigger %I', each,
      case when by_row then 'fencing_rows' else 'fencing_writes' end);
  end loop;
end
$$;

-- What is protected, and how. `active` is false where somebody disabled the trigger or let replicas skip it.
create or replace view fencing.protected as
  select t.tgrelid::pg_catalog.regclass as relation, t.tgname as trigger, args[1] as mode, args[2] as by,
    args[3] as value, t.tgenabled = 'A' as active
  from pg_catalog.pg_trigger t,
    pg_catalog.string_to_array(pg_catalog.encode(t.tgargs, 'escape'), '\000') as args
  where t.tgfoid in ('fencing.check_statement'::pg_catalog.regproc, 'fencing.check_row'::pg_catalog.regproc);

-- Nothing of this is anybody's but the owner's. Give an application what it needs:
--   grant usage on schema fencing to app;
--   grant execute on function fencing.advance, fencing.try_advance, fencing.enter, fencing.limit_transaction,
--     fencing.highest, fencing.show to app;
revoke all on all tables in schema fencing from public;
revoke all on all functions in schema fencing from public;
