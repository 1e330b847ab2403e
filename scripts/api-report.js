/**
 * `npm run check:api` compares what the package exports with the reports in `etc/`, one for each entry point, so that no
 * change of the public API goes unseen; `npm run fix:api` writes them anew. Reads what `tsc` made of the sources.
 */
import { join } from 'node:path';
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import { build, root } from './prepare.js';

const ENTRIES = {
  fencepost: 'client/index',
  'fencepost-guard-conformance': 'guard/conformance/index',
  'fencepost-guard-grpc': 'guard/grpc',
  'fencepost-guard-http': 'guard/http',
  'fencepost-guard-leveldb': 'guard/leveldb',
  'fencepost-guard-memory': 'guard/memory',
  'fencepost-guard-outbox': 'guard/outbox',
  'fencepost-guard-postgres': 'guard/postgres',
  'fencepost-guard-sqlite': 'guard/sqlite',
  'fencepost-guard-redis': 'guard/redis',
  'fencepost-guard-mysql': 'guard/mysql',
  'fencepost-guard-s3': 'guard/s3',
  'fencepost-guard-dynamodb': 'guard/dynamodb',
  'fencepost-testing': 'testing/index',
};

const write = process.argv.includes('--write');
const silent = { logLevel: ExtractorLogLevel.None };

/**
 * What is wrong with an entry point, for people; undefined when nothing is. Faults of single declarations (not exported,
 * not documented) are printed by the extractor itself.
 * @param {string} name of the report
 * @param {string} entry in `dist`
 * @returns {string | undefined}
 */
function extract(name, entry) {
  const config = ExtractorConfig.prepare({
    packageJsonFullPath: join(root, 'package.json'),
    configObjectFullPath: undefined,
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: join(root, `dist/${entry}.d.ts`),
      compiler: { tsconfigFilePath: join(root, 'src/tsconfig.json') },
      apiReport: {
        enabled: true,
        reportFileName: `${name}.api.md`,
        reportFolder: join(root, 'etc'),
        reportTempFolder: join(root, 'dist/.api'),
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      newlineKind: 'lf',
      messages: {
        compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.Error } },
        extractorMessageReporting: {
          default: { logLevel: ExtractorLogLevel.Error },
          'ae-missing-release-tag': silent,
          'ae-undocumented': { logLevel: ExtractorLogLevel.Error },
          'ae-unresolved-link': silent,
        },
        tsdocMessageReporting: { default: silent },
      },
    },
  });
  const { errorCount, apiReportChanged } = Extractor.invoke(config, {
    localBuild: write,
    messageCallback: (message) => {
      // What it says of its own doings (which compiler it brings, that it copied a file) is nothing to act on.
      if (message.logLevel !== ExtractorLogLevel.Error) message.handled = true;
    },
  });
  if (errorCount > 0) return `${errorCount} declarations to mend, see above`;
  return apiReportChanged && !write
    ? `etc/${name}.api.md differs: npm run fix:api, and read the difference`
    : undefined;
}

build();
const faults = Object.entries(ENTRIES).flatMap(([name, entry]) => {
  const fault = extract(name, entry);
  return fault === undefined ? [] : [`${name}: ${fault}`];
});
for (const fault of faults) console.error(fault);
process.exit(faults.length === 0 ? 0 : 1);
