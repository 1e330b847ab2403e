/** Who may import whom. Read each rule as: files of `from` import nothing but what `may` lists. */
const only = (name, from, may, comment) => ({
  name,
  comment,
  severity: 'error',
  from: { path: from },
  to: { pathNot: may, dependencyTypesNot: ['core', 'npm'] },
});

const PURE = '^src/(base|raft|lease|replica)/';

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'pure-imports-only-pure',
      comment:
        'base, raft, lease and replica use no package and no node: module, also not for types: the declarations of one would bring timers and Buffer into the whole pure project.',
      severity: 'error',
      from: { path: PURE },
      to: { pathNot: PURE },
    },
    only('base-is-the-leaf', '^src/base/', '^src/base/', 'Everything stands on base.'),
    only('raft-knows-base', '^src/raft/', '^src/(raft|base)/', 'The consensus core knows no domain and no lease.'),
    only(
      'lease-knows-base',
      '^src/lease/',
      '^src/(lease|base)/',
      'The state machine knows no term but the one it is given.',
    ),
    only(
      'public-wire-knows-base',
      '^src/wire/public',
      '^src/(wire/public|base/)',
      'The client must not load a server.',
    ),
    only('wire', '^src/wire/', '^src/(wire|replica|raft|lease|base)/', 'Bytes and the types they stand for.'),
    only(
      'outside',
      '^src/(server|storage|transport)/',
      '^src/($1|wire|replica|raft|lease|base)/',
      'Ports do not know each other.',
    ),
    only('node', '^src/node/', '^src/(node|server|storage|transport|wire|replica|raft|lease|base)/', 'Assembly.'),
    only(
      'client',
      '^src/client/',
      '^src/(client|wire/public|base/)',
      'A program that only wants leases loads no server.',
    ),
    {
      name: 'client-reaches-no-server',
      comment: 'Whatever the client imports, at whatever remove: no server, no disk, no consensus.',
      severity: 'error',
      from: { path: '^src/client/' },
      to: { path: '^src/(?!client/|wire/public|base/)|node_modules/(level|classic-level)/', reachable: true },
    },
    only('guard', '^src/guard/', '^src/(guard|base)/', 'A guard lives in the process that owns the resource.'),
    only(
      'testing',
      '^src/testing/(?!memory-)',
      '^src/(testing|node|client|base)/',
      'A server in memory, for tests of users: the assembly of a node, and a client.',
    ),
    only(
      'memory-ports',
      '^src/testing/memory-',
      '^src/(testing/memory-|replica|raft|lease|base)',
      'The twins of the ports in memory know the ports and nothing that stands on them.',
    ),
    only('cli', '^src/cli/', '^src/(cli|node|client|guard|base)/', 'The command line uses what everybody may use.'),
    {
      name: 'outside-knows-types-of-the-core',
      comment: 'Server, storage and transport speak in the types of raft and lease and never call them.',
      severity: 'error',
      from: { path: '^src/(server|storage|transport)/' },
      to: { path: '^src/(raft|lease)/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'nothing-imports-the-command-line',
      severity: 'error',
      from: { pathNot: '^(src/cli|test)/' },
      to: { path: '^src/cli/' },
    },
    {
      name: 'no-test-in-src',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(test|scripts)/' },
    },
    {
      name: 'no-development-package-in-src',
      comment: 'Whoever installs the package does not have it.',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['type-only'] },
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-unresolved', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.base.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'types', 'node', 'default'] },
  },
};
