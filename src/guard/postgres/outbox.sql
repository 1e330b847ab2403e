-- Effects that cannot be taken back, for clients in any language: written down in the transaction that decides on them,
-- carried out behind its commit by a dispatcher with a lease of its own. Apply it behind fencing.sql of the same package,
-- likewise as often as you like.
--
--   begin;                                                     -- the producer, under its own lease
--   select fencing.advance('orders/eu', 1796000000000041);
--   update ...;
--   select fencing.outbox_put('mail', 'orders/eu', '{"to": "ann"}');
--   commit;
--
--   begin;                                                     -- the dispatcher, under the lease of outbox/mail
--   select fencing.advance('outbox/mail', 1796000000000077);
--   select * from fencing.outbox_claim('mail', 16, 10);
--   commit;
--   -- Now deliver each, with its id as the idempotency key; then, in a transaction that advances likewise:
--   select fencing.outbox_mark('mail', 'ID');                  -- or with what went wrong as a third argument
--
-- Each of them is FT001 when the lease is stale, and FT002 without advance in the same transaction.

do $$
begin
  if (select s.version from fencing.settings s) is distinct from 2 then
    raise exception 'this file needs version 2 of fencing: apply fencing.sql of the same package first';
  end if;
end
$$;

-- What is delivered leaves the table. `pending`: to be delivered. `parked`: tried as often as allowed; an operator looks at
-- `error`. `cancelled`: its producer was superseded first. Those of other states stay until somebody deletes them.
create table if not exists fencing.outbox (
  position bigint generated always as identity primary key,
  id uuid not null unique default pg_catalog.gen_random_uuid(),
  queue text collate "C" not null check (pg_catalog.octet_length(queue) between 1 and 200),
  -- Of the producer: rows of one domain are delivered in their order.
  domain text collate "C" not null,
  token bigint not null,
  payload jsonb not null,
  cancel_if_superseded boolean not null,
  created_at timestamptz not null default pg_catalog.clock_timestamp(),
  state text not null default 'pending' check (state in ('pending', 'parked', 'cancelled')),
  -- How often it was claimed, and by which token of the dispatcher last.
  attempts integer not null default 0,
  claimed_by bigint,
  retry_at timestamptz not null default pg_catalog.clock_timestamp(),
  error text
);
create index if not exists outbox_pending on fencing.outbox (queue, domain, position) where state = 'pending';

-- Fails unless this transaction has advanced the domain. Gives the token.
create or replace function fencing.outbox_token(domain text, what text) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  claim jsonb := fencing.claims() -> outbox_token.domain;
begin
  if claim ->> 'status' is distinct from 'applied' then
    raise exception using errcode = fencing.error_code(claim ->> 'status'),
      message = coalesce(claim ->> 'message', format('%s: call fencing.advance(%L, token) first in the same transaction',
        what, outbox_token.domain)),
      detail = jsonb_build_object('domain', outbox_token.domain, 'presented', claim -> 'presented',
        'highest', claim -> 'highest');
  end if;
  return (claim ->> 'presented')::bigint;
end
$$;

-- Writes down an effect, to be carried out once this transaction is committed, whatever becomes of its lease afterwards;
-- with `cancel_if_superseded` unless a greater token was accepted in the domain before a dispatcher claims it. Gives the id.
create or replace function fencing.outbox_put(
  queue text, domain text, payload jsonb, cancel_if_superseded boolean default false
) returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  given uuid;
begin
  insert into fencing.outbox as o (queue, domain, token, payload, cancel_if_superseded)
    values (outbox_put.queue, outbox_put.domain, fencing.outbox_token(outbox_put.domain, 'outbox_put'), outbox_put.payload,
      outbox_put.cancel_if_superseded)
    returning o.id into given;
  return given;
end
$$;

-- The next ones of a queue that are to be delivered now: of each domain the first, so that none overtakes another. Each counts
-- as an attempt from here on; one that was claimed `max_attempts` times already, and never marked, is parked.
create or replace function fencing.outbox_claim(
  queue text, max_rows integer, max_attempts integer,
  out id uuid, out domain text, out token bigint, out payload jsonb, out attempt integer
) returns setof record language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  by_token bigint := fencing.outbox_token('outbox/' || outbox_claim.queue, 'outbox_claim');
begin
  update fencing.outbox o set state = 'cancelled', error = concat(
      format('superseded by token %s before it was claimed', f.token),
      -- Somebody may have it all the same.
      case when o.attempts > 0 then format(' again, after %s attempts', o.attempts) end, ': ' || o.error)
    from fencing.fence f
    where o.queue = outbox_claim.queue and o.state = 'pending' and o.cancel_if_superseded
      and f.domain = o.domain and f.token > o.token;
  update fencing.outbox o set state = 'parked', error = coalesce(o.error, 'claimed, and no dispatcher lived to mark it')
    where o.queue = outbox_claim.queue and o.state = 'pending' and o.attempts >= outbox_claim.max_attempts;
  return query
    with first as (
      select distinct on (o.domain) o.position, o.retry_at from fencing.outbox o
      where o.queue = outbox_claim.queue and o.state = 'pending' order by o.domain, o.position
    ), due as (
      select f.position from first f where f.retry_at <= clock_timestamp() order by f.position limit outbox_claim.max_rows
    ), claimed as (
      update fencing.outbox o set attempts = o.attempts + 1, claimed_by = by_token
      from due where o.position = due.position
      returning o.position, o.id, o.domain, o.token, o.payload, o.attempts
    )
    select c.id, c.domain, c.token, c.payload, c.attempts from claimed c order by c.position;
end
$$;

-- What became of one that this token has claimed: delivered, or else why not. Then it is due again after a pause that doubles
-- from one second to five minutes, or is parked when this was the last attempt. False when it is not (or no more) claimed so.
create or replace function fencing.outbox_mark(
  queue text, id uuid, error text default null, max_attempts integer default 10
) returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  by_token bigint := fencing.outbox_token('outbox/' || outbox_mark.queue, 'outbox_mark');
begin
  if outbox_mark.error is null then
    delete from fencing.outbox o where o.id = outbox_mark.id and o.queue = outbox_mark.queue and o.claimed_by = by_token
      and o.state = 'pending';
  else
    update fencing.outbox o set error = outbox_mark.error,
      state = case when o.attempts >= outbox_mark.max_attempts then 'parked' else 'pending' end,
      retry_at = clock_timestamp() + make_interval(secs => least(2.0 ^ least(o.attempts - 1, 9), 300))
    where o.id = outbox_mark.id and o.queue = outbox_mark.queue and o.claimed_by = by_token and o.state = 'pending';
  end if;
  return found;
end
$$;

-- For operators: what waits for them. Delete a row of fencing.outbox to give it up.
create or replace view fencing.outbox_set_aside as
  select id, queue, domain, token, payload, created_at, state, attempts, error from fencing.outbox
  where state <> 'pending' order by position;

-- For operators: delivers a parked or cancelled one after all, with all its attempts anew. False when there is none.
create or replace function fencing.outbox_retry(id uuid) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  update fencing.outbox o set state = 'pending', attempts = 0, cancel_if_superseded = false, retry_at = clock_timestamp()
    where o.id = outbox_retry.id and o.state <> 'pending';
  return found;
end
$$;

-- Nothing of this is anybody's but the owner's. Beside the grants of fencing.sql, give a producer and a dispatcher:
--   grant execute on function fencing.outbox_put to producer;
--   grant execute on function fencing.outbox_claim, fencing.outbox_mark to dispatcher;
revoke all on all tables in schema fencing from public;
revoke all on all functions in schema fencing from public;
