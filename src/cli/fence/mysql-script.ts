/** Scripts for the client `mariadb`, as statements that a driver can send. */

/** A string, a name, or a comment: what is in them ends no statement. */
const WHOLE = /'(?:[^'\\]|\\[^]|'')*'|"(?:[^"\\]|\\[^]|"")*"|`[^`]*`|(?:--(?=\s)|#)[^\n]*|\/\*[^]*?\*\//y;
/** A command of the client, on a line of its own. */
const DELIMITER = /delimiter[ \t]+(\S+)[ \t]*(?:\n|$)/iy;

/** The statements of a script, each without its delimiter and without comments before it. Throws when a string does not end. */
export function statementsOf(script: string): readonly string[] {
  const statements: string[] = [];
  let delimiter = ';';
  let statement = '';
  const end = (): void => {
    if (statement.trim() !== '') statements.push(statement.trim());
    statement = '';
  };
  for (let at = 0; at < script.length;) {
    const between = statement.trim() === '';
    const command = between ? matchAt(DELIMITER, script, at) : undefined;
    const whole = command === undefined ? matchAt(WHOLE, script, at) : undefined;
    if (command !== undefined) {
      [, delimiter = ';'] = command;
      at += command[0].length;
    } else if (whole !== undefined) {
      if (!between || !/^[-#/]/.test(whole[0])) statement += whole[0];
      at += whole[0].length;
    } else if (script.startsWith(delimiter, at)) {
      end();
      at += delimiter.length;
    } else {
      const next = script.charAt(at++);
      if (/['"`]/.test(next))
        throw new Error(`a string or a name in the script does not end: ${script.slice(at - 1, at + 20)}`);
      statement += next;
    }
  }
  end();
  return statements;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text) ?? undefined;
}
