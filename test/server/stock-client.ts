/** `buf curl`: a stock client that knows the service by reflection alone. */
import { spawn } from 'node:child_process';
import { resolve } from 'node:path';

export const ROOT = resolve(import.meta.dirname, '../..');
const BUF = resolve(ROOT, 'node_modules/.bin/buf');

export interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs buf in the repository. */
export function buf(...args: string[]): Promise<Run> {
  return new Promise((done, fail) => {
    const child = spawn(BUF, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.once('error', fail);
    child.once('close', (code) => {
      done({ code, stdout, stderr });
    });
  });
}

/** `buf curl` with reflection from `address`; `path` is `package.Service/Method`, or '' to list. */
export function curl(address: string, path: string, ...args: string[]): Promise<Run> {
  // The schema must come from the server, never from the files beside it.
  const reflection = ['--reflect', '--reflect-protocol', 'grpc-v1'];
  return buf(
    'curl',
    '--protocol',
    'grpc',
    '--http2-prior-knowledge',
    ...reflection,
    ...args,
    `http://${address}/${path}`,
  );
}

/** The answer of one call. Throws with what buf said when it failed. */
export async function curlCall(address: string, path: string, request: object): Promise<unknown> {
  const { code, stdout, stderr } = await curl(address, path, '-d', JSON.stringify(request));
  if (code !== 0) throw new Error(`buf curl ended with ${code ?? 'a signal'}: ${stderr}`);
  return JSON.parse(stdout);
}
