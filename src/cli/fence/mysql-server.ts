/** What `doctor` finds in the settings of a MariaDB server: how a committed raise could be lost. */
import { fault, note } from './findings.js';
import type { MysqlConnection } from './mysql-connection.js';
import type { Finding } from './store.js';

const SETTINGS = `
  select @@global.innodb_flush_log_at_trx_commit as flush, @@global.sync_binlog as sync_binlog, @@global.log_bin as log_bin,
    @@global.binlog_format as format, @@global.rpl_semi_sync_master_enabled as semi_sync,
    (select count(*) from information_schema.processlist p where p.command like 'Binlog Dump%') as replicas`;

/** Commits that a power failure undoes, and replicas that may lack the last raises. */
export async function diagnoseServer(connection: MysqlConnection): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const [settings] = await connection.query(SETTINGS);
  const { flush, sync_binlog: sync, log_bin: logs, format, semi_sync: semiSync, replicas } = settings ?? {};
  if ((await connection.query('show all slaves status')).length > 0)
    findings.push(fault('standby', 'server', 'is a replica, and may lag behind: ask the primary'));
  // 3 syncs too, and once more.
  if (![1, 3].includes(Number(flush)))
    findings.push(
      fault(
        'not-durable',
        'innodb_flush_log_at_trx_commit',
        `is ${Number(flush)}: a power failure takes back the last raises. Set it to 1`,
      ),
    );
  if (Number(logs) === 1) {
    // What is not in the log is rolled back when the server starts.
    if (Number(sync) !== 1)
      findings.push(
        fault(
          'not-durable',
          'sync_binlog',
          `is ${Number(sync)}: a power failure takes back the last raises. Set it to 1`,
        ),
      );
    if (format !== 'ROW')
      findings.push(
        fault(
          'statement-replication',
          'binlog_format',
          `is ${String(format)}: a replica that runs the statements has nothing advanced. Set it to ROW`,
        ),
      );
  }
  const open = 'after a failover have every holder open anew';
  if (Number(replicas) > 0)
    findings.push(
      Number(semiSync) === 1
        ? note(
            'semi-synchronous-replication',
            'rpl_semi_sync_master_enabled',
            `is on, and gives up when a replica does not answer in time: ${open}`,
          )
        : fault(
            'asynchronous-replication',
            'rpl_semi_sync_master_enabled',
            `is off, and there are replicas (${Number(replicas)}): one that is promoted may lack the last raises, and then takes stale tokens. Set it on, there and at the replicas; ${open}`,
          ),
    );
  return findings;
}
