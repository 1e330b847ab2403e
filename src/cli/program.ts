/** The `fencepost` command: which commands there are, their help, and what becomes of an error. */
import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { FencepostError } from '../client/errors.js';
import { UsageFaults } from '../node/usage-faults.js';
import type { CommandSpec, OptionSpec } from './command.js';
import { printFailure } from './failure.js';
import { ResourceError } from './fence/resource-error.js';
import { Input } from './input.js';
import { EXIT, type Io } from './io.js';

/** A command is loaded when it is called: `status` need not load a database. */
interface Entry {
  readonly name: string;
  readonly about: string;
  load(): Promise<{ readonly spec: CommandSpec }>;
}

/** In the order of `--help`. */
export const COMMANDS: readonly Entry[] = [
  { name: 'dev', about: 'run a cluster on this machine, to try things', load: () => import('./commands/dev.js') },
  { name: 'start', about: 'run one node', load: () => import('./commands/start.js') },
  { name: 'status', about: 'who leads, who lags, what is wrong', load: () => import('./commands/status.js') },
  { name: 'acquire', about: 'ask for a lease and its fencing token', load: () => import('./commands/acquire.js') },
  { name: 'run', about: 'run a command while holding a lease', load: () => import('./commands/run.js') },
  { name: 'renew', about: 'keep a lease alive', load: () => import('./commands/renew.js') },
  { name: 'release', about: 'end a lease that you hold', load: () => import('./commands/release.js') },
  { name: 'verify', about: 'is this token the current one?', load: () => import('./commands/verify.js') },
  { name: 'get', about: 'who holds a domain, who waits', load: () => import('./commands/get.js') },
  { name: 'list', about: 'what is held, closed or waited for', load: () => import('./commands/list.js') },
  { name: 'watch', about: 'what happens, as it happens', load: () => import('./commands/watch.js') },
  {
    name: 'transfer-leadership',
    about: 'hand leadership to another node',
    load: () => import('./commands/transfer-leadership.js'),
  },
  {
    name: 'force-release',
    about: 'end a lease whoever holds it',
    load: () => import('./commands/force-release.js'),
  },
  {
    name: 'limits',
    about: 'show or set the limits that all nodes share',
    load: () => import('./commands/limits.js'),
  },
  {
    name: 'fence',
    about: 'look after the fences of a resource: migrate, show, reset, doctor',
    load: () => import('./commands/fence.js'),
  },
];

const EXIT_CODES = `Exit codes: 0 done; 1 not granted, or the lease is not live; 2 wrong usage or configuration (one message lists every
fault); 3 the cluster did not answer or refused.`;

/** Runs one command line, `words` without node and script. Returns the exit code; prints errors by itself. */
export async function runProgram(words: readonly string[], io: Io): Promise<number> {
  const json = ownWords(words).includes('--json');
  try {
    return await parse(words, io);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    if (error instanceof UsageFaults) {
      io.err(error.message);
      return EXIT.usage;
    }
    if (error instanceof FencepostError || error instanceof ResourceError) {
      return printFailure(io, json, words[0] ?? 'fencepost', error);
    }
    throw error;
  }
}

/** What stands in front of `--`; behind it is somebody else's command line. */
function ownWords(words: readonly string[]): readonly string[] {
  const dashes = words.indexOf('--');
  return dashes < 0 ? words : words.slice(0, dashes);
}

async function parse(words: readonly string[], io: Io): Promise<number> {
  const chosen = COMMANDS.find((entry) => entry.name === words[0]);
  const program = quiet(new Command('fencepost'), io)
    .description('Leases with fencing tokens.')
    .version(ownVersion(), '-V, --version', 'print the version')
    .addHelpText(
      'after',
      `\n${EXIT_CODES}\nA node run by start has further ones; see fencepost start --help.\n\nfencepost <command> --help says more. Scripts add --json: one document on standard output, tokens as text.`,
    );
  let run: (() => Promise<number>) | undefined;
  for (const entry of COMMANDS) {
    const command = quiet(program.command(entry.name), io).description(entry.about);
    // Only the chosen command needs its flags; the others stand here for the list of commands.
    if (entry !== chosen) continue;
    const { spec } = await entry.load();
    describe(command, spec);
    command.action(() => {
      run = () => spec.run(inputOf(command, words), io);
    });
  }
  program.parse(['node', 'fencepost', ...words]);
  return run === undefined ? EXIT.usage : await run();
}

function ownVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { readonly version: string }).version;
}

/** Throws instead of ending the process, and prints where the others print. */
function quiet(command: Command, io: Io): Command {
  return command
    .exitOverride()
    .configureHelp({ optionTerm: (option) => option.flags.replace('[', '<').replace(']', '>') })
    .configureOutput({
      writeOut: (text) => {
        io.out(text.trimEnd());
      },
      writeErr: (text) => {
        io.err(text.trimEnd());
      },
    });
}

/**
 * Every flag is declared so that commander accepts whatever stands there: a fault that it found itself would be the
 * only one reported. {@link Input} finds them all.
 */
function describe(command: Command, spec: CommandSpec): void {
  command.usage(`[flags] ${spec.operands}`.trimEnd()).allowUnknownOption().allowExcessArguments();
  for (const option of spec.options) addOption(command, option);
  command.addHelpText('after', `${spec.notes === undefined ? '' : `\n${spec.notes}`}\n${spec.exitCodes ?? EXIT_CODES}`);
}

function addOption(command: Command, option: OptionSpec): void {
  if (option.value === undefined) command.option(`--${option.flag}`, option.about);
  else if (option.many === true)
    command.option(`--${option.flag} [${option.value}]`, option.about, (text, before: string[] | undefined) => [
      ...(before ?? []),
      text,
    ]);
  else command.option(`--${option.flag} [${option.value}]`, option.about);
}

function inputOf(command: Command, words: readonly string[]): Input {
  const dashes = ownWords(words).length < words.length;
  const literal = dashes ? words.length - ownWords(words).length - 1 : 0;
  // Commander leaves the dashes themselves behind an unknown flag, and only there.
  const at = command.args.length - literal - 1;
  const rest = dashes && command.args[at] === '--' ? command.args.toSpliced(at, 1) : command.args;
  const values: Record<string, unknown> = {};
  for (const option of command.options) values[option.name()] = command.getOptionValue(option.attributeName());
  return new Input({ rest, literal, options: values });
}
