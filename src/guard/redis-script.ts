/** What the server runs: the check of the fences, their raise, and the caller's work, in one script. */
import { MAX_JUMP, MAX_TOKEN } from './fence.js';
import { scriptOf } from './redis-client.js';
import type { RedisArgument, Script } from './redis-client.js';

/** Of the keys that the fences lie under: a hash each, `fencepost:fence:{domain}`. */
export const PREFIX = 'fencepost:fence:';

/** The key of a fence. By the braces Redis Cluster keeps it where keys with `{domain}` in them are. */
export function fenceKey(domain: string): string {
  return `${PREFIX}{${domain}}`;
}

/** A driver that writes something before keys does so in some places of an operation only. */
const PREFIXED = "if KEYS[1] ~= ARGV[2] then return {'prefixed', KEYS[1]} end";

/**
 * Lua: what is wrong with the fields of a fence and its time to live, as the guard did not write it; nil when nothing is.
 * Texts of one length are in the order of their numbers.
 */
export const FAULT = `local function fault(stored, ttl)
  if stored.err then return stored.err end
  if not (stored[1] and stored[2] and stored[3]) then return 'token, issuer or incarnation is not there' end
  local size = #stored[1]
  if not string.find(stored[1], '^[1-9]%d*$') or size > 19 or (size == 19 and stored[1] > '${MAX_TOKEN}') then
    return 'its token is ' .. stored[1]
  end
  if ttl ~= -1 then return 'it has a time to live' end
end
`;

/**
 * `#!lua`: from Redis 7 on the server looks before it begins, so that nothing is half done, whether it may write at all (a
 * replica, no memory, a full disk, too few replicas).
 *
 * Numbers in Lua are doubles. A token is split into two halves of ten digits, and each is exact. `step`, their difference,
 * is exact up to 2^53; a greater one is rounded, and far above MAX_JUMP (6.3e14) on either side of zero all the same.
 *
 * ARGV: how many leases; the first key as the guard wrote it; of each lease token, issuer, incarnation; then the work's own.
 */
function guarded(work: string): string {
  return `#!lua
local work = function(KEYS, ARGV) ${work}
end
local count = tonumber(ARGV[1])
${PREFIXED}
${FAULT}
local function halves(token)
  local padded = string.rep('0', 20 - #token) .. token
  return tonumber(string.sub(padded, 1, 10)), tonumber(string.sub(padded, 11))
end
local raised, earlier = {}, {}
for i = 1, count do
  local token, issuer, incarnation = ARGV[3 * i], ARGV[3 * i + 1], ARGV[3 * i + 2]
  local ttl = redis.call('PTTL', KEYS[i])
  if ttl == -2 then
    raised[#raised + 1] = i
  else
    local stored = redis.pcall('HMGET', KEYS[i], 'token', 'issuer', 'incarnation')
    local damage = fault(stored, ttl)
    if damage then return {'damaged', i, damage} end
    local high, low = halves(token)
    local storedHigh, storedLow = halves(stored[1])
    local step = (high - storedHigh) * 1e10 + (low - storedLow)
    local same = incarnation == stored[3]
    if issuer ~= stored[2] or step < 0 or step > ${MAX_JUMP} or (step == 0 and not same) then
      return {'refused', i, stored[1], stored[2], stored[3]}
    end
    if step > 0 then
      raised[#raised + 1] = i
      if not same and not earlier[1] then earlier[1] = stored[3] end
    end
  end
end
for _, i in ipairs(raised) do
  redis.call('HSET', KEYS[i], 'token', ARGV[3 * i], 'issuer', ARGV[3 * i + 1], 'incarnation', ARGV[3 * i + 2])
end
local keys, args = {}, {}
for i = count + 1, #KEYS do keys[i - count] = KEYS[i] end
for i = 3 * count + 3, #ARGV do args[i - 3 * count - 2] = ARGV[i] end
local value = work(keys, args)
if type(value) == 'table' and value.err then return value end
return {'applied', earlier, value}`;
}

/** Redis does not undo: the first command that fails is the last that is tried, and is told with the replies before it. */
const COMMANDS = scriptOf(
  guarded(`
local replies, number, at = {}, 0, 1
while ARGV[at] do
  local size = tonumber(ARGV[at])
  local reply = redis.pcall(unpack(ARGV, at + 1, at + size))
  if type(reply) == 'table' and reply.err then return {replies, reply.err} end
  number = number + 1
  replies[number] = reply
  at = at + size + 1
end
return {replies}`),
);

/** For operators, on one fence. ARGV: as of the others, with what the work needs in the place of a lease. */
function ofOperator(flags: string, work: string): Script {
  return scriptOf(`#!lua${flags}
${PREFIXED}
${FAULT}
local function look()
  local ttl = redis.call('PTTL', KEYS[1])
  if ttl == -2 then return end
  local stored = redis.pcall('HMGET', KEYS[1], 'token', 'issuer', 'incarnation')
  return stored, fault(stored, ttl)
end
${work}`);
}

