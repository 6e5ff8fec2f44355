// Loaded before each suite (`node --import`): one that does not end by itself is ended, told of and counted as failed, with the processes it started.
// A test that ran out of its time leaves its loops and processes behind; without this they would keep the run from ever ending.
import { readdirSync, readFileSync } from "node:fs";

const minutes = Number(process.env.SUITE_MINUTES ?? "0");
const isSuite = /\.(test|slow|long)\.ts$/.test(process.argv[1] ?? "");

/** On Linux; elsewhere what a suite leaves behind stays. */
function endChildren() {
  let ids = [];
  try {
    ids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return;
  }
  for (const id of ids) {
    try {
      const parent = Number(/^\d+ \(.*\) \S (\d+)/s.exec(readFileSync(`/proc/${id}/stat`, "latin1"))?.[1]);
      if (parent === process.pid) process.kill(Number(id), "SIGKILL");
    } catch {
      // It has ended meanwhile.
    }
  }
}

if (isSuite && minutes > 0) {
  const timer = setTimeout(() => {
    console.error(`${process.argv[1]} has not ended within ${minutes} minutes; what keeps it: ${process.getActiveResourcesInfo().join(", ")}`);
    endChildren();
    process.exit(1);
  }, minutes * 60_000);
  timer.unref();
}
