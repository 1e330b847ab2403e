/** Accounts and roles of a MariaDB server that can pass the protection. */
import { fault, note } from './findings.js';
import type { MysqlConnection, Row } from './mysql-connection.js';
import { PROTECTED } from './mysql-tables.js';
import type { Finding } from './store.js';

/**
 * Rights of whoever may log in, and of roles: everywhere, in this database (its name may be a pattern), on a protected table or
 * on the fences. Accounts that are locked own procedures, and nobody comes in by them.
 */
const ACCOUNTS = `
  with protected as (select distinct p.relation from (${PROTECTED}) p),
  rights as (
    select u.grantee, u.privilege_type as what, null as relation from information_schema.user_privileges u
    union all select s.grantee, s.privilege_type, null from information_schema.schema_privileges s
      where database() like s.table_schema
    union all select t.grantee, t.privilege_type, t.table_name from information_schema.table_privileges t
      where t.table_schema = database()
    union all select c.grantee, c.privilege_type, c.table_name from information_schema.column_privileges c
      where c.table_schema = database()
  ),
  open as (
    select concat('\\'', g.user, '\\'@\\'', g.host, '\\'') as grantee from mysql.global_priv g
    where coalesce(json_value(g.priv, '$.account_locked'), 0) = 0
  )
  select r.grantee as account, max(r.what in ('SUPER', 'SET USER')) as superuser,
    max(r.what = 'TRIGGER' and if(r.relation is null, (select count(*) > 0 from protected), r.relation in (select * from protected)))
      as triggers,
    max(r.what = 'DROP' and if(r.relation is null, (select count(*) > 0 from protected), r.relation in (select * from protected)))
      as truncates,
    max(r.what in ('INSERT', 'UPDATE', 'DELETE', 'DROP', 'ALTER') and coalesce(r.relation, 'fencing_fence') = 'fencing_fence')
      as writes
  from rights r join open o on o.grantee = r.grantee group by 1 order by 1`;

/** Superusers, whoever may drop a trigger or truncate, and whoever may write the fences themselves. */
export async function diagnoseAccounts(connection: MysqlConnection): Promise<readonly Finding[]> {
  return (await connection.query(ACCOUNTS)).flatMap(findingsOf);
}

function findingsOf({ account, ...may }: Row): readonly Finding[] {
  const can = (what: string): boolean => Number(may[what]) === 1;
  if (can('superuser'))
    return [
      // Those that every installation has.
      /^'(?:root|mysql)'@/.test(String(account))
        ? note('account-superuser', account, 'nothing stops a superuser: no application may connect as it')
        : fault('account-superuser', account, 'has the right SUPER or SET USER, and nothing stops those: revoke it'),
    ];
  const findings: Finding[] = [];
  if (can('triggers'))
    findings.push(
      fault(
        'account-trigger',
        account,
        'has the right TRIGGER, and can drop what judges its writes: revoke it, or lock the account',
      ),
    );
  if (can('truncates'))
    findings.push(
      fault(
        'account-truncate',
        account,
        'has the right DROP on a protected table, and TRUNCATE is not judged: revoke it, or lock the account',
      ),
    );
  if (can('writes'))
    findings.push(
      fault(
        'account-writes-fences',
        account,
        'may write fencing_fence, past its procedures: give rights on the tables it needs, not on the whole database; or lock the account',
      ),
    );
  return findings;
}
