/** The script of the procedures as statements that a driver can send. */
import { describe, expect, it } from 'vitest';
import { statementsOf } from '../../../src/cli/fence/mysql-script.js';
import { MIGRATION } from '../../guard/mysql-database.js';

describe('statementsOf', () => {
  it.each<[string, string, readonly string[]]>([
    ['nothing', ' \n-- only this\n/* and this */ ', []],
    ['by semicolons, the last without one', 'a;b ;\n c', ['a', 'b', 'c']],
    ['by another delimiter', 'delimiter //\na; b; //\nc //\nDELIMITER ;\nd; e;', ['a; b;', 'c', 'd', 'e']],
    ['a delimiter in a string ends nothing', `a 'x;''\\';' ";\\"" \`;\`; b`, [`a 'x;''\\';' ";\\"" \`;\``, 'b']],
    ['nor one in a comment', 'a -- ; it\'s\n b # ;"\n c /* ; */ d; e', ['a -- ; it\'s\n b # ;"\n c /* ; */ d', 'e']],
    ['two minus signs without a space are no comment', 'select 1--1; b', ['select 1--1', 'b']],
    ['comments before a statement are left out', '-- head;\n# more;\n/* and; */ a; b', ['a', 'b']],
    ['the word delimiter within a statement is none', 'select\ndelimiter ;b', ['select\ndelimiter', 'b']],
  ])('%s', (_, script, expected) => {
    expect(statementsOf(script)).toEqual(expected);
  });

  it('refuses a string that does not end', () => {
    expect(() => statementsOf("a; select 'x; b")).toThrow("does not end: 'x; b");
  });

  it('finds every procedure, table and view of the files whole', () => {
    const sql = MIGRATION;
    const statements = statementsOf(sql);
    const starts = [...sql.matchAll(/^(?:create|drop|call|set) .*$/gm)].map(([line]) =>
      line.replace(/(?:;| \/\/)$/, ''),
    );
    expect(statements.map((each) => each.split('\n')[0]?.replace(/;$/, ''))).toEqual(starts);
    expect(statements.filter((each) => /^create.* procedure/.test(each)).every((each) => each.endsWith('end'))).toBe(
      true,
    );
    expect(statements.join()).not.toContain('delimiter //');
  });
});
