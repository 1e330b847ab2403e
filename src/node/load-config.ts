/**
 * The configuration of a node: a JSON file, then `FENCEPOST_*`, then flags; the later wins, field by field. It is
 * validated as a whole and every fault is reported at once, so that nobody corrects one to meet the next.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { isLoopback, parseAddress } from '../base/address.js';
import { repeatedPrefixes } from '../base/shared-limits.js';
import { environmentName, type Field, FIELD_NAMES, FIELDS, flagName, readText } from './config-fields.js';
import type { NodeConfig } from './config.js';
import { UsageFaults } from './usage-faults.js';

/** Where a configuration comes from. */
export interface ConfigSources {
  /** Path of the JSON file; undefined for none. */
  readonly file: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** By field; `true` for a flag that was given without a value. */
  readonly flags: Readonly<Partial<Record<keyof NodeConfig, string | boolean>>>;
  /** Faults of the command line that its parser found, reported together with the others. */
  readonly usageFaults?: readonly string[];
}

/** A value and where it stands, for the message. */
interface Given {
  readonly value: unknown;
  readonly origin: string;
}
type AllGiven = Partial<Record<keyof NodeConfig, Given>>;
type Valid = { -readonly [K in keyof NodeConfig]?: NodeConfig[K] };

/** Reads, merges and checks. @throws {@link UsageFaults} with every fault of file, environment and flags. */
export function loadConfig(sources: ConfigSources): NodeConfig {
  const faults = [...(sources.usageFaults ?? [])];
  const given: AllGiven = {};
  const fileRead = readFile(sources.file, given, faults);
  readEnvironmentAndFlags(sources, given);
  const valid: Valid = {};
  for (const name of FIELD_NAMES) checkField(name, FIELDS[name], given[name], fileRead, valid, faults);
  checkRelations(valid, faults);
  if (faults.length > 0) throw new UsageFaults('The configuration cannot be used', faults);
  const config = valid as NodeConfig;
  return deepFreeze({ ...config, dataDir: resolve(config.dataDir) });
}

/** False when the file could not be read: then what is missing may stand in it, and is not reported. */
function readFile(path: string | undefined, given: AllGiven, faults: string[]): boolean {
  if (path === undefined) return true;
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const problem = error instanceof SyntaxError ? 'is not JSON' : 'cannot be read';
    faults.push(`${path} ${problem}: ${error instanceof Error ? error.message : String(error)}`);
    return false;
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    faults.push(`${path} must hold one JSON object with the fields ${FIELD_NAMES.join(', ')}`);
    return false;
  }
  for (const [key, value] of Object.entries(content)) {
    const name = FIELD_NAMES.find((field) => field === key);
    if (name === undefined) faults.push(`${path}: no setting is called ${key}; there are ${FIELD_NAMES.join(', ')}`);
    else given[name] = { value, origin: path };
  }
  return true;
}

/** Variables that are no setting stay unread: Kubernetes makes some up from the name of a service. */
function readEnvironmentAndFlags(sources: ConfigSources, given: AllGiven): void {
  for (const name of FIELD_NAMES) {
    const { kind } = FIELDS[name];
    const variable = environmentName(name);
    const text = sources.environment[variable];
    if (text !== undefined) given[name] = { value: readText(kind, text), origin: variable };
    const flag = sources.flags[name];
    if (flag !== undefined)
      given[name] = { value: typeof flag === 'string' ? readText(kind, flag) : flag, origin: flagName(name) };
  }
}

function checkField<K extends keyof NodeConfig>(
  name: K,
  field: Field<NodeConfig[K]>,
  given: Given | undefined,
  fileRead: boolean,
  valid: Valid,
  faults: string[],
): void {
  if (given === undefined) {
    if (field.fallback !== undefined) valid[name] = field.fallback;
    else if (fileRead)
      faults.push(`${name} is missing: set it in the file, by ${environmentName(name)} or by ${flagName(name)}`);
    return;
  }
  if (given.value === true && field.kind !== 'boolean') {
    faults.push(`${given.origin} needs a value`);
    return;
  }
  const result = field.schema.safeParse(given.value);
  if (result.success) {
    valid[name] = result.data;
    return;
  }
  const found = result.error.issues.map((issue) => {
    const path = issue.path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
    return `${given.origin}: ${name}${path} ${issue.message}, not ${shown(given.value, issue.path)}`;
  });
  faults.push(...new Set(found));
}

