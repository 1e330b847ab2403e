/** What `doctor` finds in a PostgreSQL database: tables whose protection has a hole, and roles that can pass it. */
import { fault, note } from './findings.js';
import type { PostgresConnection, Row } from './postgres-connection.js';
import type { Finding } from './store.js';

/** The triggers of `fencing.protect`; none where protecting is not installed. Bits of `tgtype`: 1 for each row, 32 truncate. */
const TRIGGERS = `
  select t.tgrelid as relation, t.tgname as name, t.tgenabled as enabled, (t.tgtype & 32) <> 0 as truncates,
    (t.tgtype & 33) = 0 as by_statement, (string_to_array(encode(t.tgargs, 'escape'), '\\000'))[1] as mode
  from pg_trigger t where t.tgfoid in (to_regproc('fencing.check_statement'), to_regproc('fencing.check_row'))`;

/** Tables with such a trigger, and those that inherit from one. */
const TABLES = `
  with recursive triggers as (${TRIGGERS}),
  family(relation, heir) as (
    select relation, false from triggers
    union select i.inhrelid, true from family f join pg_inherits i on i.inhparent = f.relation
  )
  select f.relation::regclass::text as table, bool_or(f.heir) as heir,
    exists (select from triggers t where t.relation = f.relation and not t.truncates) as written,
    exists (select from triggers t where t.relation = f.relation and t.truncates) as truncated
  from family f join pg_class c on c.oid = f.relation and c.relkind in ('r', 'p') group by f.relation order by 1`;

const SILENT = `
  select t.relation::regclass::text as table, t.name, t.enabled from (${TRIGGERS}) t where t.enabled <> 'A' order by 1, 2`;

/** Observed once, so protected once, and there still. */
const BARE = `
  select o.relation as table, to_char(max(o.last_at) at time zone 'utc', 'YYYY-MM-DD') as last
  from fencing.observation o
  where to_regclass(o.relation) is not null
    and not exists (select from (${TRIGGERS}) t where t.relation = to_regclass(o.relation))
  group by 1 order by 1`;

const OBSERVED = `
  select relation as table, operation, code, domain, role, sum(count)::text as count,
    to_char(max(last_at) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as last
  from fencing.observed group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5`;

/** Writes that do not pass through any trigger on statements. */
const SUBSCRIPTIONS = `
  select s.subname as name from pg_subscription s
  where s.subdbid = (select d.oid from pg_database d where d.datname = current_database())
    and exists (select from (${TRIGGERS}) t where t.by_statement)
  order by 1`;

/** Protected tables without trigger, triggers that do not always fire, and what mode `observe` saw. */
export async function diagnoseTables(connection: PostgresConnection): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const { table, heir, written, truncated } of await connection.query(TABLES)) {
    const again = 'call fencing.protect again';
    if (written === false)
      findings.push(
        fault(
          'trigger-missing',
          table,
          heir === true
            ? `inherits from a protected table and has no trigger of its own: ${again}, for this one`
            : `has lost the trigger that judges its writes: ${again}`,
        ),
      );
    if (truncated === false)
      findings.push(
        fault('truncate-unprotected', table, `TRUNCATE is not judged here: ${again}, for its parent if it has one`),
      );
  }
  for (const { table, name, enabled } of await connection.query(SILENT))
    findings.push(
      enabled === 'D' || enabled === 'R'
        ? fault('trigger-disabled', table, `trigger ${String(name)} does not fire: alter table … enable always trigger`)
        : fault(
            'trigger-not-always',
            table,
            `trigger ${String(name)} does not fire where session_replication_role is replica: alter table … enable always trigger`,
          ),
    );
  for (const { name } of await connection.query(SUBSCRIPTIONS))
    findings.push(
      fault(
        'subscription',
        name,
        'what logical replication applies fires no trigger on statements: protect by column, or do not write here',
      ),
    );
  if (!(await connection.has('fencing.observation'))) return findings;
  for (const { table, last } of await connection.query(BARE))
    findings.push(
      fault(
        'trigger-missing',
        table,
        `was protected when it was last observed, on ${String(last)}, and has no trigger now: protect it, or delete its rows from fencing.observation`,
      ),
    );
  for (const { table, operation, code, domain, role, count, last } of await connection.query(OBSERVED))
    findings.push(
      fault(
        'observed',
        table,
        `enforce would have refused ${String(count)} × ${String(operation)} by ${String(role)} with ${String(code)}${
          domain === '' ? '' : `, domain ${String(domain)}`
        }, last at ${String(last)}: guard this writer; truncate fencing.observation to count anew`,
      ),
    );
  return findings;
}

/** Roles with a login that a trigger does not stop. The superuser of `initdb` is in every database. */
const ROLES = `
  with triggers as (${TRIGGERS}),
  owned as (
    select c.relowner as owner, string_agg(c.oid::regclass::text, ', ' order by c.oid::regclass::text) as tables from pg_class c
    where c.oid = 'fencing.fence'::regclass or c.oid in (select relation from triggers) group by 1
  )
  select r.rolname as role, r.oid = 10 as first,
    exists (select from pg_roles s where s.rolsuper and pg_has_role(r.oid, s.oid, 'member')) as superuser,
    (select string_agg(o.tables, ', ') from owned o where pg_has_role(r.oid, o.owner, 'member')) as owns,
    has_schema_privilege(r.oid, 'fencing', 'usage')
      and has_table_privilege(r.oid, 'fencing.fence', 'insert, update, delete, truncate') as writes
  from pg_roles r where r.rolcanlogin order by 1`;

/** `grant set on parameter`, from version 15 on. */
const REPLICA_GRANTS = `
  select r.rolname as role, exists (select from (${TRIGGERS}) t where t.enabled <> 'A') as skips
  from pg_roles r
  where r.rolcanlogin and not r.rolsuper and has_parameter_privilege(r.oid, 'session_replication_role', 'set') order by 1`;

/** Superusers, owners, and whoever may write the fences themselves or choose not to fire triggers. */
export async function diagnoseRoles(connection: PostgresConnection): Promise<readonly Finding[]> {
  const findings = (await connection.query(ROLES)).flatMap(roleFindings);
  const [version] = await connection.query("select current_setting('server_version_num')::int >= 150000 as grants");
  if (version?.['grants'] !== true) return findings;
  for (const { role, skips } of await connection.query(REPLICA_GRANTS))
    findings.push(
      skips === true
        ? fault(
            'role-replica',
            role,
            'may set session_replication_role, and so skip the triggers that do not fire always: revoke set on parameter session_replication_role',
          )
        : note('role-replica', role, 'may set session_replication_role; all triggers of fencing fire all the same'),
    );
  return findings;
}

function roleFindings({ role, first, superuser, owns, writes }: Row): readonly Finding[] {
  if (superuser === true && first === true)
    return [note('role-superuser', role, 'nothing stops a superuser: no application may connect as it')];
  if (superuser === true)
    return [
      fault(
        'role-superuser',
        role,
        'is a superuser or can become one, and nothing stops those: alter role … nosuperuser, or revoke the role',
      ),
    ];
  if (typeof owns === 'string')
    return [
      fault(
        'role-owner',
        role,
        `owns ${owns}, or is a member of the owner, and can switch triggers off: alter table … owner to a role without login`,
      ),
    ];
  return writes === true
    ? [fault('role-writes-fences', role, 'may write fencing.fence, past its functions: revoke that')]
    : [];
}
