#!/usr/bin/env node
// Starts the command in this same process. It must parse on old versions of Node, so that they get a sentence instead of a stack trace.
var major = Number(process.versions.node.split(".")[0]);
if (major < 24) {
  process.stderr.write(
    "skein needs Node.js 24 or newer; this is " +
      process.version +
      " (" +
      process.execPath +
      ").\nNext step: in a checkout run `npm ci`, then `npx skein …`, which brings its own Node; elsewhere install Node 24 from https://nodejs.org/.\n",
  );
  process.exitCode = 2;
} else {
  process.getBuiltinModule("node:module").enableCompileCache();
  import("../dist/cli.js").then(
    (cli) => cli.main(process.argv.slice(2)),
    (error) => {
      if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
      process.stderr.write(`skein is not built here (${error.message}).\nNext step: npm run build\n`);
      process.exitCode = 2;
    },
  );
}
