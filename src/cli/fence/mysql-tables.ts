/** What `doctor` finds in a MariaDB database: tables whose protection has a hole. */
import { fault, note } from './findings.js';
import type { MysqlConnection } from './mysql-connection.js';
import type { Finding } from './store.js';

/** As the view fencing_protected, which may be missing. */
export const PROTECTED = `select t.event_object_table as relation, t.event_manipulation as operation
  from information_schema.triggers t where t.trigger_schema = database() and left(t.trigger_name, 8) = 'fencing_'`;

const TRIGGERS = `
  select p.relation, group_concat(p.operation) as judged from (${PROTECTED}) p group by 1 order by 1`;

const ENGINES = `
  select t.table_name as relation, t.engine,
    left(t.table_name, 8) = 'fencing_' or t.table_name in (select p.relation from (${PROTECTED}) p) as guarded
  from information_schema.tables t
  where t.table_schema = database() and t.table_type = 'BASE TABLE' and t.engine <> 'InnoDB' order by 1`;

/** What the server itself does to rows, past all triggers. */
const CASCADES = `
  select r.table_name as relation, r.constraint_name as name from information_schema.referential_constraints r
  where r.constraint_schema = database() and r.table_name in (select p.relation from (${PROTECTED}) p)
    and ('CASCADE' in (r.delete_rule, r.update_rule) or 'SET NULL' in (r.delete_rule, r.update_rule))
  order by 1, 2`;

/** Protected tables that lack a trigger, other engines, and what no trigger judges. */
export async function diagnoseTables(connection: MysqlConnection): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const tables = await connection.query(TRIGGERS);
  for (const { relation, judged } of tables) {
    const lost = ['INSERT', 'UPDATE', 'DELETE'].filter((each) => !String(judged).split(',').includes(each));
    if (lost.length > 0)
      findings.push(
        fault(
          'trigger-missing',
          relation,
          `has lost the trigger that judges ${lost.join(' and ')}: call fencing_protect again`,
        ),
      );
  }
  for (const { relation, engine, guarded } of await connection.query(ENGINES)) {
    const undone = `is of the engine ${String(engine)}, which undoes nothing`;
    findings.push(
      Number(guarded) === 1
        ? fault('other-engine', relation, `${undone}: a refused write may stay. alter table … engine = InnoDB`)
        : note('other-engine', relation, `${undone}: no guarded transaction should write to it`),
    );
  }
  for (const { relation, name } of await connection.query(CASCADES))
    findings.push(
      fault(
        'cascade-unprotected',
        relation,
        `what the foreign key ${String(name)} does to its rows fires no trigger: let it restrict, and write them yourself`,
      ),
    );
  if (tables.length > 0)
    findings.push(
      note('truncate-unprotected', 'TRUNCATE', 'fires no trigger in MariaDB: only the right DROP keeps it out'),
    );
  return findings;
}
