/** What `doctor` finds in the settings of a PostgreSQL server: how a committed raise could be lost, and who could hold a fence for ever. */
import { fault } from './findings.js';
import type { PostgresConnection } from './postgres-connection.js';
import type { Finding } from './store.js';

/** Standbys that are connected, or have a slot; no logical ones, which nobody promotes, and no backups. */
const DURABILITY = `
  select pg_is_in_recovery() as standby, current_setting('fsync') as fsync,
    current_setting('full_page_writes') as full_page_writes, current_setting('synchronous_standby_names') as names,
    (select count(*)::int from pg_stat_replication r where r.state is distinct from 'backup'
      and not exists (select from pg_replication_slots s where s.active_pid = r.pid))
    + (select count(*)::int from pg_replication_slots s where s.slot_type = 'physical' and not s.temporary) as standbys`;

/** Of the whole server, unless it is that of this session's own role or database, which the second part tells. */
const COMMITS = `
  select 'server' as subject, s.setting as value from pg_settings s
    where s.name = 'synchronous_commit' and s.source not in ('database', 'user', 'database user')
  union all
  select concat_ws(' in ', 'role ' || r.rolname, 'database ' || d.datname), substr(c, 20)
    from pg_db_role_setting s left join pg_roles r on r.oid = s.setrole left join pg_database d on d.oid = s.setdatabase,
      unnest(s.setconfig) c
    where c like 'synchronous\\_commit=%' and (s.setdatabase = 0 or d.datname = current_database())
  order by 1`;

/**
 * Roles that may advance, and the limits that their sessions begin with: the narrower setting goes before the wider.
 * `reset_val` is what the server has for everybody, unless this session's own role or database has something else.
 */
const LIMITS = `
  with limits as (
    select s.name, case when s.source in ('database', 'user', 'database user') then '0' else s.reset_val end as server
    from pg_settings s where s.name in ('idle_in_transaction_session_timeout', 'transaction_timeout')
  ),
  set_for as (
    select s.setrole, s.setdatabase, split_part(c, '=', 1) as name, split_part(c, '=', 2) as value
    from pg_db_role_setting s, unnest(s.setconfig) c
    where s.setdatabase in (0, (select d.oid from pg_database d where d.datname = current_database()))
  )
  select r.rolname as role from pg_roles r
  where r.rolcanlogin and not r.rolsuper and has_schema_privilege(r.oid, 'fencing', 'usage')
    and exists (select from pg_proc p where p.pronamespace = 'fencing'::regnamespace
      and p.proname in ('advance', 'try_advance', 'enter') and has_function_privilege(r.oid, p.oid, 'execute'))
    and not exists (
      select from limits l where coalesce(
        (select s.value from set_for s where s.name = l.name and s.setrole in (r.oid, 0)
          order by s.setrole = 0, s.setdatabase = 0 limit 1),
        l.server) !~ '^ *0+ *[a-z]*$')
  order by 1`;

/** As people may write it behind `alter role … set`. */
const OFF = /^(?:off|false|no|0)$/i;

/** Asynchronous replication, commits that a crash undoes, and time-outs that nobody has set. */
export async function diagnoseServer(connection: PostgresConnection): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const [server] = await connection.query(DURABILITY);
  const { standby, fsync, full_page_writes: pages, names, standbys } = server ?? {};
  if (standby === true) findings.push(fault('standby', 'server', 'is a standby, and may lag behind: ask the primary'));
  if (fsync !== 'on') findings.push(fault('not-durable', 'fsync', 'is off: a crash can lower every fence; set it on'));
  if (pages !== 'on')
    findings.push(fault('not-durable', 'full_page_writes', 'is off: a crash can damage the fences; set it on'));
  const replicated = typeof standbys === 'number' && standbys > 0;
  if (replicated && names === '')
    findings.push(
      fault(
        'asynchronous-replication',
        'synchronous_standby_names',
        `is empty, and there are standbys (${standbys}): a standby that is promoted may lack the last raises, and then takes stale tokens. Name them, for example ANY 1 (*); or have every holder open anew after a failover`,
      ),
    );
  for (const { subject, value } of await connection.query(COMMITS)) {
    if (OFF.test(String(value)))
      findings.push(
        fault('asynchronous-commit', subject, 'synchronous_commit is off: a crash undoes the last raises; set it on'),
      );
    else if (value === 'local' && replicated)
      findings.push(
        fault(
          'asynchronous-commit',
          subject,
          'synchronous_commit is local: commits do not wait for a standby; set it on',
        ),
      );
  }
  for (const { role } of await connection.query(LIMITS))
    findings.push(
      fault(
        'no-timeout',
        role,
        "may advance, and the server does not end its transactions when it stands still: alter role … set idle_in_transaction_session_timeout = '10s' (the guard of this package sets limits by itself, other clients do not)",
      ),
    );
  return findings;
}
