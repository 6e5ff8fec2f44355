#!/usr/bin/env node
// Starts the command in this same process. It must parse on old versions of Node, so that they get a sentence instead of a stack trace.
var major = Number(process.versions.node.split(".")[0]);
if (major < 24) {
  process.stderr.write(
    "skein needs Node.js 24 or newer; this is " +
      process.version +
      " (" +
      process.execPath +
      ").\nNext step: in a checkout run `npm ci`, then `npx skein …`, which brings its own Node; elsewhere `npm install node@24` in your folder does so for it, or install Node 24 from https://nodejs.org/.\n",
  );
  process.exitCode = 2;
} else {
  process.getBuiltinModule("node:module").enableCompileCache();
  boundYoungGeneration(process.getBuiltinModule("node:v8"));
  import("../dist/cli.js").then(
    (cli) => cli.main(process.argv.slice(2)),
    (error) => {
      if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
      process.stderr.write(`skein is not built here (${error.message}).\nNext step: npm run build\n`);
      process.exitCode = 2;
    },
  );
}

/**
 * V8 doubles its young generation again and again while a process runs, up to 64 MB twice. A crawl leaves little alive and is no slower with 8 MB twice.
 * The size can only be given when the process starts, but what it is multiplied by at any time: by eight at the start, which leaves much alive and
 * would be copied over and over, and by one once it is large enough. Whoever gives Node a size keeps it.
 */
function boundYoungGeneration(v8) {
  const given = `${process.execArgv.join(" ")} ${process.env.NODE_OPTIONS}`;
  if (/semi[-_]space/.test(given)) return;
  const enough = 16 * 1024 * 1024;
  const size = () => v8.getHeapSpaceStatistics().find((space) => space.space_name === "new_space").space_size;
  const multiplyBy = (factor) => v8.setFlagsFromString(`--semi-space-growth-factor=${factor}`);
  multiplyBy(8);
  // An idle process gives its young generation back: so for as long as it runs.
  setInterval(() => multiplyBy(Math.max(1, Math.min(8, Math.floor(enough / size())))), 500).unref();
}