export const READ = ofOperator(
  ' flags=no-writes',
  `local stored, damage = look()
if damage then return {'damaged', 1, damage} end
return {'applied', {}, stored or {}}`,
);
export const ALLOW = ofOperator(
  '',
  `local stored, damage = look()
if damage then return {'damaged', 1, damage} end
if stored then redis.call('HSET', KEYS[1], 'issuer', ARGV[3]) end
return {'applied', {}, stored and 1 or 0}`,
);
/** Whatever lies there, and its time to live, goes. */
export const RESET = scriptOf(
  `#!lua
${PREFIXED}
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'token', ARGV[3], 'issuer', ARGV[4], 'incarnation', ARGV[5])
return {'applied', {}}`,
);

/** One command as on the command line, `['HSET', 'stock:{orders/eu}', 'a', 9]`. Numbers are sent as text. */
export type RedisCommand = readonly [name: string, ...args: (string | number | Buffer)[]];

/** A script of yours with its keys and arguments: what a {@link FencedScript} gives. */
export interface ScriptCall {
  /** The whole text that the server runs, and its SHA-1. */
  readonly script: { readonly lua: string; readonly sha1: string };
  /** Become `KEYS[1]` and so on. */
  readonly keys: readonly string[];
  /** Become `ARGV[1]` and so on, as text. */
  readonly args: readonly (string | number | Buffer)[];
}

/** Makes calls of one script. */
export type FencedScript = (keys: readonly string[], args?: readonly (string | number | Buffer)[]) => ScriptCall;

/**
 * A piece of Lua that runs behind the check, for what reads and then writes. It is the body of a function with `KEYS` and
 * `ARGV`; what it returns is the operation's value. Name in `KEYS` every key that it touches. When it fails, the operation
 * throws what the server says, as it does when it returns an error, and what it had written before stays: look at everything first, then write. Nobody else is
 * served while it runs, and once it has written nothing but the end of the server stops it: no loop without a bound.
 */
export function fencedScript(lua: string): FencedScript {
  const script = scriptOf(guarded(lua));
  return (keys, args = []) => ({ script, keys, args });
}

/** The work of a run, ready to be sent. */
export interface Prepared {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly RedisArgument[];
}

/** They would take the fences along. */
const WITH_FENCES = ['FLUSHALL', 'FLUSHDB', 'SWAPDB'];
/** Lua passes 8 000 values on at most. */
const MAX_PARTS = 7_000;
/** Of one operation. Drivers pass them on as arguments of a function, for which they need stack. */
const MAX_VALUES = 30_000;

/** Throws a TypeError, with every fault, for what is no list of commands. */
export function preparedCommands(commands: readonly RedisCommand[]): Prepared {
  const faults: string[] = [];
  const args = commands.flatMap((given: readonly unknown[], at) => {
    const [name] = given;
    const where = `command ${at + 1} of ${commands.length} (${String(name)})`;
    if (typeof name !== 'string' || name === '') faults.push(`command ${at + 1} of ${commands.length} has no name`);
    else if (WITH_FENCES.includes(name.toUpperCase())) faults.push(`${where} would delete or move the fences`);
    if (given.length > MAX_PARTS) faults.push(`${where} has ${given.length} parts; at most ${MAX_PARTS} are allowed`);
    return [String(given.length), ...argumentsOf(given, where, faults)];
  });
  checkSize(args, faults);
  if (faults.length > 0) throw new TypeError(`not commands of Redis: ${faults.join('; ')}`);
  return { script: COMMANDS, keys: [], args };
}

/** Throws a TypeError, with every fault, for what no driver could send. */
export function preparedCall({ script, keys, args }: ScriptCall): Prepared {
  const faults: string[] = [];
  const sent = argumentsOf(args, 'ARGV', faults);
  for (const [at, key] of keys.entries()) if (typeof key !== 'string') faults.push(`KEYS[${at + 1}] must be text`);
  checkSize([...keys, ...args], faults);
  if (faults.length > 0) throw new TypeError(`not a call of a script: ${faults.join('; ')}`);
  return { script, keys, args: sent };
}

function checkSize({ length }: readonly unknown[], faults: string[]): void {
  if (length > MAX_VALUES) faults.push(`an operation of ${length} values; at most ${MAX_VALUES} are allowed: split it`);
}

function argumentsOf(given: readonly unknown[], where: string, faults: string[]): RedisArgument[] {
  return given.map((value, at) => {
    if (typeof value === 'string' || Buffer.isBuffer(value)) return value;
    if (typeof value === 'number' && Number.isFinite(value)) return String(value);
    faults.push(`${where}: value ${at + 1} must be text, a finite number or a Buffer, not ${String(value)}`);
    return '';
  });
}