/** The part of `value` at `path` as JSON, cut to a length that fits a line. */
function shown(value: unknown, path: readonly PropertyKey[]): string {
  let part: unknown = value;
  for (const key of path) part = (part as Record<PropertyKey, unknown> | undefined)?.[key];
  const text = part === undefined ? 'nothing' : jsonOf(part);
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

/** `JSON.parse` reads what is nested deeper than the stack that writing it needs; that must not hide the fault. */
function jsonOf(part: unknown): string {
  try {
    return JSON.stringify(part);
  } catch {
    return 'something that is nested too deeply to be shown';
  }
}

/** What settings must be to each other; each rule only where its settings are valid by themselves. */
function checkRelations(valid: Valid, faults: string[]): void {
  const { tickMs, heartbeatMs, electionMinMs, electionMaxMs, defaultTtlMs } = valid;
  if (tickMs !== undefined)
    for (const name of ['heartbeatMs', 'electionMinMs', 'electionMaxMs'] as const) {
      const value = valid[name];
      if (value !== undefined && value % tickMs !== 0)
        faults.push(`${name} (${value}) must be a multiple of tickMs (${tickMs})`);
    }
  if (heartbeatMs !== undefined && electionMinMs !== undefined && electionMinMs < 3 * heartbeatMs)
    faults.push(
      `electionMinMs (${electionMinMs}) must be at least three times heartbeatMs (${heartbeatMs}), or a lost heartbeat starts an election`,
    );
  if (electionMinMs !== undefined && electionMaxMs !== undefined && electionMaxMs < 1.5 * electionMinMs)
    faults.push(
      `electionMaxMs (${electionMaxMs}) must be at least 1.5 times electionMinMs (${electionMinMs}), or votes split again and again`,
    );
  if (defaultTtlMs !== undefined && electionMaxMs !== undefined && defaultTtlMs < 3 * electionMaxMs)
    faults.push(
      `defaultTtlMs (${defaultTtlMs}) must be at least three times electionMaxMs (${electionMaxMs}), or a change of leader costs leases`,
    );
  checkMembers(valid, faults);
  checkListeners(valid, faults);
  for (const prefix of repeatedPrefixes(valid.prefixQuotas ?? [])) faults.push(`prefixQuotas names ${prefix} twice`);
}

function checkMembers({ members, nodeId }: Valid, faults: string[]): void {
  if (members === undefined) return;
  const twice = (values: readonly string[]) => values.find((value, at) => values.indexOf(value) !== at);
  const sameName = twice(members.map((member) => member.nodeId));
  if (sameName !== undefined) faults.push(`members names ${sameName} twice`);
  const sameAddress = twice(members.map((member) => member.peerAddress));
  if (sameAddress !== undefined) faults.push(`members gives the address ${sameAddress} twice`);
  if (nodeId !== undefined && !members.some((member) => member.nodeId === nodeId))
    faults.push(
      `members must contain this node, ${nodeId}; it names ${members.map((member) => member.nodeId).join(', ')}`,
    );
}

function checkListeners(valid: Valid, faults: string[]): void {
  const { clientAddress, peerAddress, insecure } = valid;
  if (clientAddress !== undefined && clientAddress === peerAddress)
    faults.push(`clientAddress and peerAddress are both ${clientAddress}: give each its own port`);
  if (insecure !== false) return;
  for (const name of ['clientAddress', 'peerAddress'] as const) {
    const address = parseAddress(valid[name] ?? '');
    if (address !== undefined && !isLoopback(address))
      faults.push(
        `${name} (${valid[name] ?? ''}) can be reached from other machines, without TLS: set insecure to true if that network is trusted, or listen on 127.0.0.1`,
      );
  }
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) deepFreeze(part);
    Object.freeze(value);
  }
  return value;
}
