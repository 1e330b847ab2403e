import js from '@eslint/js';
import { defineConfig, globalIgnores } from 'eslint/config';
import { builtinRules } from 'eslint/use-at-your-own-risk';
import tseslint from 'typescript-eslint';

// Must give the same result for the same input on every machine, so no clock, chance, locale or promise.
const pure = ['src/{base,raft,lease,replica}/**/*.ts'];

export default defineConfig(
  globalIgnores(['dist/', 'coverage/', '.fencepost/', '.cache/']),
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    // ESLint knows each rule once; under a second name the limit on length can warn before it fails.
    plugins: { early: { rules: { 'max-lines': builtinRules.get('max-lines') } } },
    rules: {
      '@typescript-eslint/no-floating-promises': ['error', { checkThenables: true, ignoreVoid: false }],
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        {
          allowDefaultCaseForExhaustiveSwitch: false,
          considerDefaultExhaustiveForUnions: false,
          requireDefaultForNonUnion: true,
        },
      ],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/triple-slash-reference': ['error', { lib: 'never', path: 'never', types: 'never' }],
      // Loops over the bytes of every record run several times faster by index.
      '@typescript-eslint/prefer-for-of': 'off',
      'early/max-lines': ['warn', { max: 400, skipBlankLines: true }],
      'max-lines': ['error', { max: 600, skipBlankLines: true }],
    },
  },
  {
    files: pure,
    rules: {
      'no-restricted-globals': [
        'error',
        'Date',
        'performance',
        'Atomics',
        'WeakRef',
        'FinalizationRegistry',
        'Intl',
        'globalThis',
        'Promise',
      ],
      'no-restricted-properties': ['error', { object: 'Math', property: 'random' }],
      'no-restricted-syntax': [
        'error',
        { selector: "MemberExpression[object.name='Math'][computed=true]", message: 'Name the Math function.' },
        { selector: "VariableDeclarator[init.name='Math']", message: 'Name the Math function.' },
        { selector: 'Identifier[name=/^(toLocale|localeCompare)/]', message: 'Depends on the locale of the host.' },
        { selector: ':function[async=true]', message: 'Pure code is synchronous.' },
      ],
    },
  },
  {
    files: ['**/*.js', '**/*.cjs'],
    extends: [tseslint.configs.disableTypeChecked],
    languageOptions: {
      globals: {
        process: 'readonly',
        console: 'readonly',
        module: 'writable',
        setTimeout: 'readonly',
        clearTimeout: 'readonly',
        URL: 'readonly',
        fetch: 'readonly',
        performance: 'readonly',
        AbortController: 'readonly',
        AbortSignal: 'readonly',
        setImmediate: 'readonly',
        setInterval: 'readonly',
        clearInterval: 'readonly',
        Buffer: 'readonly',
      },
    },
  },
);
