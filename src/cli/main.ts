#!/usr/bin/env node
import { connect } from './connect.js';
import { EXIT } from './io.js';
import { runProgram } from './program.js';

// Whoever read has gone (`fencepost watch | head`): nothing is left to do.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT.ok);
  throw error;
});

process.exitCode = await runProgram(process.argv.slice(2), {
  out: (text) => {
    process.stdout.write(`${text}\n`);
  },
  err: (text) => {
    process.stderr.write(`${text}\n`);
  },
  colour: process.stdout.isTTY && process.env['NO_COLOR'] === undefined,
  folder: process.cwd(),
  environment: process.env,
  connect,
});
