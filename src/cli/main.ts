#!/usr/bin/env node
import { connect } from './connect.js';
import { runProgram } from './program.js';

process.exitCode = await runProgram(process.argv.slice(2), {
  out: (text) => {
    process.stdout.write(`${text}\n`);
  },
  err: (text) => {
    process.stderr.write(`${text}\n`);
  },
  colour: process.stdout.isTTY && process.env['NO_COLOR'] === undefined,
  environment: process.env,
  connect,
});
