/** The code in a Markdown file: found, checked as TypeScript, and run as JavaScript, by a program that has the package installed. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import ts from 'typescript';

const ROOT = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

/** One fenced block of code. */
export interface Snippet {
  readonly language: 'js' | 'ts';
  readonly code: string;
  /** The line of the file at which its fence stands. */
  readonly line: number;
}

/** The fenced blocks of JavaScript and TypeScript. Throws for a block in a language that nobody would check. */
export function snippetsIn(markdown: string): Snippet[] {
  return [...markdown.matchAll(/^```(\S*)\n(.*?)^```$/gms)].map((found): Snippet => {
    const [, language = '', code = ''] = found;
    const line = markdown.slice(0, found.index).split('\n').length;
    if (language !== 'js' && language !== 'ts')
      throw new Error(`line ${line}: a block of ${language || 'no language'}`);
    return { language, code, line };
  });
}

/** An empty project of a user, with the package installed. Use with `await using`. */
export class UserProject implements AsyncDisposable {
  readonly home: string;

  private constructor(home: string) {
    this.home = home;
  }

  static async create(): Promise<UserProject> {
    const home = await mkdtemp(join(tmpdir(), 'fencepost-user-'));
    await mkdir(join(home, 'node_modules'));
    await symlink(ROOT, join(home, 'node_modules/fencepost'));
    for (const name of ['level', '@grpc', '@types']) {
      await symlink(join(ROOT, 'node_modules', name), join(home, 'node_modules', name));
    }
    await writeFile(join(home, 'package.json'), JSON.stringify({ type: 'module' }));
    return new UserProject(home);
  }

  /**
   * What the compiler finds in each, against the declarations that were built, with the options that README names. All in
   * one go: it reads the declarations of Node and of all packages first, which takes seconds.
   */
  async faults(codes: readonly string[]): Promise<string[][]> {
    const files = codes.map((_, at) => join(this.home, `snippet${at}.ts`));
    for (const [at, file] of files.entries()) await writeFile(file, codes[at] ?? '');
    const program = ts.createProgram(files, {
      target: ts.ScriptTarget.ES2023,
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      strict: true,
      noEmit: true,
      types: ['node'],
      typeRoots: [join(this.home, 'node_modules/@types')],
      skipLibCheck: true,
    });
    const found = ts.getPreEmitDiagnostics(program);
    return files.map((file) =>
      found
        // What belongs to no file is wrong with every one.
        .filter(({ file: where }) => where === undefined || where.fileName === file)
        .map(({ messageText, file: where, start = 0 }) => {
          const line = where === undefined ? 0 : where.getLineAndCharacterOfPosition(start).line + 1;
          return `line ${line}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
        }),
    );
  }

  /** Runs it with Node, JavaScript as it stands, TypeScript without its types; what it prints. Rejects when it fails. */
  async run({ language, code }: Pick<Snippet, 'language' | 'code'>): Promise<string> {
    const options = { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext };
    const plain = language === 'js' ? code : ts.transpileModule(code, { compilerOptions: options }).outputText;
    await writeFile(join(this.home, 'snippet.js'), plain);
    const { stdout } = await run(process.execPath, ['snippet.js'], { cwd: this.home, timeout: 60_000 });
    return stdout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.home, { recursive: true, force: true });
  }
}
