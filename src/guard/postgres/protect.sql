-- Tables that refuse what was not advanced, whoever writes, also by hand. Apply it behind fencing.sql of the same package,
-- likewise as often as you like.
--
--   select fencing.protect('orders', domain => 'orders/eu', mode => 'observe');    -- then look at fencing.observed
--   select fencing.protect('orders', domain => 'orders/eu', mode => 'enforce');
--
-- FT002 is a write without advance in its transaction; the other codes are those of fencing.sql.

do $$
begin
  if (select s.version from fencing.settings s) is distinct from 2 then
    raise exception 'this file needs version 2 of fencing: apply fencing.sql of the same package first';
  end if;
end
$$;

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

-- Nothing of this is anybody's but the owner's; an application whose tables are protected needs no right to it.
revoke all on all tables in schema fencing from public;
revoke all on all functions in schema fencing from public;
