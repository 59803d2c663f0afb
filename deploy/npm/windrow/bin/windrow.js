#!/usr/bin/env node
// Starts the program of the platform's package, with the same arguments, terminal, signals and exit code.
const { spawn } = require('node:child_process');
const { constants } = require('node:os');

let program;
try {
  program = require.resolve(`windrow-${process.platform}-${process.arch}/bin/windrow`);
} catch {
  console.error(`error: no program for ${process.platform}-${process.arch}: windrow has one for Linux on x64 (glibc)`);
  console.error('  try  npm install windrow without --omit=optional, on such a machine');
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
// A terminal sends Ctrl-C and its end to both processes: the program drains, so this one waits for it.
process.on('SIGINT', () => {});
process.on('SIGHUP', () => {});
process.on('SIGTERM', () => child.kill('SIGTERM'));
child.on('error', (error) => {
  console.error(`error: can't start ${program}: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
